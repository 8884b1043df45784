"""`Collection`: the operations that all distributed collections share, and the equality of their values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar

from dstream.arguments import count
from dstream.errors import CollectionDestroyedError, DStreamError, SerializationError, UnsupportedError
from dstream.spi import MapStore
from dstream.spi.runtime import Runtime
from dstream.spi.store import Kind, Options, Store
from dstream.values.tables import Rows, brief, caption, html_table, print_brief, print_whole, rows_under

if TYPE_CHECKING:
    from datetime import timedelta

    import pandas as pd
    import pyarrow as pa

__all__ = ["PIECES", "Collection", "NoTable", "same", "type_seen"]


S = TypeVar("S", bound=Store)

PIECES = 32
"""Into how many parts a collection is divided that the caller reads alone, one part after another."""

_UNREADABLE = (DStreamError, TypeError, OSError)
"""Errors of a collection that cannot be read: it was destroyed, a class is missing, or files cannot be opened."""

_FEW = 5
_ROWS = 10
_DAY = 24 * 60 * 60.0


class Collection(ABC, Generic[S]):
    """A handle to a collection in a storage. It contains no data and may be dropped."""

    _kind: ClassVar[Kind]
    _unit: ClassVar[tuple[str, str]]
    _columns: ClassVar[Sequence[str]]
    _brackets: ClassVar[str]
    _at_most: ClassVar[str] = ""
    """The words before a size that was not counted."""
    _instead: ClassVar[str]
    """The advice for a function on the workers that needs the content."""

    def __init__(self, store: S, runtime: Runtime) -> None:
        self._opened = store
        self._runtime = runtime

    @property
    def store(self) -> S:
        """The underlying store, which sinks write into (`dstream.spi.store`); an error if the context is closed."""
        self._runtime.check_open()
        return self._opened

    # How it was made

    @property
    def name(self) -> str:
        """The name by which any process finds it."""
        return self._opened.name

    @property
    def options(self) -> Options:
        """The options that it was made with, and the types that the first commit decided."""
        return self._opened.options

    @property
    def value_type(self) -> Any:
        """The type of its values or items; None while it is not decided."""
        return self.options.value_type

    @property
    def location(self) -> str | None:
        """The folder or URL of the Delta table that other tools read; None in storages without tables."""
        return self._opened.location

    # The whole of it

    def size(self) -> int:
        """Return the number of entries or items, as `len` does."""
        return self.store.size()

    def is_empty(self) -> bool:
        """Return whether the collection is empty."""
        return self.size() == 0

    def destroy(self) -> None:
        """Remove the collection and its name, atomically.

        Every use of it afterwards, through any handle, raises `CollectionDestroyedError`.
        """
        self.store.destroy()

    def compact(self) -> None:
        """Rewrite the data of many small changes, so that reading is faster; the contents are unchanged."""
        self.store.compact()

    def vacuum(self, older_than: float | timedelta = _DAY) -> int:
        """Remove data that no reader can need any more; return the number of pieces.

        Args:
            older_than: seconds, or a timedelta; data that a reader that started since then may need is retained.

        Raises:
            TypeError: `older_than` is neither.
            ValueError: it is negative.
        """
        from dstream.values.time import seconds

        return self.store.vacuum(seconds(older_than, "older_than"))

    def to_arrow(self) -> pa.Table:
        """Return the content as a `pyarrow.Table`; it must fit into the caller's memory.

        Raises:
            UnsupportedError: keys or values are not of one type that Arrow supports.
            TypeError: an entry or item is not of the collection's type.
        """
        import pyarrow as pa

        schema = self.store.schema()
        batches = [batch for split in self._splits() for batch in split.read_arrow()]
        return pa.Table.from_batches(batches, schema=schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return the content as a `pandas.DataFrame`: the conversion of `to_arrow()` by pandas, with its errors."""
        from dstream.schema.tables import data_frame

        return data_frame(self.to_arrow())

    def to_df(self) -> Any:
        """Return the content as a table of the engine: a Spark DataFrame.

        The workers read it from the storage, in parallel, when the DataFrame is used.

        Raises:
            UnsupportedError: the engine has no tables, or Arrow does not support the types.
        """
        schema = self.store.schema()
        return self._runtime.running_engine().data_frame(self._splits(), schema)

    # How it is shown

    def head(self, n: int = _ROWS) -> None:
        """Print a table of the first `n` entries or items; of a map, of any `n`. Long values are cut.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages", key_type=str, value_type=int)
            ...     ages.update({"Ada": 36})
            ...     ages.head()
            IStreamMap 'ages', 1 entry, str -> int
            key     value
            ─────────────
            'Ada'   36
            (1 entry)
        """
        print_brief(*self._first_rows(n))

    def show(self, n: int = _ROWS) -> None:
        """Print a table of the first `n` entries or items with their full values, folded over lines, as `head`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     words = ctx.get_list("words")
            ...     words.append("a" * 70)
            ...     words.show()
            IStreamList 'words', 1 item, str
            index   item
            ────────────────────────────────────────────────────────────────────────────────
            0       'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
            (1 item)
        """
        print_whole(*self._first_rows(n))

    def _first_rows(self, n: int) -> tuple[str, Rows, str]:
        """Return a title, up to `n` rows, and a word about how many those are."""
        about, rows, more = self._seen(count(n, "n"))
        return self._titled(about), rows_under(self._columns, rows), caption(len(rows), self._unit, more=more)

    def __repr__(self) -> str:
        try:
            about, rows, more = self._seen(_FEW)
        except _UNREADABLE as error:  # A `repr` in a debugger or a notebook must not raise.
            return f"{type(self).__name__}({self.name!r}, {_in_short(error)})"
        return f"{type(self).__name__}({self.name!r}, {about}{self._few_shown(rows, more) if rows else ''})"

    def _few_shown(self, rows: Sequence[Sequence[object]], more: bool) -> str:
        few = ", ".join([*(self._written(*row) for row in rows), *["..."][: int(more)]])
        return f": {self._brackets.format(few)}"

    def _repr_html_(self) -> str:
        try:
            about, rows, more = self._seen(_ROWS)
        except _UNREADABLE as error:
            return html_table(self._titled(_in_short(error)), Rows(self._columns, []))
        return html_table(self._titled(about), rows_under(self._columns, rows), "..." if more else "")

    def _titled(self, about: str) -> str:
        return f"{type(self).__name__} {self.name!r}, {about}"

    def _seen(self, n: int) -> tuple[str, list[Sequence[object]], bool]:
        """Return the size and the types in words, up to `n` rows, and whether there are more; reads no other rows."""
        most = self._most()
        rows = self._rows(min(n, most))
        is_all = len(rows) < n or most == n
        size = f"{'' if is_all else self._at_most}{len(rows) if is_all else most}"
        unit = self._unit[size != "1"]
        types = self._types_shown(rows)
        return f"{size} {unit}{', ' + types if types else ''}", rows, not is_all

    def _most(self) -> int:
        """Return an upper bound of the number of entries or items, without reading them."""
        return self.size()

    def _types_shown(self, rows: Sequence[Sequence[object]]) -> str:
        """Return the types of the content in words; `rows` are a sample, and the last column of a row is the value."""
        return type_seen(self.value_type, [row[-1] for row in rows])

    def _written(self, *row: object) -> str:
        return brief(*row)

    def _rows(self, n: int) -> list[Sequence[object]]:
        return list(islice(self._walk(), n))

    def _read(self, splits: Iterable[Any]) -> Iterator[Any]:
        """Yield the contents of the splits, one after another, as long as the context is open."""
        return chain.from_iterable(map(self._content, splits))

    def _while_open(self, read: Iterator[Any]) -> Iterator[Any]:
        """Yield the items of `read`, one after another, as long as the context is open."""
        for each in read:
            self._runtime.check_open()
            yield each

    def _content(self, split: Any) -> Iterator[Any]:
        self._runtime.check_open()
        content: Iterator[Any] = split.read()
        return content

    @abstractmethod
    def _walk(self) -> Iterator[Sequence[object]]:
        """Yield the rows of a table."""

    @abstractmethod
    def _splits(self) -> Sequence[Any]:
        """Return the splits of the content."""

    # What a handle cannot be

    if not TYPE_CHECKING:  # A type checker would accept it for every name.

        def __getattr__(self, name: str) -> NoReturn:
            # imported on use: only needed when a name is unknown
            from dstream.suggestions.collections import no_such_name

            raise AttributeError(no_such_name(type(self), name, self._kind))

    def _stays_in_the_driver(self) -> str:
        """Explain why a function that runs on the workers cannot capture this, and the alternative."""
        return (
            f"cannot be used inside a function that runs on the workers; {self._instead}, and let the function "
            "capture the result"
        )

    def __reduce__(self) -> NoReturn:
        raise SerializationError(f"the {self._kind} {self.name!r} {self._stays_in_the_driver()}")


def _in_short(error: Exception) -> str:
    return "destroyed" if isinstance(error, CollectionDestroyedError) else str(error)


def type_seen(hint: Any, values: Sequence[object]) -> str:
    """Return a type as a user writes it, and the types of values of other types, which a collection may contain too."""
    if not isinstance(hint, type) or all(isinstance(value, hint | None) for value in values):
        return type_shown(hint)
    kinds = (hint if isinstance(value, hint) else type(value) for value in values if value is not None)
    return " | ".join(map(type_shown, dict.fromkeys(kinds)))


def type_shown(hint: Any) -> str:
    """Return a type as a user writes it; nothing for None."""
    if hint is None:
        return ""
    return hint.__qualname__ if isinstance(hint, type) else str(hint).removeprefix("typing.")


class NoTable(Collection[MapStore]):
    """The methods that counters and queues share."""

    @abstractmethod
    def _why_no_table(self) -> str:
        """Return the reason, and the alternative."""
        ...

    def to_arrow(self) -> NoReturn:
        """Refuse: the content is no table.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(self._why_no_table())

    def to_df(self) -> NoReturn:
        """Refuse, as `to_arrow`.

        Raises:
            UnsupportedError: always.
        """
        self.to_arrow()

    def to_pandas(self) -> NoReturn:
        """Refuse, as `to_arrow`.

        Raises:
            UnsupportedError: always.
        """
        self.to_arrow()


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal; a float NaN equals every other.

    A list or a dict finds a NaN by its identity, which a storage does not preserve.
    """
    return left is right or bool(left == right) or (_is_nan(left) and _is_nan(right))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value
