"""Streams over maps, lists and caches."""

from __future__ import annotations

import pickle

import pytest

import dstream as ds
from collectors import counting, grouping_by
from dstream import Entry
from dstream.collections.sources import EntrySource, ItemSource
from dstream.errors import CollectionDestroyedError
from dstream.plan import is_ordered, rewrite
from sources import ItemsSplit, ilist


def test_a_stream_of_a_map_gives_entries(make):
    """Named tuples, in no order."""
    ages = make.map({"Ada": 36, "Alan": 41})
    entries = ages.stream().to_list()

    assert sorted(entries) == [("Ada", 36), ("Alan", 41)]
    assert {type(entry) for entry in entries} == {Entry}
    assert not is_ordered(rewrite(ages.stream()._node))


def test_a_predicate_keeps_entries_out(make):
    """Those that do not satisfy it go no further."""
    ages = make.map({"Ada": 36, "Alan": 41})

    assert ages.stream(lambda entry: entry.value > 40).to_list() == [("Alan", 41)]


def test_a_projection_makes_something_else_of_each_entry(make):
    """Where it gives None, the entry is dropped; 0 and empty texts stay."""
    ages = make.map({"Ada": 0, "Alan": 41, "Grace": 85})
    stream = ages.stream(lambda entry: entry.key != "Alan", lambda entry: entry.value)

    assert sorted(stream.to_list()) == [0, 85]
    assert ages.stream(projection=lambda entry: entry.value if entry.value > 50 else None).to_list() == [85]


def test_a_stream_reads_what_is_there_at_the_terminal_operation(make):
    """What is written after it was built is seen; a stream can be used again."""
    ages, names = make.map({"a": 1}), make.list(["a"])
    entries, items = ages.stream(), names.stream()
    ages["b"] = 2
    names.append("b")

    assert (entries.count(), items.to_list()) == (2, ["a", "b"])
    ages.clear()
    names.clear()
    assert (entries.count(), items.to_list()) == (0, [])


def test_what_is_written_while_a_stream_is_read_is_not_seen(make):
    """The state is pinned when the terminal operation starts."""
    ages, names = make.map({n: n for n in range(10)}), make.list(range(10))
    for stream, write in ((ages.stream(), ages.clear), (names.stream(), names.clear)):
        items = iter(stream)
        next(items)
        write()
        assert len(list(items)) == 9


def test_a_stream_of_a_list_is_ordered(make):
    """`parallel_stream` is not."""
    names = make.list("dcba")

    assert names.stream().to_list() == ["d", "c", "b", "a"]
    assert sorted(names.parallel_stream().to_list()) == ["a", "b", "c", "d"]
    assert tuple(is_ordered(rewrite(s._node)) for s in (names.stream(), names.parallel_stream())) == (True, False)


def test_none_is_an_item_of_a_list(make):
    """And goes through its stream."""
    assert make.list([1, None]).stream().to_list() == [1, None]


@pytest.mark.parametrize("argument", ["predicate", "projection"])
def test_what_is_no_function_is_refused_at_the_call(make, argument):
    """By the name of the argument."""
    with pytest.raises(TypeError, match=f"{argument} must be a function, not int"):
        make.map().stream(**{argument: 5})


@pytest.mark.parametrize("argument", ["predicate", "projection"])
def test_an_exception_names_the_collection_and_the_entry(make, argument):
    """As in any other step of a pipeline."""
    stream = make.map({"Ada": 36}).stream(**{argument: lambda entry: 1 / 0})
    with pytest.raises(ZeroDivisionError) as raised:
        stream.to_list()

    assert f"step 1 of 1, get_map('ages').stream({argument}=lambda) at " in raised.value.__notes__[1]
    assert ds.failure(raised.value).item == ("Ada", 36)


def test_the_repr_of_a_stream_names_the_collection(make):
    """As the user would write it."""
    assert "get_map('ages').stream(predicate=len)" in repr(make.map().stream(len))
    assert "get_list('names').stream()" in repr(make.list().stream())
    assert "get_cache('sessions').stream()" in repr(make.cache(ttl=1).stream())


def test_a_stream_runs_on_the_context_of_its_collection(make):
    """Not on the default one."""
    assert make.map().stream()._runtime is make.runtime is make.list().stream()._runtime


def test_a_stream_of_a_destroyed_collection_says_so(make):
    """When it is run."""
    ages = make.map()
    stream = ages.stream()
    ages.destroy()

    with pytest.raises(CollectionDestroyedError, match="'ages'"):
        stream.to_list()


def test_splits_travel(make):
    """A source is divided as asked; each part goes to a worker, with its functions."""
    source = EntrySource(make.map({n: n for n in range(100)}).store, is_even, key_of)
    parts = pickle.loads(pickle.dumps(source.splits(4)))

    assert len(parts) == 4
    assert sorted(key for part in parts for key in part.read()) == list(range(0, 100, 2))


def is_even(entry):
    """Say whether a value is even."""
    return entry.value % 2 == 0


def key_of(entry):
    """Return the key."""
    return entry.key


def test_sources_say_what_they_are(make):
    """Ordered, bounded, and whether the data is in this process."""
    sources = (EntrySource(make.map().store), ItemSource(make.list().store))

    assert [(source.ordered, source.bounded, source.in_caller) for source in sources] == [
        (False, True, True),
        (True, True, True),
    ]


@pytest.mark.parametrize("storage", ["memory:", "folder", "sqlite:data.db"])
@pytest.mark.parametrize("engine", ["local", "auto"])
def test_streams_of_each_storage_yield_decoded_items_on_each_engine(storage, engine, tmp_path, monkeypatch):
    """By all ways in which the first items are read, with and without functions that are read."""
    monkeypatch.chdir(tmp_path)
    with ds.connect(engine=engine, storage=storage) as ctx:
        many = [1, "a", None, 2.5, {"n": [1]}] * 500
        items, numbers, entries = ctx.get_list("l"), ctx.get_list("n"), ctx.get_map("m")
        items.extend(many)
        numbers.extend(range(3000))
        entries.update({n: str(n) for n in range(3000)})
        seen = ctx.get_set("s")
        seen.update("abc")

        assert items.stream().to_list() == ctx.read(ilist("l")).to_list() == list(iter(items.stream())) == many
        assert items.stream().find_first().get() == 1
        assert items.stream().limit(2).to_list() == many[:2]
        assert ctx.stream("xy").zip(items.stream()).to_list() == [("x", 1), ("y", "a")]
        assert items.stream().sorted(key=repr).to_list() == sorted(many, key=repr)
        assert numbers.stream().filter(lambda n: n > 2990).to_list() == list(range(2991, 3000))
        assert numbers.stream().collect(grouping_by(lambda n: n % 2, counting())) == {0: 1500, 1: 1500}
        assert sorted(entries.stream().to_list()) == [(n, str(n)) for n in range(3000)]
        assert sorted(seen.stream().to_list()) == ["a", "b", "c"]


class Doubled:
    """A split that yields other items than those in its attribute."""

    def __init__(self, items):
        self.items = items

    def read(self):
        """Yield each item twice as large."""
        return (2 * item for item in self.items)


class OfPeers:
    """A source of the user's that contains its items."""

    ordered = bounded = in_caller = True

    def splits(self, parallelism):
        """Return one split."""
        return [Doubled(list(range(3000)))]


class Declared(Doubled):
    """A class that says so of its items, and is no dataclass."""

    yields_its_items = True


class OfDeclared(OfPeers):
    """A source of such splits."""

    def splits(self, parallelism):
        """Return one split."""
        return [Declared(list(range(3000)))]


class Negated(ItemsSplit):
    """A subclass of a split of the library that overrides its reader."""

    def read(self):
        """Yield each item negated."""
        return (-item for item in self.items)


class OfSubclasses(OfPeers):
    """A source whose splits derive from one of the library."""

    def splits(self, parallelism):
        """Return one split."""
        return [Negated(list(range(3000)))]


@pytest.mark.parametrize(("source", "factor"), [(OfPeers(), 2), (OfDeclared(), 2), (OfSubclasses(), -1)])
def test_splits_are_read_by_their_reader(source, factor):
    """A source of the user's may have an attribute of the name of one of the library."""
    expected = [factor * n for n in range(3000)]
    for engine in ("local", "auto"):
        with ds.connect(engine=engine) as ctx:
            assert ctx.read(source).to_list() == list(iter(ctx.read(source))) == expected
            assert ctx.read(source).limit(3).to_list() == expected[:3]
            assert ctx.read(source).filter(lambda n: n % 4 == 0).to_list() == [n for n in expected if n % 4 == 0]
            assert ctx.read(source).sorted(reverse=True).to_list() == sorted(expected, reverse=True)
