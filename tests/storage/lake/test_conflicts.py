"""Commits that meet: each test lets another handle act between two steps of a change."""

from __future__ import annotations

import pytest

from dstream.spi.store import Splice

LOG = "_delta_log"


class Counting:
    """A change that adds one, and counts how often it ran."""

    def __init__(self):
        self.runs = 0

    def __call__(self, old):
        self.runs += 1
        return [(value or 0) + 1 for value in old]


def _meeting(lake, interruption, action):
    """Return a map whose next commit comes after `action` of another handle, and the hook of it."""
    hook = interruption("create", LOG, lambda: action(lake.map()))
    store = lake.map(hook, buckets=1)
    lake.put(store, a=1, b=1)
    hook.armed, hook.seen = True, []
    return store, hook


def test_conflict_on_another_key_writes_nothing_twice(lake, interruption):
    """The change does not run again, and the file that was written is used for the next version."""
    store, hook = _meeting(lake, interruption, lambda other: lake.put(other, b=10))
    change = Counting()

    assert store.update(["a"], change) == [1]
    assert (change.runs, hook.seen.count("writing"), hook.seen.count("create")) == (1, 1, 2)
    assert store.get_many(["a", "b"]) == lake.map().get_many(["a", "b"]) == [2, 10]


def test_conflict_on_the_same_key_runs_the_change_again(lake, interruption):
    """Nothing is lost, and the old value is the one that was replaced."""
    store, _ = _meeting(lake, interruption, lambda other: lake.put(other, a=41))
    change = Counting()

    assert store.update(["a"], change) == [41]
    assert change.runs == 2
    assert lake.map().get_many(["a"]) == [42]
    assert len(lake.files(store)) == 3, "the file of the first attempt is gone"


@pytest.mark.parametrize("action", ["compact", "clear", "destroy"])
def test_conflict_with_maintenance(lake, interruption, action):
    """Compaction is no conflict; clear is one; destroy ends it."""
    store, _ = _meeting(lake, interruption, lambda other: getattr(other, action)())
    change = Counting()
    try:
        old = store.update(["a"], change)
    except RuntimeError as error:
        old = type(error).__name__

    assert (old, change.runs) == {
        "compact": ([1], 1),
        "clear": ([None], 2),
        "destroy": ("CollectionDestroyedError", 1),
    }[action]


def test_conflict_with_the_first_commit_takes_its_types(lake, interruption):
    """Two first commits decide different types: the later one is written again under the types of the winner."""
    hook = interruption("create", LOG, lambda: lake.put(lake.map(), s="text"))
    store = lake.map(hook)
    hook.armed = True
    lake.put(store, n=7)

    assert store.options.value_type is str
    assert lake.content(lake.map()) == {"s": "text", "n": 7}


def test_conflict_with_itself_is_none(lake, interruption):
    """A request that an object store answered with "exists" because it came twice has one effect."""
    hook = interruption("create", LOG, lambda: None)
    store = lake.map(hook, buckets=1)
    folder = store.log.folder
    lake.put(store, a=1)
    store.log.folder = _Twice(folder)

    assert store.update(["a"], Counting()) == [1]
    assert lake.map().get_many(["a"]) == [2]
    assert store.log.version == 1


class _Twice:
    """A folder whose client sends every creation twice, and hears only the second answer."""

    def __init__(self, folder):
        self._folder = folder

    def create(self, path, data):
        self._folder.create(path, data)
        return self._folder.create(path, data)

    def __getattr__(self, name):
        return getattr(self._folder, name)


def test_conflict_of_a_compaction_that_came_second_changes_nothing(lake, interruption):
    """Two handles fold the same files: the second notices and removes its own output."""
    hook = interruption("create", LOG, lambda: lake.map().compact())
    store = lake.map(hook, buckets=1)
    for n in range(5):
        lake.put(store, **{f"k{n}": n})
    hook.armed = True
    store.compact()

    assert lake.content(store) == lake.content(lake.map()) == {f"k{n}": n for n in range(5)}
    assert len(store.log.files()) == 1
    assert len(lake.files(store)) == 6


def test_conflict_of_a_list_edit_runs_it_again(lake, interruption):
    """An edit sees what was appended meanwhile."""
    hook = interruption("create", LOG, lambda: lake.list().extend(["new"]))
    items = lake.list(hook)
    items.extend(["a", "b"])
    hook.armed = True
    sizes = []
    items.edit(lambda view: sizes.append(view.size) or Splice(view.size - 1, view.size, []))

    assert sizes == [2, 3]
    assert lake.items(items) == ["a", "b"]


def test_conflict_of_a_list_edit_with_compaction_does_not(lake, interruption):
    """A compaction moves the items to other files; the edit finds them there."""
    hook = interruption("create", LOG, lambda: lake.list().compact())
    items = lake.list(hook)
    for n in range(4):
        items.extend([n])
    hook.armed = True
    runs = []
    items.edit(lambda view: runs.append(1) or Splice(1, 2, ["x", "y"]))

    assert len(runs) == 1
    assert lake.items(lake.list()) == [0, "x", "y", 2, 3]


def test_change_that_uses_the_map_itself_is_not_lost(lake):
    """A change may put into the same map, through the same handle."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    seen = []

    def change(old):
        seen.append(old[0])
        if len(seen) == 1:
            lake.put(store, a=5)
        return [old[0] + 1]

    store.update(["a"], change)

    assert seen == [1, 5]
    assert store.get_many(["a"]) == [6]


def test_interruption_while_a_commit_is_taken_over_harms_nothing(lake, monkeypatch):
    """Ctrl-C right after the commit was made: the handle reads it again from the log, once."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    with monkeypatch.context() as patched:
        patched.setattr(store.log, "_advance", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            lake.put(store, a=2)
    assert store.update(["a"], Counting()) == [2]

    assert lake.content(store) == lake.content(lake.map()) == {"a": 3}
    assert len(store.log.groups[0]) == len(store.log.files()) == 3


@pytest.mark.parametrize("splice", [Splice(0, 3, []), Splice(-1, 1, []), Splice(2, 1, ["x"])])
def test_splice_outside_of_the_list_is_refused(lake, splice):
    """An IndexError that names the list, and nothing changes."""
    items = lake.list()
    items.extend(["a", "b"])
    with pytest.raises(IndexError, match="list 'l' has 2 items"):
        items.edit(lambda view: splice)

    assert lake.items(items) == ["a", "b"]


def test_strict_map_refuses_before_anything_is_written(lake):
    """A value that is not exactly of the type leaves no file."""
    store = lake.map(key_type=str, value_type=int, strict=True)
    with pytest.raises(TypeError, match="map 'm' is strict"):
        lake.put(store, a=1, b=True)

    assert lake.files(store) == set()
