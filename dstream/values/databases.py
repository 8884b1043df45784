"""`Database`: one that speaks SQL, named by its URL, for sources and sinks.

A password, or a reference that each process looks up when it connects, is in the URL and nowhere else. What is shown,
also of the errors of drivers, goes through `dstream.values.secrets`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dstream.errors import SetupError, SinkError, SinkUnavailableError, SourceError, SourceUnavailableError
from dstream.values.contexts import contextmanager
from dstream.values.distribution import pip_install
from dstream.values.secrets import resolved_url, scrub, shown_url, without_secrets

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["Database", "database_of", "schema_and_table"]

_LONGEST = 500
_PATIENCE = 60
"""Seconds for which a writer waits while others write into the same file of SQLite, whose own limit is 5."""


def schema_and_table(text: str) -> tuple[str | None, str]:
    """Divide the name of a table at its last dot; a part with a dot of its own is quoted, as in `"a.b"`."""
    found = re.fullmatch(rf"(?:({_PART})\.)?({_PART})", text)
    schema, name = (found[1], found[2]) if found else text.rpartition(".")[::2]
    return _unquoted(schema) if schema else None, _unquoted(name)


_PART = r'"(?:[^"]|"")+"|[^".]+'


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if len(part) > 2 and part[0] == part[-1] == '"' else part


@dataclass(frozen=True, slots=True, repr=False)
class Database:
    """A database, as a value that travels.

    Attributes:
        url: with its password, or a reference to it.
        failure: what becomes of what the database refuses.
        call: the call that named it, for messages.
    """

    url: str
    failure: type[SourceError] | type[SinkError]
    call: str

    @contextmanager
    def connected(self) -> Iterator[sa.Connection]:
        """Connect for the time of a block, without a pool: tasks are many, and do not last."""
        import sqlalchemy as sa
        from sqlalchemy.pool import NullPool

        with self.refusals(is_connecting=True):
            self._check_file()
            patience = {"timeout": _PATIENCE} if self.url.startswith("sqlite") and "timeout=" not in self.url else {}
            url = resolved_url(self.url)
            connection = sa.create_engine(url, poolclass=NullPool, connect_args=patience).connect()
        try:
            yield connection
        finally:
            # The server may be gone, which must hide no failure before.
            with _ignored():
                connection.close()

    def _check_file(self) -> None:
        """Refuse a file that is not there: SQLite makes an empty one."""
        import sqlalchemy as sa

        path = sa.make_url(self.url).database
        if self.url.startswith("sqlite") and path and not path.startswith("file:") and not os.path.exists(path):
            raise self.failure(f"{self.call}: there is no file {path}")

    @contextmanager
    def refusals(self, is_connecting: bool = False) -> Iterator[None]:
        """Turn what the database or its driver refuses into an error that names the call.

        It says that the database is unavailable if to try again may help. No function of the user's belongs into the
        block.
        """
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except SQLAlchemyError as error:
            scrub(error, self.url)
            kind = _UNAVAILABLE[self.failure] if _may_pass(error, is_connecting) else self.failure
            raise kind(f"{self.call}: {self.words(error)}") from error

    def words(self, error: Any) -> str:
        """Return what a database says, in one line."""
        original = getattr(error, "orig", None) or error
        scrub(original, self.url)
        words = without_secrets(" ".join(str(original).split())) or type(original).__name__
        words = words if len(words) <= _LONGEST else words[:_LONGEST] + "..."
        cut = "the connection was cut: " if getattr(error, "connection_invalidated", False) else ""
        return f"{cut}{words}{_LOCKED if words == 'database is locked' else ''}"

    def __repr__(self) -> str:
        return repr(shown_url(self.url))


_UNAVAILABLE: dict[type[SourceError] | type[SinkError], type[SourceError] | type[SinkError]] = {
    SourceError: SourceUnavailableError,
    SinkError: SinkUnavailableError,
}


def _may_pass(error: Any, is_connecting: bool) -> bool:
    """Say whether a failure is one of now: a connection was cut, or none can be made, or two writers met."""
    from sqlalchemy.exc import OperationalError

    state = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
    is_refused = is_connecting and isinstance(error, OperationalError)  # Drivers do not say why.
    return getattr(error, "connection_invalidated", False) or is_refused or state.startswith(_PASSING)


_PASSING = ("08", "40001", "40P01", "53300", "57P")
"""What SQLSTATE calls failures of connections, deadlocks and the like, too many connections, a server that stops."""

_LOCKED = (
    f", and was so for {_PATIENCE} s: a stream that reads from a file of SQLite and writes into it waits for itself, "
    "unless PRAGMA journal_mode=WAL was set, which lets readers and a writer work at the same time"
)


@contextmanager
def _ignored() -> Iterator[None]:
    try:
        yield
    except Exception:
        return


def database_of(url: Any, maker: str, failure: type[SourceError] | type[SinkError], *more: str) -> Database:
    """Return the database of a URL, which is not yet asked for anything.

    Args:
        url: as SQLAlchemy has it.
        maker: the name of the function that got it.
        failure: what becomes of what the database refuses.
        more: the other arguments, as they are shown.

    Raises:
        SetupError: SQLAlchemy, or the driver of this database, is not installed.
        TypeError: `url` is no str.
        ValueError: it is no URL of a database, or names one that no other process sees.
    """
    if not isinstance(url, str):
        raise TypeError(f"url must be a str, not {type(url).__name__}")
    try:
        import sqlalchemy as sa
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError
    except ImportError as error:
        raise SetupError(f"{maker}() needs the package sqlalchemy: {pip_install('sql')}") from error
    try:
        parsed = sa.make_url(url)
        dialect = parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):
        # What they say may hold the URL, so it is not chained. Without a scheme nobody can tell where a password is.
        given = repr(shown_url(url)) if "://" in url else "a text without '://'"
        raise ValueError(
            f"url must be one of a database, such as sqlite:///file.db or postgresql+psycopg://host/name, not {given}"
        ) from None
    try:
        dialect.import_dbapi()
    except ImportError as error:
        raise SetupError(f"{maker}() needs the driver {error.name} of {parsed.drivername}://: install it") from error
    full = _absolute(parsed).render_as_string(hide_password=False)
    return Database(full, failure, f"{maker}({', '.join([repr(shown_url(url)), *more])})")


def _absolute(url: sa.URL) -> sa.URL:
    """Return the URL as it holds in every process: workers stand in other folders."""
    if url.get_backend_name() != "sqlite" or (url.database or "").startswith("file:"):
        return url
    if not url.database or url.database == ":memory:":
        raise ValueError("url must name a file: a database in memory is another one in every process")
    return url.set(database=os.path.abspath(os.path.expanduser(url.database)))
