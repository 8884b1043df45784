"""States of keys in a table on disk, for a shard that exceeds the memory of its process.

A row belongs to the hash of a key, and contains all keys of that hash with their states. Rows that an epoch touches are
in memory, as the objects that operators change, and are written back when the next epoch begins. The table is a
temporary SQLite database, below `SQLITE_TMPDIR` or `TMPDIR` as set when the process started, or `/var/tmp`: an unnamed
file, which is deleted with its process, also after a crash. A job restarts from its files of changes and snapshots, not
from this table.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, MutableMapping, ValuesView
from itertools import chain, islice
from typing import Any, TypeVar
from weakref import finalize

from dstream.base import pickling
from dstream.errors import EngineError
from dstream.keys import canonical_all
from dstream.values.time import END_OF_TIME

__all__ = ["DeadlinesOnDisk", "StatesOnDisk"]


S = TypeVar("S")

_AT_ONCE = 500
"""The number of rows of one query; SQLite before 3.32 accepts at most 999 values."""
_MOST_IN_MEMORY = 20_000
_FOLDER = "SQLITE_TMPDIR, TMPDIR, or /var/tmp"
_SETTINGS = ("journal_mode = OFF", "synchronous = OFF", "cache_size = -512", "temp_store = FILE")
"""Nothing has to survive; half a megabyte for pages, since a process may have a hundred shards."""


class StatesOnDisk(MutableMapping[Any, S]):
    """Dictionary of states by canonical key. Iterating over it yields copies.

    Args:
        states: the initial states.
        due: returns the least watermark at which a state is due; None: no state has a due time.
    """

    def __init__(self, states: dict[Any, S], due: Callable[[S], int] | None) -> None:
        self._due = due
        self._near: dict[Any, S] = {}
        self._looked_up: set[int] = set()
        """The hashes whose rows are in memory, or do not exist."""
        self._count = len(states)
        import sqlite3  # Imported lazily, since few jobs need it.

        # An attribute, since `_write` cannot name a module that is imported in another function.
        self._disk_fails = sqlite3.OperationalError
        # Another thread may run the next epoch, never two at once.
        self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        finalize(self, self._table.close)  # Python 3.13 warns of a connection that is not closed.
        for setting in _SETTINGS:
            self._table.execute(f"PRAGMA {setting}")
        self._table.execute("CREATE TABLE states (hash INTEGER PRIMARY KEY, row BLOB, due INTEGER)")
        self._fill(states)
        if due is not None:
            self._table.execute("CREATE INDEX by_due ON states (due)")

    def _fill(self, states: dict[Any, S]) -> None:
        by_hash: dict[int, list[Any]] = {}
        for key, state in states.items():
            by_hash.setdefault(hash(key), []).extend((key, state))
        self._write(by_hash.items())

    # ----------------------------------------------------------------------------------------------------- as a dict

    def __contains__(self, key: Any) -> bool:
        self._look_up(key)
        return key in self._near

    def __getitem__(self, key: Any) -> S:
        self._look_up(key)
        return self._near[key]

    def __setitem__(self, key: Any, state: S) -> None:
        self._look_up(key)
        self._count += key not in self._near
        self._near[key] = state

    def __delitem__(self, key: Any) -> None:
        self._look_up(key)
        del self._near[key]
        self._count -= 1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self.pairs())

    def items(self) -> ItemsView[Any, S]:
        """Return all keys with copies of their states."""
        return _Items(self)

    def values(self) -> ValuesView[S]:
        """Return copies of all states."""
        return _Values(self)

    def pairs(self) -> Iterator[tuple[Any, S]]:
        """Yield all keys with copies of their states."""
        self._write_back()
        for (row,) in self._table.execute("SELECT row FROM states"):
            yield from _pairs(row)

    # ------------------------------------------------------------------------------------------------ rows in memory

    def begin(self, keys: Collection[Any]) -> None:
        """Write back the states in memory, and load the states that an epoch will touch."""
        self._settle()
        self.get_all(keys)

    def get_all(self, keys: Iterable[Any]) -> None:
        """Load the states of keys into memory, in a fifth of the time of single lookups."""
        hashes = iter({number for key in keys if (number := hash(key)) not in self._looked_up})
        while some := list(islice(hashes, _AT_ONCE)):
            marks = ",".join("?" * len(some))
            for (row,) in self._table.execute(f"SELECT row FROM states WHERE hash IN ({marks})", some):
                self._near.update(_pairs(row))
            self._looked_up.update(some)

    def _look_up(self, key: Any) -> None:
        number = hash(key)
        if number not in self._looked_up:
            for (row,) in self._table.execute("SELECT row FROM states WHERE hash = ?", (number,)):
                self._near.update(_pairs(row))
            self._looked_up.add(number)

    def _settle(self) -> None:
        self._write_back()
        self._near.clear()
        self._looked_up.clear()

    def _write_back(self) -> None:
        # All hashes that were looked up: a row whose keys are all gone has to be deleted.
        by_hash: dict[int, list[Any]] = {number: [] for number in sorted(self._looked_up)}
        for key, state in self._near.items():
            by_hash[hash(key)] += (key, state)
        gone = [(number,) for number, row in by_hash.items() if not row]
        self._write(((number, row) for number, row in by_hash.items() if row), gone)

    def _write(self, rows: Iterable[tuple[int, list[Any]]], gone: Collection[tuple[int]] = ()) -> None:
        written = ((number, pickling.dumps(row), self._due_of(row)) for number, row in rows)
        try:
            self._table.execute("BEGIN")
            self._table.executemany("INSERT OR REPLACE INTO states VALUES (?, ?, ?)", written)
            self._table.executemany("DELETE FROM states WHERE hash = ?", gone)
            self._table.execute("COMMIT")
        except self._disk_fails as error:
            raise EngineError(f"{error}, where states of keys move to disk: it needs room in {_FOLDER}") from error

    def _due_of(self, row: list[Any]) -> int | None:
        """Return the least watermark at which a state of a row is due; None: it is beyond all watermarks."""
        least = None if self._due is None else min(map(self._due, row[1::2]))
        return least if least is not None and least <= END_OF_TIME else None  # SQLite has numbers of 64 bits.

    # ---------------------------------------------------------------------------------------------------------- time

    def least(self) -> int | None:
        """Return the least watermark at which a state is due."""
        assert self._due is not None, "states wait for time"
        # Rows in memory may be newer than the table: their deadlines follow from their states.
        near = map(self._due, self._near.values())
        far = (due for number, due in self._by_due() if number not in self._looked_up)
        return min(chain(near, islice(far, 1)), default=None)

    def _by_due(self) -> Iterator[tuple[int, int]]:
        """Return the hash and the due time of rows as they were written, sorted by due time."""
        return iter(self._table.execute("SELECT hash, due FROM states WHERE due IS NOT NULL ORDER BY due"))

    def passed(self, watermark: int) -> list[Any]:
        """Return the keys with the earliest deadlines up to `watermark`, in the order of the deadlines.

        Their states are in memory then. The list is empty only if no deadline is up to `watermark`.
        """
        assert self._due is not None, "states wait for time"
        if len(self._near) > _MOST_IN_MEMORY:
            self._settle()
        rows = self._table.execute("SELECT hash, row, due FROM states WHERE due <= ? ORDER BY due", (watermark,))
        far = list(islice((row for row in rows if row[0] not in self._looked_up), _AT_ONCE))
        for number, row, _ in far:
            self._near.update(_pairs(row))
            self._looked_up.add(number)
        # Deadlines after the deadline of the last loaded row are for the next call.
        last = far[-1][2] if len(far) == _AT_ONCE else watermark
        due = self._due
        found = ((at, key) for key, state in self._near.items() if (at := due(state)) <= last)
        return [key for _, key in sorted(found, key=_first)]


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


def _pairs(row: bytes) -> Iterator[tuple[Any, Any]]:
    found: list[Any] = pickle.loads(row)
    return zip(canonical_all(found[::2]), found[1::2], strict=True)  # A NaN that was pickled is another object.


class _Items(ItemsView[Any, Any]):
    def __init__(self, states: StatesOnDisk[Any]) -> None:
        super().__init__(states)
        self._states = states

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self._states.pairs()


class _Values(ValuesView[Any]):
    def __init__(self, states: StatesOnDisk[Any]) -> None:
        super().__init__(states)
        self._states = states

    def __iter__(self) -> Iterator[Any]:
        return (state for _, state in self._states.pairs())


class DeadlinesOnDisk:
    """`KeyDeadlines` of states on disk, from their table.

    Args:
        states: the states with deadlines.
    """

    def __init__(self, states: StatesOnDisk[Any]) -> None:
        self._states = states

    def note(self, key: Any, deadline: int) -> None:
        """Do nothing: the deadline of a key follows from its state."""

    def forget(self, key: Any) -> None:
        """Do nothing: the deadline of a key follows from its state."""

    def fill(self, deadlines: Iterable[tuple[Any, int]]) -> None:
        """Do nothing: the deadline of a key follows from its state."""

    def least(self) -> int | None:
        """Return the least deadline; None without any."""
        return self._states.least()

    def passed(self, watermark: int) -> Iterator[Any]:
        """Yield the keys whose deadlines `watermark` has reached. The caller must change the deadline of each key."""
        while keys := self._states.passed(watermark):
            yield from keys
