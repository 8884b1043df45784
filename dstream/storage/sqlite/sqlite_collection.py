"""`Collection`: what one collection is, and where; it travels to tasks."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dstream.errors import IllegalStateError
from dstream.spi.store import Kind, Options
from dstream.storage.checking import NOT_UNDERSTOOD
from dstream.storage.codec.codec import Codec
from dstream.storage.codec.described_codec import described_codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.shape import Shape
from dstream.storage.sqlite.sqlite_database import DAMAGE, Place
from dstream.storage.sqlite.sqlite_schema import content_table, journal_of
from dstream.storage.vanished import destroyed_error

__all__ = ["KEEP_SECONDS", "Collection", "State", "types_of"]

KEEP_SECONDS = 86_400.0
"""How long staged data and pins stay if nobody removes them."""


class State(NamedTuple):
    """The entry of a collection in the database.

    Attributes:
        types: its types as they are stored.
        version: how often a list has changed.
        size: the number of items of a list; 0 for maps, whose entries are not counted.
    """

    types: str
    version: int
    size: int


@dataclass(frozen=True)
class Collection:
    """One collection in a database. One of the same name that is made later has another number."""

    place: Place
    number: int
    kind: Kind
    name: str
    shape: Shape
    asked: Options
    pickles: Pickles

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    @functools.cached_property
    def table(self) -> str:
        """The table of its entries or items, quoted."""
        return content_table(self.kind, self.name, self.number)

    @property
    def journal(self) -> str:
        """The table of its changes, quoted."""
        return journal_of(self.table)

    @property
    def staged(self) -> str:
        """The folder of what tasks have written for it.

        Raises:
            IllegalStateError: it is a symbolic link, or one of those above it beside the database.
        """
        files = self.place.files
        for folder in (files, f"{files}/staged", f"{files}/staged/{self.number}"):
            if os.path.islink(folder):
                raise IllegalStateError(
                    f"{self}: {folder} is a symbolic link, which may lead anywhere; put the folder itself there"
                )
        return folder

    def state(self, connection: sqlite3.Connection) -> State:
        """Look at the collection inside a transaction.

        Raises:
            CollectionDestroyedError: it is no more.
        """
        found = connection.execute("SELECT types, version, size FROM dstream_collections WHERE id = ?", (self.number,))
        row = found.fetchone()
        if row is None:
            raise destroyed_error(self)
        return State(*row)

    def settle(self, connection: sqlite3.Connection, types: str, codec: Codec) -> None:
        """Write down types that were decided, inside a transaction that saw `types`."""
        settled = types_of(codec)
        if settled != types:
            connection.execute("UPDATE dstream_collections SET types = ? WHERE id = ?", (settled, self.number))

    @contextlib.contextmanager
    def changes_at_one_time(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Give the events of all statements inside the time of the last one: a trigger knows that of its own."""
        if not self.shape.journal:
            yield
            return
        newest = f"SELECT max(offset) FROM {self.journal}"
        since = connection.execute(newest).fetchone()[0] or 0
        yield
        time_of_newest = f"SELECT at FROM {self.journal} WHERE offset = ({newest})"
        connection.execute(f"UPDATE {self.journal} SET at = ({time_of_newest}) WHERE offset > ?", (since,))

    def codec(self, types: Any) -> Codec:
        """Return the codec of types as they are stored.

        Raises:
            IllegalStateError: they are no types.
        """
        try:
            data = json.loads(types)
        except NOT_UNDERSTOOD as error:
            raise self.damaged(f"dstream_collections holds no types of it: {error}") from error
        return described_codec(data, self.kind, self.name, self.asked, self.pickles)

    def check_items(self, found: int, start: int, stop: int) -> None:
        """Compare the number of items that were read with their positions, of which each has one item.

        Raises:
            IllegalStateError: some are missing.
        """
        if found != max(0, stop - start):
            raise self.damaged(f"of the items at positions {start} to {stop - 1} only {found} can be read")

    def damaged(self, why: str) -> IllegalStateError:
        """Return the error that says that the database does not hold what dstream has written there."""
        return IllegalStateError(f"{self} in the storage sqlite:{self.place.path} is damaged: {why}; {DAMAGE}")


def types_of(codec: Codec) -> str:
    """Return the types of a codec as they are stored."""
    return json.dumps(codec.to_json(), sort_keys=True)
