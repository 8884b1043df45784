"""`to_imap`: one entry for each key, all at once."""

from __future__ import annotations

import math
import operator

import pytest

import dstream as ds
from dstream import Entry, errors
from reducers import to_icache, to_imap


def one(item):
    """Count an item."""
    return 1


def test_to_imap_takes_entries_and_pairs(ctx):
    """An entry, a tuple and a list of two are all pairs."""
    items = [Entry("a", 1), ("b", 2), ["c", 3]]

    assert dict(ctx.stream(items, 2).collect(to_imap("m"))) == {"a": 1, "b": 2, "c": 3}


def test_to_imap_makes_keys_and_values(ctx):
    """`key` and `value` make the entries."""
    assert dict(ctx.stream(["a", "bc"], 2).collect(to_imap("m", str.upper, len))) == {"A": 1, "BC": 2}


def test_to_imap_returns_the_collection_of_that_name(ctx):
    """What comes back is what `get_map` gives."""
    written = ctx.stream("ab").collect(to_imap("m", str.upper, ord))

    assert written.name == "m"
    assert dict(ctx.get_map("m")) == dict(written) == {"A": 97, "B": 98}


@pytest.mark.parametrize("partitions", [1, 2, 3, 8])
def test_to_imap_lets_the_last_in_encounter_order_win(ctx, partitions):
    """Of equal keys, the last item of the whole stream decides, for any number of partitions."""
    numbers = ctx.stream(range(100), partitions)

    assert dict(numbers.collect(to_imap("m", lambda n: n % 7, lambda n: n))) == {n % 7: n for n in range(100)}


@pytest.mark.parametrize("partitions", [1, 3])
def test_to_imap_merges_in_encounter_order(ctx, partitions):
    """`merge` sees the values of a key from left to right."""
    letters = ctx.stream("abcdefg", partitions)
    joined = letters.collect(to_imap("m", lambda c: ord(c) % 2, lambda c: c, operator.add))

    assert dict(joined) == {1: "aceg", 0: "bdf"}


def test_to_imap_keeps_other_entries_and_overwrites_equal_keys(ctx):
    """The map is not cleared; a value that is there is overwritten even with `merge`."""
    ctx.get_map("m").update({"a": 100, "z": 26})
    ctx.stream("aab", 2).collect(to_imap("m", str, one, operator.add))

    assert dict(ctx.get_map("m")) == {"a": 2, "b": 1, "z": 26}


def test_to_imap_merges_with_what_is_there(ctx):
    """With `on_existing="merge"` the value that is there comes first."""
    ctx.get_map("m").update({"a": "A", "z": "Z"})
    ctx.stream("aab", 2).collect(to_imap("m", str, str, operator.add, on_existing="merge"))

    assert dict(ctx.get_map("m")) == {"a": "Aaa", "b": "b", "z": "Z"}


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_to_imap_removes_by_a_merge_to_none(ctx, partitions):
    """As Jet's `mapWithMerging` and Java's `Map.merge` do; what cancels out within the job changes nothing."""
    cases = {"gone": (5, [-2, -3]), "stays": (5, [2, -2]), "none": (None, [1, -1]), "later": (None, [1, -1, 4])}
    cases |= {"left": (7, [1]), "new": (None, [3]), "again": (2, [-2, 1, 6]), "other": (9, [])}
    m = ctx.get_map("m")
    m.update({key: there for key, (there, _) in cases.items() if there})
    items = [(key, new[turn]) for turn in range(3) for key, (_, new) in cases.items() if turn < len(new)]
    ctx.stream(items, partitions).collect(to_imap("m", merge=_sum_or_none, on_existing="merge"))

    sums = {key: (there or 0) + sum(new) for key, (there, new) in cases.items()}
    assert dict(m) == {key: value for key, value in sums.items() if value}


def test_to_icache_removes_by_a_merge_to_none(ctx):
    """What a cache has is removed, too, and what cancels out is not written."""
    cache = ctx.get_cache("c", ttl=60)
    cache.put("a", 5)
    cache.put("b", 5)
    ctx.stream([("a", -5), ("b", 1), ("c", 1), ("c", -1)], 2).collect(
        to_icache("c", merge=_sum_or_none, on_existing="merge")
    )

    assert {key: cache.get(key) for key in "abc"} == {"a": None, "b": 6, "c": None}


def _sum_or_none(left, right):
    return left + right or None


def test_to_imap_takes_equal_keys_as_one(ctx):
    """`1`, `1.0` and `True` are one key, and so are all NaN."""
    items = [(1, "int"), (1.0, "float"), (True, "bool"), (math.nan, "x"), (float("nan"), "y")]
    numbers = ctx.stream(items, 3).collect(to_imap("m"))

    assert numbers[1] == "bool"
    assert len(numbers) == 2


def test_to_imap_of_nothing_makes_an_empty_map(ctx):
    """An empty stream makes the map, and no entries."""
    assert len(ctx.stream([], 2).collect(to_imap("m", str, one))) == 0
    assert ctx.collections() == [("map", "m")]


def test_to_imap_writes_once_for_each_job_of_a_name(ctx):
    """A job that has committed does nothing when it runs again; another one does."""
    reducer = to_imap("m", str, one, operator.add, on_existing="merge", job="monday")
    for _ in range(3):
        ctx.stream("aab", 2).collect(reducer)
    assert dict(ctx.get_map("m")) == {"a": 2, "b": 1}

    ctx.stream("aab", 2).collect(to_imap("m", str, one, operator.add, on_existing="merge", job="tuesday"))
    assert dict(ctx.get_map("m")) == {"a": 4, "b": 2}


def test_to_imap_does_not_run_a_job_that_is_done(ctx):
    """The second run does not even look at the items."""
    ctx.stream("ab").collect(to_imap("m", str, one, job="monday"))

    assert dict(ctx.stream([1 / 1]).map(lambda n: n / 0).collect(to_imap("m", str, one, job="monday"))) == {
        "a": 1,
        "b": 1,
    }


@pytest.mark.parametrize("item", ["ab", 7, ("a", 1, 2), None, {"a": 1, "b": 2}])
def test_to_imap_names_an_item_that_is_no_pair(ctx, item):
    """What is neither an entry nor a pair is a TypeError that shows it, also a text of two characters."""
    with pytest.raises(TypeError, match="must be an entry or a pair") as raised:
        ctx.stream([("a", 1), item], 2).collect(to_imap("m"))

    assert repr(item) in str(raised.value)


@pytest.mark.parametrize("pair", [(None, 1), ("a", None)])
def test_to_imap_refuses_none(ctx, pair):
    """A None key or value is refused by name of the item, and the map stays as it was."""
    ctx.get_map("m")["z"] = 1
    with pytest.raises(errors.NullElementError) as raised:
        ctx.stream([("b", 2), pair], 2).collect(to_imap("m"))

    assert f"the item {pair!r} gives one" in str(raised.value)
    assert dict(ctx.get_map("m")) == {"z": 1}


def test_to_imap_refuses_a_merge_that_gives_none(ctx):
    """Where values take the place of others, None would not say of which; the map stays, and the message advises."""
    ctx.get_map("m")["a"] = 7
    words = r"merge gave None for 1 and 1; a map holds no None values: with on_existing=\"merge\" a None removes"
    with pytest.raises(errors.NullElementError, match=words):
        ctx.stream("aa", 2).collect(to_imap("m", str, one, lambda left, right: None))
    assert dict(ctx.get_map("m")) == {"a": 7}


def test_to_imap_refuses_keys_without_an_encoding(ctx):
    """A list is no key, and the error names it."""
    with pytest.raises(errors.UnstableKeyError, match="list"):
        ctx.stream([1, 2], 2).collect(to_imap("m", lambda n: [n], one))


@pytest.mark.parametrize("role", ["key", "value", "merge"])
def test_to_imap_leaves_the_map_when_a_function_fails(ctx, role):
    """The exception keeps its type and names the step and the item; nothing is written."""

    def fail(*items):
        raise ZeroDivisionError(items[0])

    ctx.get_map("m")["a"] = 7
    functions = {"key": lambda c: "k", "value": one, "merge": operator.add} | {role: fail}
    with pytest.raises(ZeroDivisionError) as raised:
        ctx.stream("ab", 1).collect(to_imap("m", **functions))

    assert "collect(to_imap('m'))" in "".join(raised.value.__notes__)
    assert dict(ctx.get_map("m")) == {"a": 7}


def test_to_imap_names_the_failing_item(ctx):
    """The note shows the item that `value` failed on."""
    with pytest.raises(ValueError, match="invalid literal") as raised:
        ctx.stream(["1", "x"], 2).collect(to_imap("m", str, int))

    assert ds.failure(raised.value).item == "x"


class Shapeless:
    """Something whose repr fails."""

    def __repr__(self):
        raise RuntimeError("no repr")


def test_a_merge_that_fails_names_its_values(ctx):
    """Whether they meet in one partition, in two, or in the map; the map stays as it was."""
    for items, existing in (([("a", 1), ("a", 0)], "overwrite"), ([("a", 0)], "merge")):
        m = ctx.stream([("a", 1)]).collect(to_imap("m"))
        with pytest.raises(ZeroDivisionError) as raised:
            ctx.stream(items, 2).collect(to_imap("m", merge=operator.floordiv, on_existing=existing))

        assert "when merge was given 1 and 0" in raised.value.__notes__[1]
        assert str(ds.failure(raised.value).step).startswith("step 2 of 2: .collect(to_imap('m'))")
        assert m == {"a": 1}


def test_an_item_without_a_repr_is_refused_for_what_it_is(ctx):
    """A repr that fails does not hide what is wrong."""
    with pytest.raises(TypeError, match="Shapeless, whose repr fails with RuntimeError"):
        ctx.stream([Shapeless()]).collect(to_imap("m"))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((7,), {}, "name must be a str"),
        (("",), {}, "name must not be empty"),
        (("m", str), {}, "key and value together"),
        (("m", "key", str), {}, "key must be a function, not str"),
        (("m", str, 3), {}, "value must be a function, not int"),
        (("m", str, str, 3), {}, "merge must be a function, not int"),
        (("m", str, str), {"on_existing": "merge"}, "needs merge="),
        (("m", str, str), {"on_existing": "append"}, "on_existing must be"),
        (("m", str, str), {"job": 7}, "job must be a str"),
    ],
)
def test_to_imap_refuses_bad_arguments_at_the_call(arguments, options, message):
    """Nothing has to run before a wrong argument is told."""
    with pytest.raises((TypeError, ValueError), match=message):
        to_imap(*arguments, **options)


def test_to_imap_reads_as_it_was_written():
    """The repr names the function and the map."""
    assert repr(to_imap("m", str, str)) == "to_imap('m')"
