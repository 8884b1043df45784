"""`grouping_by_to_imap`: one entry for each group."""

from __future__ import annotations

import pytest

import collectors
import dstream as ds
from collectors import counting, grouping_by, joining, mapping, summing_int, to_list
from dstream import errors
from reducers import grouping_by_to_imap, to_imap

WORDS = ["whale", "sea", "ship", "whale", "a", "sea", "sail"]


@pytest.mark.parametrize("partitions", [1, 2, 3, 8])
def test_grouping_by_to_imap_makes_lists_in_encounter_order(ctx, partitions):
    """Without a collector downstream, the items of a group are a list, in order."""
    groups = ctx.stream(WORDS, partitions).collect(grouping_by_to_imap("m", len))

    assert dict(groups) == {
        5: ["whale", "whale"],
        3: ["sea", "sea"],
        4: ["ship", "sail"],
        1: ["a"],
    }


@pytest.mark.parametrize("downstream", [counting(), joining(","), mapping(len, summing_int(lambda n: n))])
def test_grouping_by_to_imap_agrees_with_grouping_by(ctx, downstream):
    """The map holds what `grouping_by` would give."""
    stream = ctx.stream(WORDS, 3)

    assert dict(stream.collect(grouping_by_to_imap("m", len, downstream))) == stream.collect(
        grouping_by(len, downstream)
    )


def test_grouping_by_to_imap_groups_in_two_levels(ctx):
    """A downstream `grouping_by` makes dictionaries as values."""
    groups = ctx.stream(WORDS, 3).collect(grouping_by_to_imap("m", lambda w: w[0], grouping_by(len, counting())))

    assert dict(groups) == {"w": {5: 2}, "s": {3: 2, 4: 2}, "a": {1: 1}}


def test_grouping_by_to_imap_overwrites_groups_and_keeps_other_entries(ctx):
    """A second job replaces the groups that it has."""
    ctx.stream(["a", "bb"]).collect(grouping_by_to_imap("m", len))
    ctx.stream(["c"]).collect(grouping_by_to_imap("m", len))

    assert dict(ctx.get_map("m")) == {1: ["c"], 2: ["bb"]}


def test_grouping_by_to_imap_names_the_item_with_a_none_key(ctx):
    """A None key is refused, and the message shows the item."""
    with pytest.raises(errors.NullElementError, match="'bb'"):
        ctx.stream(["a", "bb"], 2).collect(grouping_by_to_imap("m", {"a": 1}.get))


def test_grouping_by_to_imap_leaves_the_map_when_the_finisher_fails(ctx):
    """A downstream that fails at the very end writes nothing."""
    ctx.get_map("m")[1] = ["before"]
    failing = collectors.collecting_and_then(counting(), lambda count: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ctx.stream(WORDS, 2).collect(grouping_by_to_imap("m", len, failing))

    assert dict(ctx.get_map("m")) == {1: ["before"]}


def test_grouping_by_to_imap_leaves_no_files_when_it_fails(local_context, tmp_path):
    """What the buckets before the failing one have written is removed."""
    with ds.connect(engine="local", storage=tmp_path) as ctx:
        ctx.get_map("m")["before"] = 1
        files = sorted(tmp_path.rglob("*.parquet"))
        failing = collectors.collecting_and_then(to_list(), lambda items: 1 // (99 - items[0]))
        with pytest.raises(ZeroDivisionError):
            ctx.stream(range(100)).collect(grouping_by_to_imap("m", str, failing))

        assert sorted(tmp_path.rglob("*.parquet")) == files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("m", 7), "classifier must be a function, not int"),
        (("m", len, counting), "so call it: counting"),
        (("m", len, to_imap("n")), "downstream must be a Collector"),
    ],
)
def test_grouping_by_to_imap_refuses_bad_arguments_at_the_call(arguments, message):
    """Nothing has to run before a wrong argument is told."""
    with pytest.raises(TypeError, match=message):
        grouping_by_to_imap(*arguments)
