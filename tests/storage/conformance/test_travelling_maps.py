"""A map that travelled to a task is read there as it is now."""

from __future__ import annotations

import pickle

import cloudpickle

from dstream.spi.store import Options


def _read(store, keys):
    return store.get_many(keys), store.size()


def test_a_map_that_travels_reads_its_entries(storage, use, elsewhere):
    """In another process, with all kinds of keys."""
    store = use.map(storage)
    use.put(store, {"a": 1, "b": [2, None]})

    assert elsewhere(_read, store, ["b", "c", "a"]).returned() == ([[2, None], None, 1], 2)


def test_a_map_that_has_travelled_sees_what_is_written_later(backend, storage, use):
    """Where other processes reach the storage; otherwise it is a copy."""
    store = use.map(storage)
    use.put(store, {"a": 1})
    there = pickle.loads(cloudpickle.dumps(store))
    assert there.get_many(["a"]) == [1]
    use.put(store, {"a": 2, "b": 3})

    assert there.get_many(["a", "b"]) == ([2, 3] if backend.shared else [1, None])


def test_a_map_travels_before_its_types_are_decided(backend, storage, use):
    """They are those of the first commit, which comes later."""
    store = storage.create("map", "late", Options())
    there = pickle.loads(cloudpickle.dumps(store))
    use.put(store, {1: 1.5})

    assert there.get_many([1, True, 1.0, "1"]) == ([1.5, 1.5, 1.5, None] if backend.shared else [None] * 4)
