"""Finding stores by name, and what their options are."""

from __future__ import annotations

from collections import namedtuple

import pytest

from dstream.spi.store import Options


def test_names_are_found_by_another_handle(backend, storage, use):
    """What one handle makes, another one opens: a store lives in the storage."""
    use.put(use.map(storage, "found"), {"k": "v"})

    found = backend.open().open("map", "found", Options())

    assert found.name == "found"
    assert found.get_many(["k"]) == ["v"]


def test_names_open_of_an_unknown_name_is_none(storage):
    """Opening makes nothing."""
    assert storage.open("map", "unknown", Options()) is None
    assert storage.open("list", "unknown", Options()) is None
    assert storage.names() == []


def test_names_belong_to_a_kind(storage, use):
    """A map, a list and a cache of one name have nothing in common."""
    use.put(use.map(storage, "same"), {"k": 1})
    use.list(storage, 5, name="same")
    storage.create("cache", "same", Options(ttl=60))

    assert storage.names() == [("cache", "same"), ("list", "same"), ("map", "same")]
    assert storage.create("map", "same", Options()).size() == 1
    assert storage.create("cache", "same", Options()).size() == 0


@pytest.mark.parametrize("name", ["a/b", "..", "a b", "Ä", "with%2Fpercent", "{tag}", "a:b", "x" * 150, ".hidden", "A"])
def test_names_of_any_text_work(backend, storage, use, name):
    """A name is text, whatever it means to files and servers."""
    use.put(use.map(storage, name), {"k": name})
    use.map(storage, "a")

    assert storage.names() == sorted([("map", "a"), ("map", name)])
    assert use.map(backend.open(), name).get_many(["k"]) == [name]


def test_names_are_made_once_by_many_at_a_time(backend, use):
    """All that create one name at the same time get the same store."""
    use.together(*[lambda n=n: use.put(use.map(backend.open(), "one"), {n: n}) for n in range(4)])

    assert use.content(use.map(backend.open(), "one")) == {n: n for n in range(4)}


def test_close_keeps_the_stores_and_may_be_repeated(backend, use):
    """Closing gives back connections, not data."""
    storage = backend.open()
    use.put(use.map(storage), {"k": 1})
    storage.close()
    storage.close()

    assert use.map(backend.open()).get_many(["k"]) == [1]


def test_storage_has_the_url_that_was_connected_to(backend, storage):
    """A storage says where it is."""
    assert storage.url == backend.url


def test_options_left_open_are_chosen(storage, use):
    """A map has buckets and says whether it keeps a journal; its types are open."""
    options = use.map(storage).options

    assert options.buckets >= 1
    assert (options.key_type, options.value_type) == (None, None)
    assert (options.journal, options.strict) == (False, False)


def test_options_that_are_given_stay(backend, storage):
    """Another handle sees the options that the store was made with."""
    options = Options(key_type=str, value_type=list[float], buckets=3, journal=True, strict=True)
    storage.create("map", "m", options)
    storage.create("cache", "c", Options(ttl=2.5, max_idle=60))

    assert backend.open().create("map", "m", Options()).options == options
    found = backend.open().open("cache", "c", Options()).options
    assert (found.ttl, found.max_idle) == (2.5, 60)


def test_options_of_a_store_may_be_repeated(backend, storage):
    """Options that say what is so are no contradiction."""
    options = Options(key_type=str, value_type=int, buckets=3, journal=True)

    assert storage.create("map", "m", options).options == backend.open().create("map", "m", options).options
    assert backend.open().open("map", "m", options) is not None


def test_options_types_are_decided_by_the_first_commit(backend, storage, use):
    """The first entry says what keys and values are, to handles that were there before too."""
    early, store = use.map(backend.open()), use.map(storage)
    use.put(store, {"k": 1})
    use.put(store, {2: "other types are kept too"})

    for handle in (store, early, use.map(backend.open())):
        assert (handle.options.key_type, handle.options.value_type) == (str, int)


def test_options_types_are_decided_by_a_job(backend, storage, use):
    """A job that commits first decides, too, and so does the first item of a list."""
    early, store = use.map(backend.open()), use.map(storage)
    use.run(store, "job", {n: float(n) for n in range(5)})

    assert [(handle.options.key_type, handle.options.value_type) for handle in (early, store)] == [(int, float)] * 2
    assert use.list(storage, "text").options.value_type is str


def test_options_types_are_not_decided_by_what_changes_nothing(storage, use):
    """Looking, removing what is not there, or raising leaves the types open."""
    store = use.map(storage)
    store.get_many([1])
    store.update([1], lambda old: [None])
    with pytest.raises(ZeroDivisionError):
        store.update([1], lambda old: [1 / 0])

    assert (store.options.key_type, store.options.value_type) == (None, None)


def test_options_types_given_later_settle_what_was_open(backend, storage, use):
    """A type that is given before the first commit holds for everybody."""
    early = use.map(backend.open())
    use.map(storage, value_type=float)
    use.put(early, {"k": 7})

    assert early.options.value_type is float
    with pytest.raises(ValueError, match="int"):
        use.map(storage, value_type=int)


@pytest.mark.parametrize(
    ("made", "asked", "both"),
    [
        ({"key_type": str}, {"key_type": int}, ("str", "int")),
        ({"value_type": str}, {"value_type": list[int]}, ("str", r"list\[int\]")),
        ({"buckets": 3}, {"buckets": 5}, ("3", "5")),
        ({"journal": True}, {"journal": False}, ("True", "False")),
        ({}, {"journal": True}, ("False", "True")),
        ({"strict": True}, {"strict": False}, ("True", "False")),
        ({"ttl": 5}, {"ttl": 7}, ("5", "7")),
    ],
)
def test_options_that_contradict_are_refused(backend, storage, made, asked, both):
    """The message names the collection, what there is and what was asked for; open refuses as create does."""
    kind = "cache" if "ttl" in made else "map"
    storage.create(kind, "shop", Options(**made))

    for find in (backend.open().create, backend.open().open):
        with pytest.raises(ValueError, match="shop") as caught:
            find(kind, "shop", Options(**asked))
        for text in both:
            caught.match(text)


def test_options_of_a_decided_store_that_contradict_are_refused(backend, storage, use):
    """What the first commit decided counts as if it had been given."""
    use.put(use.map(storage), {"k": 1})

    with pytest.raises(ValueError, match=r"(?s)int.*str|str.*int"):
        use.map(backend.open(), value_type=str)


def test_options_strict_refuses_other_types(storage, use):
    """A strict map takes what is exactly of its types, and nothing is kept of a change with anything else."""
    store = use.map(storage, key_type=str, value_type=int, strict=True)

    for entries in ({"a": 1, "b": "no int"}, {"a": 1, "b": True}, {"a": 1, 2: 2}):
        with pytest.raises(TypeError, match="m"):
            use.put(store, entries)
    with pytest.raises(TypeError, match="no int"):
        use.run(store, "job", {"b": "no int"})
    assert use.content(store) == {}


def test_options_strict_holds_for_lists_and_types_decided_later(storage, use):
    """In a strict store the first item or entry says what all the others must be."""
    items, store = use.list(storage, 1, strict=True), use.map(storage, strict=True)
    with pytest.raises(TypeError, match="text"):
        items.extend([2, "text"])
    use.put(store, {"a": 1})
    with pytest.raises(TypeError, match="text"):
        use.run(store, "job", {"b": "text"})

    assert use.items(items) == [1]
    assert use.content(store) == {"a": 1}


def test_options_strict_holds_between_the_tasks_of_a_job(storage, use):
    """Where the first task decides the types, what another one wrote must be of them, or nothing is committed."""
    items, store = use.list(storage, strict=True), use.map(storage, strict=True)
    appending, job = items.begin("job"), store.begin("job")
    other = next(n for n in range(1, 999) if job.writer.bucket_of(n) != job.writer.bucket_of(0))
    receipts = [*use.tasks(job, {0: 1}), *use.tasks(job, {other: "text"})]

    with pytest.raises(TypeError, match="text"):
        job.commit(receipts)
    with pytest.raises(TypeError, match="text"):
        appending.commit([*use.task(appending, [1]), *use.task(appending, ["text"])])
    assert (store.size(), items.size()) == (0, 0)


def test_in_process_says_whether_other_processes_can_read(backend, storage, use):
    """Only a store that nobody else can reach has splits that hold the data."""
    assert use.map(storage).in_process is not backend.shared
    assert use.list(storage).in_process is not backend.shared


Point = namedtuple("Point", "x y")


def test_options_key_type_gives_keys_their_form(storage, use):
    """Equal keys are one key, and come back in the form of the key type."""
    floats = use.map(storage, "floats", key_type=float)
    points = use.map(storage, "points", key_type=tuple)
    use.put(floats, {1: "one"})
    use.put(points, {Point(1, 2): "point"})

    assert [type(key) for key in use.content(floats)] == [float]
    assert [type(key) for key in use.content(points)] == [tuple]


@pytest.mark.parametrize(("name", "error"), [("", ValueError), ("a\ud800", ValueError), (5, TypeError)], ids=repr)
def test_names_that_are_none_are_refused(storage, name, error):
    """An empty name, half a character or a number names nothing, in every storage."""
    for find in (storage.create, storage.open):
        with pytest.raises(error, match="the name of a collection"):
            find("map", name, Options())
    assert storage.names() == []


@pytest.mark.parametrize("buckets", [1.5, "4", True], ids=repr)
def test_options_take_an_int_for_buckets(storage, buckets):
    """What is no int is refused before anything is made."""
    with pytest.raises(TypeError, match=f"map 'm'.*{buckets!r}"):
        storage.create("map", "m", Options(buckets=buckets))
    assert storage.names() == []
