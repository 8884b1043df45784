"""Splits: the entries or items of one state, divided, readable anywhere."""

from __future__ import annotations

import pickle

import pytest

from dstream.errors import UnsupportedError
from dstream.spi.store import Splice


@pytest.mark.parametrize("count", [0, 1, 2, 5_000])
@pytest.mark.parametrize("parallelism", [1, 3, 8])
def test_splits_cover_every_entry_once(storage, use, parallelism, count):
    """However many splits there are, together they have each entry once."""
    store = use.map(storage)
    if count:
        use.put(store, {n: str(n) for n in range(count)})

    pairs = [pair for split in store.splits(parallelism) for pair in split.read()]
    assert sorted(pairs) == [(n, str(n)) for n in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2, 5_000])
@pytest.mark.parametrize("parallelism", [1, 3, 8])
def test_splits_of_a_list_keep_its_order(storage, use, parallelism, count):
    """One split after the other, the items stand as in the list."""
    store = use.list(storage, *range(count))

    assert [item for split in store.splits(parallelism) for item in split.read()] == list(range(count))


def test_splits_keep_many_cores_busy(storage, use):
    """With entries enough there are several splits, none of which has everything."""
    store = use.map(storage)
    use.put(store, dict.fromkeys(range(5_000), 1))
    items = use.list(storage, *range(5_000))

    for splits in (store.splits(4), items.splits(4)):
        sizes = [len(list(split.read())) for split in splits]
        assert sum(size > 0 for size in sizes) >= 3
        assert max(sizes) < 4_000


def test_splits_of_written_and_rewritten_entries_are_current(storage, use):
    """Removed entries and overwritten values do not come back, whatever was written by job and whatever by hand."""
    store = use.map(storage)
    use.run(store, "job", dict.fromkeys(range(10), 0))
    use.put(store, dict.fromkeys(range(5), 1))
    store.update([0, 9], lambda old: [None, None])
    use.run(store, "next", {8: 2, 9: 2})

    assert use.content(store) == {1: 1, 2: 1, 3: 1, 4: 1, 5: 0, 6: 0, 7: 0, 8: 2, 9: 2}


def test_splits_are_pinned(backend, storage, use):
    """What was written after the splits were made does not show in them."""
    if not backend.pins:
        pytest.skip("redis pins a bucket when it is read, as the contract says")
    store = use.map(storage)
    use.put(store, {"a": 1, "b": 2})
    splits = store.splits(2)
    use.put(store, {"a": 10, "c": 3})
    use.run(store, "job", {"b": 20}, replace=True)

    assert dict(pair for split in splits for pair in split.read()) == {"a": 1, "b": 2}


@pytest.mark.parametrize("change", ["extend", "edit", "replace"])
def test_splits_of_a_list_are_pinned(backend, storage, use, change):
    """The items of a list are read as they were, whatever became of the list since."""
    store = use.list(storage, 1, 2, 3)
    splits = store.splits(2)
    job = store.begin("job", replace=True)
    {
        "extend": lambda: store.extend([4]),
        "edit": lambda: store.edit(lambda view: Splice(0, 2, [9])),
        "replace": lambda: job.commit(use.task(job, [9])),
    }[change]()

    assert [item for split in splits for item in split.read()] == [1, 2, 3]
    assert use.items(store)[-1] == {"extend": 4, "edit": 3, "replace": 9}[change]


def test_splits_can_be_read_again_and_in_part(storage, use):
    """`read` gives the same items each time, also after an earlier reader stopped halfway."""
    store = use.map(storage)
    use.put(store, dict.fromkeys(range(100), 1))
    [split] = store.splits(1)
    reader = split.read()
    next(reader)
    getattr(reader, "close", lambda: None)()

    assert list(split.read()) == list(split.read())
    assert len(list(split.read())) == 100


def _read(splits):
    return [list(split.read()) for split in splits]


def test_splits_are_read_in_another_process(storage, use, elsewhere):
    """They travel pickled, and need nothing of the process in which they were made."""
    store, items = use.map(storage), use.list(storage, *range(100))
    use.put(store, {n: [n] for n in range(100)})

    entries = elsewhere(_read, pickle.loads(pickle.dumps(store.splits(3)))).returned()
    assert sorted(pair for part in entries for pair in part) == [(n, [n]) for n in range(100)]
    parts = elsewhere(_read, items.splits(3)).returned()
    assert [item for part in parts for item in part] == list(range(100))


def test_splits_give_columns(storage, use):
    """`read_arrow` gives the same entries by the schema of the store."""
    store, items = use.map(storage), use.list(storage, 1.5, 2.5)
    use.put(store, {n: f"text {n}" for n in range(100)})

    batches = [batch for split in store.splits(3) for batch in split.read_arrow()]
    rows = {row["key"]: row["value"] for batch in batches for row in batch.to_pylist()}
    assert rows == {n: f"text {n}" for n in range(100)}
    assert {str(batch.schema) for batch in batches} == {str(store.schema())}
    assert [batch.to_pydict() for part in items.splits(1) for batch in part.read_arrow()] == [{"value": [1.5, 2.5]}]


def test_splits_refuse_columns_for_what_does_not_fit(storage, use):
    """An entry of another type is a TypeError that names it; it never becomes something else."""
    store = use.map(storage)
    use.put(store, {1: 1})
    use.put(store, {2: "no number"})

    with pytest.raises(TypeError, match="no number"):
        [batch for split in store.splits(1) for batch in split.read_arrow()]


def test_schema_says_what_the_columns_are(storage, use):
    """Key and value for a map, value alone for a list; unknown before the first commit."""
    store = use.map(storage)
    with pytest.raises(UnsupportedError, match="m"):
        store.schema()
    use.put(store, {"k": 1})

    assert store.schema().names == ["key", "value"]
    assert [str(type) for type in store.schema().types] == ["string", "int64"]
    assert use.list(storage, 1).schema().names == ["value"]


def test_schema_of_values_without_columns_is_refused(storage, use):
    """Values of a kind that Arrow does not know have no schema; the message says so."""
    store = use.map(storage)
    use.put(store, {"k": {1, 2}})

    with pytest.raises(UnsupportedError, match="set"):
        store.schema()
