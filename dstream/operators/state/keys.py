"""`KeyStates`: the states of the keys of a shard, their changes and their deadlines.

A later deadline of a key, as with each item that prolongs its state, costs nothing until the old deadline is the least
of all: only then the new deadline is computed. So the heap has about one entry for each key, not one for each item.

The state of a key may contain an object of the user's that changes in place. A delta contains these objects, not
copies: the caller pickles it before the next `apply`. A dump contains copies.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping
from typing import Any, Generic, NamedTuple, TypeVar

from dstream.keys import canonical_all
from dstream.operators.state.disk import DeadlinesOnDisk, StatesOnDisk
from dstream.operators.state.items import ItemsByKey

__all__ = ["NEVER_COPIED", "ChangedKeys", "DumpedKeys", "KeyDeadlines", "KeyStates", "copies"]


class KeyDeadlines:
    """The deadlines of keys: the least watermark at which something happens to each.

    Args:
        of: returns the deadline of a key now; None if it has none any more.
    """

    def __init__(self, of: Callable[[Any], int | None]) -> None:
        self._of = of
        self._heap: list[tuple[int, int, Any]] = []
        """(deadline, number, key): the number precedes keys, which may have no order."""
        self._entered: dict[Any, int] = {}
        """The valid deadline of each key; other entries of the heap are outdated."""
        self._numbers = itertools.count()

    def note(self, key: Any, deadline: int) -> None:
        """Take the deadline of a key that is new, or whose deadline may be earlier than before."""
        entered = self._entered.get(key)
        if entered is None or deadline < entered:
            self._entered[key] = deadline
            heapq.heappush(self._heap, self._entry(deadline, key))

    def forget(self, key: Any) -> None:
        """Remove the deadline of a key: an equal key that arrives later replaces it."""
        self._entered.pop(key, None)

    def fill(self, deadlines: Iterable[tuple[Any, int]]) -> None:
        """Replace all deadlines by the deadlines of many keys at once."""
        self._entered = dict(deadlines)
        self._heap = list(zip(self._entered.values(), self._numbers, self._entered, strict=False))
        heapq.heapify(self._heap)

    def least(self) -> int | None:
        """Return the least deadline; None without any."""
        while self._heap:
            deadline, _, key = self._heap[0]
            actual = self._of(key) if self._entered.get(key) == deadline else None
            if actual == deadline:
                return deadline
            self._replace(key, deadline, actual)
        return None

    def _replace(self, key: Any, deadline: int, actual: int | None) -> None:
        """Replace the first entry by the current deadline."""
        if actual is not None:
            self._entered[key] = actual
            heapq.heapreplace(self._heap, self._entry(actual, key))
            return
        heapq.heappop(self._heap)
        if self._entered.get(key) == deadline:
            del self._entered[key]

    def passed(self, watermark: int) -> Iterator[Any]:
        """Yield the keys whose deadlines `watermark` has reached, by their deadlines.

        The caller must change the deadline of each key before it requests the next key.
        """
        while (deadline := self.least()) is not None and deadline <= watermark:
            yield self._heap[0][2]

    def _entry(self, deadline: int, key: Any) -> tuple[int, int, Any]:
        return deadline, next(self._numbers), key


S = TypeVar("S")


class DumpedKeys(NamedTuple):
    """The keys of a shard with their states, as columns."""

    keys: list[Any]
    states: list[Any]


class ChangedKeys(NamedTuple):
    """The keys of a shard whose states changed, with their new states, and the removed keys.

    A key may be in both: its state was removed, and it has a new one.
    """

    keys: list[Any]
    states: list[Any]
    removed: list[Any]


class KeyStates(Generic[S]):
    """`ShardState` without its epochs. The *state* of a key is the data of the operator for it.

    Args:
        due: returns the least watermark at which a state is due; None: states have no due time.
    """

    def __init__(self, due: Callable[[S], int] | None = None) -> None:
        self._states: MutableMapping[Any, S] = {}
        self._touched: dict[Any, None] = {}
        """The keys with a state that changed, each as it was at its first arrival."""
        self._removed: dict[Any, None] = {}
        self._due = due
        self._deadlines: KeyDeadlines | DeadlinesOnDisk = KeyDeadlines(self._deadline_of)

    def _deadline_of(self, key: Any) -> int | None:
        return self._due(self._states[key]) if self._due is not None and key in self._states else None

    def _put(self, key: Any, state: S) -> None:
        """Set or replace the state of a key."""
        self._states[key] = state
        self._touched[key] = None
        self._note(key, state)

    def _note(self, key: Any, state: S) -> None:
        if self._due is not None:
            self._deadlines.note(key, self._due(state))

    def _remove(self, key: Any) -> S:
        """Remove the state of a key, and return it."""
        self._removed[key] = None
        self._touched.pop(key, None)  # An equal key that arrives later, such as 1.0 for 1, replaces it.
        self._deadlines.forget(key)
        return self._states.pop(key)

    def to_disk(self) -> bool:
        """Move the states to a table on disk if they are many; return whether that was done now."""
        if len(self._states) < _MANY or isinstance(self._states, StatesOnDisk):
            return False
        assert isinstance(self._states, dict), "they are in memory"
        self._states = on_disk = StatesOnDisk(self._states, self._due)
        if self._due is not None:
            self._deadlines = DeadlinesOnDisk(on_disk)
        return True

    def _begin(self, partials: Iterable[ItemsByKey]) -> None:
        """Load the states of the keys that have arrived, if states are on disk."""
        if isinstance(self._states, StatesOnDisk):
            self._states.begin(canonical_all([key for partial in partials for key in partial.keys]))

    def delta(self) -> Any | None:
        """Return the states of the keys that were touched, and the keys that were removed."""
        touched, self._touched = self._touched, {}
        removed, self._removed = self._removed, {}
        if not touched and not removed:
            return None
        # In one query: an eviction of this epoch may have moved touched states back to the table.
        if isinstance(self._states, StatesOnDisk):
            self._states.get_all(touched)
        return ChangedKeys(list(touched), [self._states[key] for key in touched], list(removed))

    def patch(self, delta: Any) -> None:
        """Apply a delta: remove states, and set changed states."""
        changed: ChangedKeys = delta
        if isinstance(self._states, StatesOnDisk):
            self._states.begin(canonical_all([*changed.removed, *changed.keys]))
        # Removed first: a key may be in both lists, with a state that is new.
        for key in canonical_all(changed.removed):
            self._states.pop(key, None)
            self._deadlines.forget(key)
        for key, state in zip(canonical_all(changed.keys), changed.states, strict=True):
            self._states[key] = state
            self._note(key, state)

    def dump(self) -> Any:
        """Return all keys with copies of their states."""
        if not isinstance(self._states, StatesOnDisk):
            return DumpedKeys(list(self._states), copies(self._states.values()))
        dumped = DumpedKeys([], [])
        # Iterating over a table yields copies already.
        for key, state in self._states.items():
            dumped.keys.append(key)
            dumped.states.append(state)
        return dumped

    def load(self, dumped: Any) -> None:
        """Take the keys with their states."""
        self._states = dict(zip(canonical_all(dumped.keys), dumped.states, strict=True))
        if self._due is not None:
            due = map(self._due, self._states.values())
            self._deadlines.fill(zip(self._states, due, strict=True))

    def deadline(self) -> int | None:
        """Return the least watermark at which a state is due."""
        return self._deadlines.least()

    def clock_deadline(self) -> float | None:
        """Return None: no state depends on the clock."""
        return None

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Return the keys with their states."""
        return iter(self._states.items())

    def __len__(self) -> int:
        """Return how many keys have a state."""
        return len(self._states)


def copies(states: Collection[Any]) -> list[Any]:
    """Return copies of states that share nothing with them."""
    if NEVER_COPIED.issuperset(map(type, states)):
        return list(states)
    try:  # In one call, a tenth of the time of `deepcopy`.
        found: list[Any] = pickle.loads(pickle.dumps(list(states), pickle.HIGHEST_PROTOCOL))
    except Exception:  # Pickle does not find a class of the user's script; the dump is pickled by value.
        return copy.deepcopy(list(states))
    return found


_MANY = 1000
"""Fewer keys take less memory than a table of their own does."""
NEVER_COPIED = frozenset({int, float, str, bytes, bool, type(None)})
"""Types of states that need no copy: not all immutable types, since a `datetime` may have a mutable time zone."""
