"""Destroying: the store and its name disappear at once, and old handles say so for ever."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

from dstream.errors import CollectionDestroyedError
from dstream.spi.store import Options, Splice

STORE = {
    "size": lambda store: store.size(),
    "destroy": lambda store: store.destroy(),
    "schema": lambda store: store.schema(),
    "compact": lambda store: store.compact(),
    "vacuum": lambda store: store.vacuum(0),
    "splits": lambda store: store.splits(2),
    "begin": lambda store: store.begin("job"),
    "begin_replace": lambda store: store.begin(None, replace=True),
}
MAP = {
    "get_many": lambda store: store.get_many(["k"]),
    "get_many_nothing": lambda store: store.get_many([]),
    "update": lambda store: store.update(["k"], lambda old: [1]),
    "clear": lambda store: store.clear(),
    "journal": lambda store: list(store.journal(0)),
}
LIST = {
    "read": lambda store: store.read(0, 1),
    "read_nothing": lambda store: store.read(0, 0),
    "extend": lambda store: store.extend([1]),
    "edit": lambda store: store.edit(lambda view: Splice(0, 0, [1])),
    "edit_nothing": lambda store: store.edit(lambda view: None),
}


def _made(storage, use, kind):
    if kind == "list":
        return use.list(storage, 1, name="gone")
    store = storage.create(kind, "gone", Options(journal=True if kind == "map" else None))
    use.put(store, {"k": 1})
    return store


@pytest.mark.parametrize("kind", ["map", "list", "cache"])
def test_destroy_removes_the_name(backend, storage, use, kind):
    """No handle finds it any longer, and others of the name stay."""
    _made(storage, use, kind).destroy()
    use.map(storage, "stays")

    assert backend.open().names() == storage.names() == [("map", "stays")]
    assert backend.open().open(kind, "gone", Options()) is None


@pytest.mark.parametrize("kind", ["map", "list", "cache"])
def test_destroy_ends_every_operation_of_every_handle(backend, storage, use, kind):
    """Whatever is asked of an old handle, the answer is that the collection was destroyed, by name."""
    store = _made(storage, use, kind)
    other = backend.open().open(kind, "gone", Options())
    assert other.size() == 1
    store.destroy()

    for name, operation in (STORE | (LIST if kind == "list" else MAP)).items():
        for handle in (store, other):
            caught = _raised(operation, handle)
            assert isinstance(caught, CollectionDestroyedError), name
            assert "gone" in str(caught)


def _raised(operation, store):
    try:
        return operation(store)
    except Exception as error:
        return error


@pytest.mark.parametrize("kind", ["map", "list", "cache"])
def test_destroy_and_create_again_starts_empty(backend, storage, use, kind):
    """The new store of the name has nothing of the old one, also no options; old handles stay dead."""
    old = _made(storage, use, kind)
    old.destroy()
    new = backend.open().create(kind, "gone", Options())

    assert new.size() == 0
    assert new.options.value_type is None
    assert not new.begin("job").is_done
    for operation in STORE.values():
        with pytest.raises(CollectionDestroyedError):
            operation(old)
    assert new.size() == 0


@pytest.mark.parametrize("kind", ["map", "list", "cache"])
def test_destroy_ends_an_identity(backend, storage, use, kind):
    """Every handle of a store has its identity; a store that is made later under its name has another one."""
    old = _made(storage, use, kind)
    other = backend.open().open(kind, "gone", Options())
    before = old.identity
    assert other.identity == before
    old.destroy()

    assert backend.open().create(kind, "gone", Options()).identity not in ("", before)


@pytest.mark.parametrize("kind", ["map", "list"])
def test_destroy_ends_a_job_that_has_begun(storage, use, kind):
    """A commit after that is refused; it does not bring the collection back. Giving up never raises."""
    store = _made(storage, use, kind)
    job = store.begin("job")
    receipts = use.task(job, [2]) if kind == "list" else use.tasks(job, {"k": 2})
    store.destroy()

    with pytest.raises(CollectionDestroyedError, match="gone"):
        job.commit(receipts)
    with pytest.raises(CollectionDestroyedError, match="gone"):
        _ = job.is_done
    job.abort()
    assert storage.names() == []


@pytest.mark.parametrize("kind", ["map", "list"])
def test_destroy_in_the_middle_of_a_change_ends_it(backend, storage, use, kind):
    """A change that meets a destroyed collection when it writes is refused, also if it is made again by then."""
    store = _made(storage, use, kind)

    def change(result):
        other = backend.open()
        other.open(kind, "gone", Options()).destroy()
        _made(other, use, kind)
        return result

    write = {
        "map": lambda: store.update(["k"], lambda old: change([7])),
        "list": lambda: store.edit(lambda view: change(Splice(0, 0, [7]))),
    }
    with pytest.raises(CollectionDestroyedError):
        write[kind]()
    assert storage.open(kind, "gone", Options()).size() == 1


def test_destroy_at_the_same_time_succeeds_once(backend, use):
    """Of many that destroy one store, one does it and the others hear that it was done."""
    stores = [use.map(backend.open()) for _ in range(4)]
    ended = []

    def destroy(store):
        try:
            store.destroy()
        except CollectionDestroyedError:
            ended.append("refused")
        else:
            ended.append("destroyed")

    use.together(*[lambda s=s: destroy(s) for s in stores])
    assert sorted(ended) == ["destroyed", "refused", "refused", "refused"]


def _destroy(backend, kind):
    backend.open().open(kind, "gone", Options()).destroy()


@pytest.mark.usefixtures("shared")
def test_destroy_by_another_process_ends_the_handles_here(backend, storage, use, elsewhere):
    """A handle that has read before does not answer from what it remembers."""
    store = _made(storage, use, "map")
    assert store.get_many(["k"]) == [1]
    elsewhere(_destroy, backend, "map").returned()

    for operation in MAP.values():
        with pytest.raises(CollectionDestroyedError):
            operation(store)


@pytest.fixture(scope="module")
def few_objects():
    """Freeze the millions of objects of all tests before: they are neither collected nor counted again."""
    gc.collect()
    gc.freeze()


def _objects():
    """Count the objects of storages by their type."""
    gc.collect()
    types = (type(each) for each in gc.get_objects())
    return Counter(kind.__qualname__ for kind in types if str(kind.__module__).startswith("dstream.storage."))


@pytest.mark.parametrize("kind", ["map", "list", "cache"])
@pytest.mark.parametrize("by", ["its handle", "another storage"])
@pytest.mark.usefixtures("few_objects")
def test_destroyed_collections_leave_no_objects(backend, storage, use, kind, by):
    """Neither handles nor logs nor codecs stay, whoever has destroyed them; also where one listed or vacuumed them."""
    if by == "another storage" and not backend.shared:
        pytest.skip("memory is of one process")
    other = storage if by == "its handle" else backend.open()

    def come_and_go():
        _made(storage, use, kind).size()
        other.open(kind, "gone", Options()).destroy()
        assert storage.names() == []
        storage.vacuum(0)

    come_and_go()
    before = _objects()
    for _ in range(4):
        come_and_go()
    assert _objects() - before == Counter()
