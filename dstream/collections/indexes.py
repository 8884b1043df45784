"""`Indexes`: the keys of a map by the values of indexed fields, updated from its journal.

An index is built from the entries and all later events; every write of every writer is in the journal of the same
commit. Each look-up first applies the new events. `field_index` has the index of one field.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from dstream.collections.base import PIECES
from dstream.errors import CollectionDestroyedError, IllegalStateError
from dstream.keys import canonical
from dstream.spi.store import MapStore
from dstream.values import Entry, Predicate
from dstream.values.predicates import And, Comparison, IsNone, OneOf, Or

if TYPE_CHECKING:
    from dstream.collections.field_index import FieldIndex, Kind

__all__ = ["Indexes"]


_NOT_MADE = -1
_TRIES = 3
_FEW = 1000
_PART = 4
"""A look-up that finds more than `_FEW` entries, and more than one in `_PART`, is replaced by a read of all entries."""


class Indexes:
    """The indexes of one handle. Threads may share it."""

    def __init__(self, store: MapStore) -> None:
        self._store = store
        from dstream.base.threads import RenewedLock  # imported on use: few maps have indexes

        self._lock = RenewedLock()  # Reading a field may run a property of the user's, which may use the index, too.
        self._by_path: dict[str, FieldIndex] = {}
        self._forms: dict[Any, Any] = {}
        """Keys as the map returns them, by their identities, where these differ."""
        self._end = _NOT_MADE

    def add(self, path: str, kind: Kind) -> None:
        """Add an index, which reads all entries once; one of the same field is replaced."""
        from dstream.collections.field_index import FieldIndex  # imported on use: it loads `uuid` and `datetime`

        with self._lock:
            self._by_path[path] = FieldIndex(path, kind)
            self._end = _NOT_MADE
            self._follow()

    def look_up(self, predicate: object) -> list[Entry[Any, Any]] | None:
        """Return all entries that may satisfy a condition, as of one moment; None if no index helps, or not enough.

        Raises:
            CollectionDestroyedError: the map is no more.
        """
        if not isinstance(predicate, Predicate) or not self._by_path:
            return None
        with self._lock:
            for _ in range(_TRIES):
                end = self._follow()
                keys = self._candidates(predicate)
                if keys is None or len(keys) > max(_FEW, self._size() // _PART):
                    return None
                known = [self._forms.get(key, key) for key in keys]
                values = self._store.get_many(known) if known else []
                # If nothing happened since, the index and the values are of the same state.
                if self._store.journal_end() == end:
                    return [Entry(*pair) for pair in zip(known, values, strict=True) if pair[1] is not None]
        return None

    def _size(self) -> int:
        return len(next(iter(self._by_path.values())))

    def _follow(self) -> int:
        """Process the events since the last time; return the end of the journal that was reached."""
        end = self._store.journal_end()
        if end == self._end:
            return end
        # If the update fails or is interrupted, the index is rebuilt at the next look-up.
        since, self._end = self._end, _NOT_MADE
        try:
            self._end = self._build() if since == _NOT_MADE else self._take_events(since, end)
        except CollectionDestroyedError:
            raise
        except IllegalStateError:  # A vacuum has removed events that were not applied yet.
            self._end = self._build()
        return self._end

    def _build(self) -> int:
        """Read all entries, and the events meanwhile: an event that is processed twice changes nothing."""
        self._forms.clear()
        for index in self._by_path.values():
            index.clear()
        # Read before the entries, so that no event between the two is missed.
        since = self._store.journal_end()
        for split in self._store.splits(PIECES):
            for key, value in split.read():
                self._put(key, value)
        return self._take_events(since, self._store.journal_end())

    def _take_events(self, since: int, end: int) -> int:
        for event in self._store.journal(since):
            self._put(event.key, event.new_value)
            end = max(end, event.offset)
        return end

    def _put(self, key: Any, value: Any) -> None:
        known = canonical(key)
        self._forms.pop(known, None)
        if known is not key and value is not None:
            self._forms[known] = key
        for index in self._by_path.values():
            index.remove(known)
            if value is not None:
                index.add(known, Entry(key, value))

    def _candidates(self, predicate: Predicate) -> Collection[Any] | None:
        """Return the keys of all entries that satisfy a condition, maybe others too; None if no index has it."""
        match predicate:
            case Comparison(path, "==", value) if path in self._by_path:
                return self._by_path[path].equal_to([value])
            case OneOf(path, values) if path in self._by_path:
                return self._by_path[path].equal_to(values)
            case IsNone(path) if path in self._by_path:
                return self._by_path[path].equal_to([None])
            case Comparison(path) if path in self._by_path:
                return self._by_path[path].between([predicate])
            case And(parts):
                return self._of_all(parts)
            case Or(parts):
                found = [self._candidates(part) for part in parts]
                return None if any(keys is None for keys in found) else set().union(*filter(None, found))
        return None

    def _of_all(self, parts: tuple[Predicate, ...]) -> Collection[Any] | None:
        """Return the fewest keys that one of several conditions, or all comparisons of one field together, leave."""
        found = [self._candidates(part) for part in parts if not _is_bound(part)]
        bounds = [part for part in parts if isinstance(part, Comparison) and _is_bound(part)]
        found += [
            index.between([each for each in bounds if each.path == path]) for path, index in self._by_path.items()
        ]
        return min((keys for keys in found if keys is not None), key=len, default=None)


def _is_bound(predicate: Predicate) -> bool:
    return isinstance(predicate, Comparison) and predicate.symbol in ("<", "<=", ">", ">=")
