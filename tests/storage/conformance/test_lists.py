"""Lists: order, stretches, and that a list does what a Python list does."""

from __future__ import annotations

import random

import pytest

from dstream.spi.store import Splice


def test_list_keeps_its_items_in_order(storage, use):
    """Items stand as they were appended, None and equal ones too."""
    store = use.list(storage, 3, None, 1)
    store.extend([None, 3])

    assert store.read(0, 10) == use.items(store) == [3, None, 1, None, 3]
    assert store.size() == 5


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 2), (1, 3), (2, 99), (5, 5), (7, 9), (3, 1)])
def test_list_read_gives_a_stretch(storage, use, start, stop):
    """Fewer items at the end are no error."""
    store = use.list(storage, *"abcde")

    assert store.read(start, stop) == list("abcde")[start:stop]


def test_list_extend_is_all_or_nothing(storage, use):
    """When the items end in an exception, none of them is appended; no items are no change."""
    store = use.list(storage, 1)
    with pytest.raises(ZeroDivisionError):
        store.extend(1 // (2 - n) for n in range(5))
    store.extend([])

    assert store.read(0, 9) == [1]


def test_list_extend_by_itself(storage, use):
    """The items may be read from the list itself."""
    store = use.list(storage, 1, 2)
    store.extend(item for part in store.splits(2) for item in part.read())

    assert store.read(0, 9) == [1, 2, 1, 2]


def test_list_edit_replaces_a_stretch(storage, use):
    """`change` looks at the list and says what becomes of it."""
    store = use.list(storage, *range(5))
    store.edit(lambda view: Splice(1, 3, [view.size, view.read(0, 2), None]))

    assert store.read(0, 9) == [0, 5, [0, 1], None, 3, 4]


def test_list_edit_with_none_or_an_exception_changes_nothing(storage, use):
    """None means nothing to do; an exception passes through."""
    store = use.list(storage, 1, 2)
    store.edit(lambda view: None)
    with pytest.raises(ZeroDivisionError):
        store.edit(lambda view: Splice(0, 1, [1 // 0]))

    assert store.read(0, 9) == [1, 2]


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (2, 1), (0, 4), (4, 4)])
def test_list_edit_refuses_a_stretch_outside(storage, use, start, stop):
    """A splice lies inside the list, or nothing happens."""
    store = use.list(storage, 1, 2, 3)

    with pytest.raises((IndexError, ValueError), match="l"):
        store.edit(lambda view: Splice(start, stop, [0]))
    assert store.read(0, 9) == [1, 2, 3]


@pytest.mark.parametrize("compete", ["extend", "edit", "job"])
def test_list_edit_runs_again_when_the_list_changed(backend, storage, use, compete):
    """A competing change makes `change` run again on the fresh list; neither is lost."""
    store, other, sizes = use.list(storage, 1), use.list(backend.open()), []

    def change(view):
        if not sizes:
            _compete(other, use, compete)
        sizes.append(view.size)
        return Splice(view.size, view.size, ["end"])

    store.edit(change)
    assert sizes == [1, 2]
    assert store.read(0, 9)[-1] == "end"
    assert sorted(map(str, store.read(0, 9))) == ["1", "9", "end"]


def _compete(store, use, how):
    if how == "extend":
        store.extend([9])
    elif how == "edit":
        store.edit(lambda view: Splice(0, 0, [9]))
    else:
        job = store.begin("competing")
        job.commit(use.task(job, [9]))


@pytest.mark.parametrize("compete", ["extend", "edit", "job"])
def test_list_view_stays_while_the_list_changes(backend, storage, use, compete):
    """A view is one state: what others do meanwhile does not show in it."""
    store, other, runs, seen = use.list(storage, 1, 2, 3), use.list(backend.open()), [], []

    def change(view):
        runs.append(view.read(0, 1))
        if len(runs) == 1:
            _compete(other, use, compete)
        seen.append((view.size, view.read(0, 99)))

    store.edit(change)
    assert seen[-1] in ((3, [1, 2, 3]), (4, store.read(0, 99)))


def test_list_changes_are_seen_by_every_other_handle(backend, storage, use):
    """What returned before an operation starts is seen by it."""
    store, other = use.list(storage, 1), use.list(backend.open())
    other.extend([2])
    store.edit(lambda view: Splice(0, 1, []))

    assert (store.read(0, 9), other.read(0, 9), other.size()) == ([2], [2], 1)


def test_list_edit_learns_a_type_that_is_given_meanwhile(backend, storage, use):
    """A type that somebody gives while `change` runs is the type; the edit does not decide another one."""

    def change(view):
        use.list(backend.open(), value_type=float)
        return Splice(0, 0, [1])

    use.list(storage).edit(change)
    assert use.list(backend.open()).options.value_type is float


@pytest.mark.parametrize("compete", ["extend", "edit", "job"])
def test_list_type_is_decided_once(backend, storage, use, compete):
    """A handle from before the first commit learns the type from it, and does not decide again."""
    early, late = use.list(backend.open()), use.list(backend.open())
    use.list(storage, "text")
    _compete(early, use, compete)

    assert late.options.value_type is early.options.value_type is str
    assert sorted(map(str, late.read(0, 9))) == ["9", "text"]


def test_list_extended_by_threads_loses_nothing(backend, use):
    """Every item is there once, and those of one extend stand together."""
    stores = [use.list(backend.open()) for _ in range(3)]

    def extend(store, writer):
        for n in range(10):
            store.extend([(writer, n), (writer, n)])

    use.together(*[lambda w=w: extend(stores[w], w) for w in range(3)])
    items = stores[0].read(0, 99)
    assert items[::2] == items[1::2]
    assert sorted(items[::2]) == [(writer, n) for writer in range(3) for n in range(10)]


@pytest.mark.parametrize("seed", range(3))
def test_list_does_what_a_python_list_does(storage, use, seed):
    """Random changes side by side: appending, replacing, inserting, deleting, in the middle and at the ends."""
    random_ = random.Random(seed)
    store, model = use.list(storage, None), [None]
    for step in range(60):
        start = random_.randint(0, len(model))
        stop = random_.randint(start, min(len(model), start + 3))
        items = random_.choices([step, str(step), None, [step]], k=random_.randint(0, 3))
        if random_.random() < 0.4:
            store.extend(items)
            model.extend(items)
        else:
            store.edit(lambda view, a=start, b=stop, new=items: Splice(a, b, new))
            model[start:stop] = items
        assert store.read(start, stop + 2) == model[start : stop + 2]
    assert (store.read(0, 999), store.size(), use.items(store)) == (model, len(model), model)
