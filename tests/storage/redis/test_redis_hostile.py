"""A server on which somebody else has changed keys: errors name the collection, and no key of others is lost."""

from __future__ import annotations

import json

import pytest

from dstream.errors import DStreamError, IllegalStateError
from dstream.spi.store import Options

TYPES = json.dumps({"key": "str", "value": "int", "strict": False})


def made(storage, **options):
    """Make a map with one entry, and return it with the beginning of its keys."""
    store = storage.create("map", "m", Options(**options))
    store.update(["a"], lambda old: [1])
    return store, store._collection.key("")


@pytest.mark.parametrize("identity", [b"x", b"", b"a" * 33, b"A" * 32, b"\xff", b"a}:meta", b"../../" + b"a" * 26])
def test_redis_identity_is_32_hex_digits(storage, server, identity):
    """It becomes part of keys."""
    storage.create("map", "m", Options())
    server.hset("dstream:names", "map:m", identity)

    for attempt in (storage.names, *[lambda: storage.open("map", "m", Options())] * bool(identity)):
        with pytest.raises(IllegalStateError, match="dstream:names holds the identity"):
            attempt()


@pytest.mark.parametrize("name", [b"bag:x", b"map:", b"", b"\xff\xff"])
def test_redis_names_have_a_kind(storage, server, name):
    """What is no name of a collection is none of ours."""
    server.hset("dstream:names", name, "a" * 32)

    with pytest.raises(IllegalStateError, match="dstream:names holds the name"):
        storage.names()


@pytest.mark.parametrize(
    "change",
    [
        {"buckets": 10**12},
        {"buckets": 0},
        {"buckets": -1},
        {"buckets": "16"},
        {"buckets": True},
        {"buckets": None},
        {"journal": "yes"},
        {"ttl": "1"},
        {"ttl": float("nan")},
        {"max_idle": -1},
        {"more": 1},
    ],
)
def test_redis_shape_is_checked(storage, server, change):
    """A number of buckets that nobody could list does not keep the process busy for ever."""
    _, prefix = made(storage)
    shape = json.loads(server.hget(f"{prefix}meta", "shape"))
    server.hset(f"{prefix}meta", "shape", json.dumps({**shape, **change}))

    with pytest.raises(IllegalStateError, match="map 'm' is damaged"):
        storage.open("map", "m", Options())


@pytest.mark.parametrize(
    ("field", "data"),
    [
        ("shape", b"[]"),
        ("shape", b"\xff"),
        ("shape", b"[" * 100_000),
        ("types", b"5"),
        ("types", b"{"),
        ("types", b'{"key": {"list": 5}, "value": null, "strict": false}'),
        ("types", b'{"key": {"other": 5, "classes": [], "open": 1}, "value": null, "strict": false}'),
        ("types", b'{"key": null, "value": {"record": "a:b", "fields": [["x", "int"], ["x", "int"]]}, "strict": 1}'),
        ("types", b'{"key": null, "strict": true}'),
        ("types", b'{"key": ' + b'{"list":' * 5000 + b"5" + b"}" * 5001),
        ("kind", b"list"),
        ("name", b"other"),
    ],
)
def test_redis_description_is_checked(storage, server, field, data):
    """What does not describe the collection is an error that names it."""
    _, prefix = made(storage)
    server.hset(f"{prefix}meta", field, data)

    with pytest.raises(IllegalStateError, match="map 'm' is damaged"):
        storage.open("map", "m", Options()).get_many(["a"])


VALUES = [b"\xc7", b"\xdd\xff\xff\xff\xff", b"\xc7\x04\x06abcd", b"\xc7\x00\x09", b"\xd4\x14\x90", b"\xc1", b"\xc1\x80"]


@pytest.mark.parametrize("value", [*VALUES, b"\x81" * 5000, b"\xc7\x01\x05\x00", b"\xc7\x03\x0bxyz", b"\xa2\xffa"])
def test_redis_value_that_is_none_names_the_map(storage, server, value):
    """Whatever msgpack, struct, datetime or pickle say about it."""
    store, prefix = made(storage, buckets=1)
    server.hset(f"{prefix}b:0", b"sa", value)

    for attempt in (
        lambda: store.get_many(["a"]),
        lambda: store.update(["a"], lambda old: [2]),
        lambda: list(store.splits(1)[0].read()),
    ):
        with pytest.raises((IllegalStateError, TypeError), match="map 'm'"):
            attempt()


@pytest.mark.parametrize(
    "key", [b"", b"?", b"u1", b"T\x00\x00\x00\x09a", b"Ex", b"z1", b"R\x00\x00\x00\x01s", b"q", b"D"]
)
def test_redis_key_that_is_none_names_the_map(storage, server, key):
    """What does not decode is no key."""
    store, prefix = made(storage, buckets=1)
    server.hset(f"{prefix}b:0", key, b"\x01")

    with pytest.raises((IllegalStateError, TypeError), match="map 'm'"):
        list(store.splits(1)[0].read())


@pytest.mark.parametrize("part", ["meta", "b:0", "journal", "jobs", "temporary"])
def test_redis_key_of_another_type_names_the_map(storage, server, part):
    """A text where a hash should be is said in terms of the collection."""
    store, prefix = made(storage, buckets=1, journal=True)
    server.delete(f"{prefix}{part}")
    server.set(f"{prefix}{part}", "x")

    def everything():
        store.get_many(["a"])
        list(store.journal(0))
        store.update(["a"], lambda old: [3])
        list(store.splits(1)[0].read())
        store.begin("job").commit([])
        store.vacuum(0)

    with pytest.raises(DStreamError, match="map 'm' is damaged"):
        everything()


@pytest.mark.parametrize("event", [{"x": 1}, {"k": "", "o": "", "n": ""}, {"k": "?", "o": "", "n": "\x01"}])
def test_redis_journal_is_checked(storage, server, event):
    """An event that is none, or whose key is none."""
    store, prefix = made(storage, journal=True)
    server.xadd(f"{prefix}journal", event, id="2-0")
    server.hset(f"{prefix}meta", "offset", 2)

    with pytest.raises(IllegalStateError, match="map 'm' is damaged"):
        list(store.journal(0))
    server.hset(f"{prefix}meta", "offset", "x")
    with pytest.raises(IllegalStateError, match="map 'm' is damaged"):
        list(store.journal(0))


@pytest.mark.parametrize("act", [lambda store: store.vacuum(0), lambda store: store.destroy()])
def test_redis_removes_no_keys_of_others(storage, server, act):
    """The set of temporary keys may name what is not of the collection."""
    store, prefix = made(storage)
    server.set("precious", "x")
    server.set(f"{prefix}s:1", "x")
    server.zadd(f"{prefix}temporary", {"precious": 1, "dstream:names": 1, f"{prefix}s:1": 1})
    act(store)

    assert server.get("precious") == b"x"
    assert not server.exists(f"{prefix}s:1")


def test_redis_list_that_is_damaged_is_named(storage, server):
    """Items are checked as values are."""
    items = storage.create("list", "l", Options())
    items.extend([1])
    server.rpush(items._collection.items, b"\xc7")

    for attempt in (lambda: items.read(0, 9), lambda: list(items.splits(1)[0].read())):
        with pytest.raises(IllegalStateError, match="list 'l' is damaged"):
            attempt()


@pytest.mark.parametrize("kept", [0, 2])
def test_redis_journal_that_was_trimmed_is_an_error(storage, server, kept):
    """Events that are missing are never passed over."""
    store, prefix = made(storage, journal=True)
    store.update(["b", "c"], lambda old: [2, 3])
    server.xtrim(f"{prefix}journal", maxlen=kept, approximate=False)

    with pytest.raises(IllegalStateError, match="the journal of map 'm' no longer reaches back to offset 0"):
        list(store.journal(0))
    assert list(store.journal(3)) == []
