"""Keys, values and functions that use the collection that they belong to: nothing hangs, and no change is lost.

Whoever holds no lock meanwhile cannot hang. The lake holds a reentrant one, since it decodes into caches that threads
share; there, the same thread may use the collection.
"""

from __future__ import annotations

import pickle
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from dstream.spi.store import UNCHANGED, Options, Revision, Splice, Update

WAIT = 20.0
"""Seconds after which a lock that another thread waits for counts as held."""
HANG_SECONDS = 120
"""Seconds after which a test counts as hung, even on a busy machine."""


class Probe:
    """A use of a collection, by another thread if no lock of the calling one may be held.

    Attributes:
        uses: the number of uses so far.
        use: uses the collection; None until a test has one, and during a use.
        by_thread: whether another thread uses it.
    """

    def __init__(self) -> None:
        self.uses = 0
        self.use: Callable[[], object] | None = None
        self.by_thread = True

    def __call__(self) -> None:
        """Use the collection, and wait for that."""
        use, self.use = self.use, None
        if use is not None:
            if self.by_thread:
                _use_in_thread(use)
            else:
                use()
            self.uses, self.use = self.uses + 1, use

    def __reduce__(self) -> str:
        return "probe"  # a merge function that travels uses the probe of this module


def _use_in_thread(use: Callable[[], object]) -> None:
    done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            use()
        except BaseException as error:
            done.put(error)
        else:
            done.put(None)

    threading.Thread(target=run, daemon=True).start()
    try:
        error = done.get(timeout=WAIT)
    except queue.Empty:
        raise AssertionError("code of the user runs while a lock of the storage is held") from None
    if error is not None:
        raise error


probe = Probe()


class Key(Fraction):
    """A key that uses the collection whenever it is encoded."""

    @property
    def numerator(self) -> int:
        probe()
        return Fraction.numerator.fget(self)  # type: ignore[attr-defined,no-any-return]


class Value:
    """A value that uses the collection whenever it is pickled or loaded."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        probe()
        return _loaded, (self.number,)


def _loaded(number: int) -> Value:
    probe()
    return Value(number)


KEYS = [Key(1, 3), Key(2, 3)]


def _entries(*numbers: int) -> dict[Any, Any]:
    return dict(zip(KEYS, map(Value, numbers), strict=True))


def _numbers(values: Any) -> list[int]:
    return sorted(value.number for value in values)


@pytest.fixture(autouse=True)
def hang() -> Iterator[None]:
    """Fail a test that hangs: a signal interrupts the main thread also while it waits for a lock."""

    def fail(*_: Any) -> None:
        raise AssertionError(f"nothing has happened for {HANG_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(HANG_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def used(backend, storage) -> Iterator[Callable[[Any], Any]]:
    """Use a store in keys, values and functions from now on; at the end, they must have done so."""
    probe.uses, probe.by_thread = 0, backend.name != "lake"

    def use(store: Any) -> Any:
        kind = "map" if hasattr(store, "get_many") else "list"

        def once() -> None:
            store.size()
            assert storage.open(kind, store.name, Options()).name == store.name
            assert (kind, store.name) in storage.names()

        probe.use = once
        return store

    yield use
    probe.use = None
    assert probe.uses


@pytest.fixture
def entries(storage, use, used) -> Any:
    """A map of two entries whose keys and values use it."""
    store = use.map(storage, journal=True, key_type=Fraction, value_type=object)
    use.put(store, _entries(1, 2))
    return used(store)


def test_keys_may_use_the_map_when_they_are_looked_up(entries):
    """Keys are encoded and values loaded without a lock, one key or several."""
    assert _numbers(entries.get_many(KEYS)) == [1, 2]
    assert _numbers(entries.get_many(KEYS[:1])) == [1]


@pytest.mark.parametrize("count", [1, 2])
def test_values_may_use_the_map_when_they_are_changed(entries, count):
    """So do the function, the old and the new values of a change."""

    def change(old):
        probe()
        return [Value(value.number + 10) for value in old]

    old = entries.update(KEYS[:count], change)

    assert _numbers(old) == [1, 2][:count]
    assert _numbers(entries.get_many(KEYS[:count])) == [11, 12][:count]


def test_values_may_use_the_map_that_takes_its_types_from_them(storage, use, used):
    """The first change decides the types, and removes nothing that was put meanwhile."""
    store = used(use.map(storage))
    use.put(store, _entries(1, 2))

    assert _numbers(store.get_many(KEYS)) == [1, 2]


def test_values_may_use_the_map_that_compares_them(backend, entries, use):
    """A change that runs again compares the old values without a lock."""
    other, runs = use.map(backend.open(), journal=True), []

    def change(old):
        if not runs:
            use.put(other, _entries(7, 8))
        runs.append(_numbers(old))
        return [UNCHANGED, Value(old[1].number + 1)]

    entries.update(KEYS, change)

    assert runs == [[1, 2], [7, 8]]
    assert _numbers(entries.get_many(KEYS)) == [7, 9]


@pytest.mark.parametrize("options", [{}, {"journal": True}, {"buckets": 1}], ids=["plain", "journal", "one bucket"])
def test_values_may_change_the_entry_that_they_become(storage, use, used, options):
    """A change of the same entry while the new value is encoded makes the function run again."""
    store, runs = use.map(storage, **options), []
    use.put(store, {"a": 1, "b": 1})
    used(store)

    def change(old):
        probe.use = None if runs else lambda: use.put(store, {"a": 10})
        runs.append(old)
        return [Value(old[0] + old[1]), UNCHANGED]

    store.update(["a", "b"], change)

    assert runs == [[1, 1], [10, 1]]
    assert _numbers(store.get_many(["a"])) == [11]


def test_entries_may_use_the_map_that_is_read(entries, use):
    """Splits, the journal and the copy of a map for tasks load keys and values without a lock."""
    assert _numbers(use.content(entries).values()) == [1, 2]
    assert _numbers(event.new_value for event in entries.journal(0)) == [1, 2]
    assert _numbers(pickle.loads(pickle.dumps(entries)).get_many(KEYS)) == [1, 2]
    assert entries.size() == 2


def test_entries_may_use_the_map_that_is_cleared(entries, use):
    """An entry that goes into the journal as removed is not encoded under a lock."""
    entries.clear()

    assert use.content(entries) == {}
    assert [event.kind for event in entries.journal(0)] == ["ADDED"] * 2 + ["REMOVED"] * 2


MERGES = {
    "put": (None, [5, 6]),
    "replace": (None, [5, 6]),
    "function": (lambda old, new: probe() or Value(old.number + new.number), [6, 8]),
    "revision": (Revision(lambda key, old: probe() or Value(old.number + 1)), [2, 3]),
    "update": (Update(lambda key, old, items: probe() or Value(old.number + items.number)), [6, 8]),
}


@pytest.mark.parametrize("name", MERGES)
def test_entries_may_use_the_map_that_a_job_writes(entries, use, name):
    """Tasks and the commit of a job encode, merge and load without a lock."""
    merge, expected = MERGES[name]
    use.run(entries, "job", _entries(5, 6), merge=merge, replace=name == "replace")

    assert _numbers(entries.get_many(KEYS)) == expected


@pytest.mark.parametrize("name", ["function", "revision", "update"])
def test_entries_may_use_the_map_whose_job_merges_again(backend, entries, use, name):
    """A commit that finds other values than the tasks merges with these without a lock."""
    merge, expected = MERGES[name]
    job = entries.begin("job", merge=merge)
    receipts = use.tasks(job, _entries(5, 6))
    use.put(use.map(backend.open(), journal=True), _entries(11, 12))
    job.commit(receipts)

    assert _numbers(entries.get_many(KEYS)) == [number + 10 for number in expected]


@pytest.fixture
def items(storage, use, used) -> Any:
    """A list of two items that use it."""
    return used(use.list(storage, Value(1), Value(2), value_type=object))


def _asking(*numbers: int) -> Iterator[Value]:
    for number in numbers:
        probe()
        yield Value(number)


def test_items_may_use_the_list_that_they_are_appended_to(items):
    """An iterator and what it gives are read and encoded without a lock."""
    items.extend(_asking(3, 4))

    assert _numbers(items.read(0, 9)) == [1, 2, 3, 4]


def test_items_may_use_the_list_that_takes_its_type_from_them(storage, use, used):
    """The first items decide the type, also of a list in which they look meanwhile."""
    store = used(use.list(storage))
    store.extend(_asking(1, 2))

    assert _numbers(store.read(0, 9)) == [1, 2]


@pytest.mark.parametrize(("start", "stop", "expected"), [(0, 1, [2, 5]), (1, 1, [1, 2, 5]), (2, 2, [1, 2, 5])])
def test_items_may_use_the_list_that_is_edited(items, start, stop, expected):
    """So do the function, the items that it sees and those that it puts in."""

    def change(view):
        probe()
        assert _numbers(view.read(0, view.size)) == [1, 2]
        return Splice(start, stop, [Value(5)])

    items.edit(change)

    assert _numbers(items.read(0, 9)) == expected


def test_items_may_change_the_list_that_they_are_put_into(storage, use, used):
    """A change of the list while the new items are encoded makes the function run again."""
    store, runs = use.list(storage, 1), []
    used(store)

    def change(view):
        probe.use = None if runs else lambda: store.extend([2])
        runs.append(view.read(0, 9))
        return Splice(view.size, view.size, [Value(sum(runs[-1]))])

    store.edit(change)

    assert runs == [[1], [1, 2]]
    assert [getattr(item, "number", item) for item in store.read(0, 9)] == [1, 2, 3]


@pytest.mark.parametrize("replace", [False, True], ids=["append", "replace"])
def test_items_may_use_the_list_that_a_job_writes(items, use, replace):
    """Tasks and the commit of a job encode without a lock."""
    job = items.begin("job", replace=replace)
    job.commit(use.task(job, _asking(3, 4)))

    assert _numbers(items.read(0, 9)) == ([3, 4] if replace else [1, 2, 3, 4])


def test_items_may_use_the_list_that_is_read(items, use):
    """Splits load items without a lock."""
    assert _numbers(use.items(items)) == [1, 2]
    assert items.size() == 2


def test_items_may_use_the_list_that_is_compacted(items):
    """Maintenance loads and encodes nothing under a lock."""
    items.extend(_asking(3))
    items.compact()
    items.vacuum(0)

    assert _numbers(items.read(0, 9)) == [1, 2, 3]
