"""What a handle cannot do, and what it says then."""

from __future__ import annotations

import copy
import pickle

import cloudpickle
import pytest

from dstream.errors import CollectionDestroyedError, SerializationError, UnsupportedError

SENTENCES = {
    "map": "the map 'ages' cannot be used inside a function that runs on the workers; "
    "read what you need before, with get_all(keys) or copy(), and let the function capture the result",
    "list": "the list 'names' cannot be used inside a function that runs on the workers; "
    "read what you need before, with a slice or copy(), and let the function capture the result",
    "cache": "the cache 'sessions' cannot be used inside a function that runs on the workers; "
    "read what you need before, with get_all(keys) or copy(), and let the function capture the result",
}


@pytest.fixture(params=["map", "list", "cache"])
def collection(make, request):
    """One collection of each kind."""
    return getattr(make, request.param)(**{"ttl": 60} if request.param == "cache" else {})


@pytest.mark.parametrize("travel", [pickle.dumps, cloudpickle.dumps, copy.copy, copy.deepcopy])
def test_a_handle_does_not_travel(collection, travel):
    """One sentence says what to do instead."""
    with pytest.raises(SerializationError) as raised:
        travel(collection)

    assert str(raised.value) == SENTENCES[collection._kind]


def test_a_captured_handle_or_view_does_not_travel(make):
    """A function that uses one cannot be sent."""
    ages = make.map()
    keys = ages.keys()
    for fn in (lambda n: ages[n], lambda n: n in keys, ages.get):
        with pytest.raises(SerializationError, match="the map 'ages'"):
            cloudpickle.dumps(fn)


DEAD = {
    "map": [
        lambda m: m["a"],
        lambda m: "a" in m,
        lambda m: m.put("a", 1),
        lambda m: m.update(a=1),
        lambda m: len(m),
        lambda m: list(m),
        lambda m: m.clear(),
        lambda m: m.execute_on_key("a", len),
        lambda m: m.execute_on_entries(len),
        lambda m: m.stream().to_list(),
        lambda m: m.popitem(),
        lambda m: m == {},
        lambda m: m.to_arrow(),
        lambda m: m.journal(),
        lambda m: m.compact(),
        lambda m: m.destroy(),
    ],
    "list": [
        lambda names: names[0],
        lambda names: names[-1],
        lambda names: names[:],
        lambda names: names.append(1),
        lambda names: names.extend([1]),
        lambda names: names.sort(),
        lambda names: len(names),
        lambda names: list(names),
        lambda names: "a" in names,
        lambda names: names.stream().to_list(),
        lambda names: names.to_arrow(),
        lambda names: names.destroy(),
    ],
}
DEAD["cache"] = [*DEAD["map"][:13], lambda c: c.purge(), lambda c: c.destroy()]


def test_a_handle_to_a_destroyed_collection_says_so(collection):
    """Whatever is asked of it."""
    collection.destroy()
    for use in DEAD[collection._kind]:
        with pytest.raises(CollectionDestroyedError, match=repr(collection.name)):
            use(collection)


def test_the_local_engine_has_no_data_frames(make):
    """The message says what to use instead."""
    with pytest.raises(UnsupportedError, match="to_arrow"):
        make.map({"a": 1}).to_df()
    with pytest.raises(UnsupportedError, match="to_arrow"):
        make.list([1]).to_df()
