"""`imap`, `icache`, `ilist`: collections as sources that are known by their names."""

from __future__ import annotations

import pickle
import uuid

import pytest

from dstream.base.pickling import dumps
from dstream.errors import IllegalStateError, SourceError
from dstream.plan import Read
from dstream.plan.walk import opened
from dstream.spi import OpenedLater, Source
from dstream.stream import Stream
from dstream.values import Entry
from sources import icache, ilist, imap


@pytest.fixture
def name():
    """A name that no other test has."""
    return f"stored-{uuid.uuid4().hex}"


def test_a_map_is_read_by_its_name(engine, name):
    """By tasks, from the storage; predicate and projection run there."""
    engine.context.get_map(name).update(Ada=36, Grace=85)
    source = imap(name, lambda entry: entry.value > 40, lambda entry: entry.key)

    assert engine.context.read(imap(name)).sorted().to_list() == [Entry("Ada", 36), Entry("Grace", 85)]
    assert engine.context.read(source).to_list() == ["Grace"]


def test_a_list_keeps_its_order(engine, name):
    """As `stream()` of the list does."""
    engine.context.get_list(name).extend(range(50))

    assert engine.context.read(ilist(name)).map(abs).to_list() == list(range(50))


def test_a_cache_gives_what_lives(local_context, name):
    """Entries as they are, without what the cache keeps beside them."""
    local_context.get_cache(name, ttl=3600)["Ada"] = "token"

    assert local_context.read(icache(name)).to_list() == [Entry("Ada", "token")]


@pytest.mark.parametrize(
    ("make", "call"), [(imap, "get_map({!r})"), (ilist, "get_list({!r})"), (icache, "get_cache({!r}, ttl=...)")]
)
def test_a_collection_that_is_not_there_is_an_error(local_context, name, make, call):
    """A wrong name makes no collection, and says what makes one."""
    with pytest.raises(SourceError) as raised:
        local_context.read(make(name))

    kind = make.__name__[1:]
    assert str(raised.value) == (
        f"{make.__name__}({name!r}): there is no {kind} {name!r} in this storage; {call.format(name)} makes one"
    )
    assert name not in [each.name for each in local_context.collections()]


def test_what_was_destroyed_is_not_there(local_context, name):
    """Its name is free again."""
    local_context.get_map(name)["a"] = 1
    local_context.get_map(name).destroy()

    with pytest.raises(SourceError, match="there is no map"):
        local_context.read(imap(name))


def test_it_travels_without_a_context(local_context, name):
    """With its functions, and is opened wherever it arrives, at the time of the read."""
    source = pickle.loads(dumps(imap(name, projection=lambda entry: entry.value)))
    local_context.get_map(name)["a"] = 1

    assert (isinstance(source, Source), isinstance(source, OpenedLater)) == (True, True)
    assert (source.ordered, source.bounded, ilist(name).ordered) == (False, True, True)
    assert local_context.read(source).to_list() == [1]


def test_a_plan_opens_it_when_it_starts(local_context, name):
    """What reads it twice reads one source."""
    source = imap(name)
    plan = Stream(Read(source), None).union(Stream(Read(source), None))._node
    local_context.get_map(name)["a"] = 1

    assert Stream(opened(plan, local_context), local_context).count() == 2


def test_it_is_not_read_without_a_context():
    """Who forgets to open it is told."""
    with pytest.raises(IllegalStateError, match=r"imap\('counts'\) is a name until a context opens it"):
        imap("counts").splits(2)


def test_wrong_arguments_are_refused_at_the_call():
    """Before anything runs."""
    with pytest.raises(TypeError, match="the name of a list must be a str, not int"):
        ilist(3)
    with pytest.raises(ValueError, match="must not be empty"):
        imap("")
    with pytest.raises(TypeError, match="predicate must be a function, not str"):
        icache("a", "key")


def test_items_are_given_in_their_order(engine):
    """None among them, also of several types; none are an empty stream."""
    from sources import items

    assert engine.context.read(items(3, None, "a")).to_list() == [3, None, "a"]
    assert engine.context.read(items()).to_list() == []
    assert (repr(items(1, 2)), repr(items("a"))) == ("items(1, 2)", "items('a')")
