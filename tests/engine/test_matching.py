"""The hash join on a worker: in memory, in files, in blocks."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dstream.base.memory import Bound
from dstream.engine.spark.run.execution import bytes_of
from dstream.engine.tasks.routing import RouteSide
from dstream.engine.tasks.runtime import StageTask
from dstream.keys import canonical
from dstream.operators.joins import hash as matching
from dstream.operators.joins.hash import Matching, cogrouped, matched
from dstream.operators.rows.keys import Side
from dstream.operators.rows.spill import distinct_of_batches

pairs = st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, None, "k", (1, None)]), st.integers()), max_size=30)
HOW = ["inner", "left", "right", "full"]


class Full(Bound):
    """Too much is held, from the first question on or from a later one."""

    def __init__(self, after: int = 0) -> None:
        super().__init__()
        self.left = after

    def exceeded(self) -> bool:
        self.left -= 1
        return self.left < 0


def by_hand(lefts, rights, how):
    """Join two lists of pairs."""
    joined = [(k, (v, w)) for k, v in lefts for other, w in rights if k == other]
    if how in ("left", "full"):
        joined += [(k, (v, None)) for k, v in lefts if k not in dict(rights)]
    if how in ("right", "full"):
        joined += [(k, (None, w)) for k, w in rights if k not in dict(lefts)]
    return Counter(joined)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Lower the number of items that counts as many."""
    monkeypatch.setattr(matching, "_CHUNK", 3)


@pytest.mark.parametrize("holds_left", [True, False])
@pytest.mark.parametrize("how", HOW)
@given(pairs, pairs, st.sampled_from([0, 1, 2, 5, 10**6]))
def test_what_is_held_does_not_matter(how, holds_left, lefts, rights, after):
    """Either side may be held, in memory or on disk, whenever it is too much."""
    held, passing = (lefts, rights) if holds_left else (rights, lefts)
    joined = matched(iter(held), iter(passing), Matching.of(how, holds_left), Full(after))

    assert Counter(map(tuple, joined)) == by_hand(lefts, rights, how)


@pytest.mark.parametrize("holds_left", [True, False])
@pytest.mark.parametrize("how", HOW)
def test_a_hot_key_is_held_a_block_at_a_time(how, holds_left):
    """One key that no hash divides: the matches of a left item still come in the order of the right side."""
    lefts, rights = [("k", n) for n in range(7)] + [("l", 0)], [("k", n) for n in range(8)] + [("r", 0)]
    held, passing = (lefts, rights) if holds_left else (rights, lefts)
    joined = [tuple(entry) for entry in matched(held, passing, Matching.of(how, holds_left), Full())]

    assert Counter(joined) == by_hand(lefts, rights, how)
    assert [right for key, (left, right) in joined if (key, left) == ("k", 4)] == list(range(8))


@pytest.mark.parametrize("after", [0, 10**6])
@pytest.mark.parametrize("holds_left", [True, False])
def test_the_key_of_an_entry_is_that_of_its_left_item(holds_left, after):
    """Of keys that are equal, the left item's own; without a left item, the right item's own."""
    lefts, rights = [(1, "a"), (True, "b")], [(1.0, "A"), (0, "B"), (0.0, "C")]
    held, passing = (lefts, rights) if holds_left else (rights, lefts)
    joined = matched(held, passing, Matching.of("full", holds_left), Full(after))

    assert sorted(repr(entry.key) for entry in joined) == ["0", "0.0", "1", "True"]


def test_nan_from_a_file_is_the_same_key():
    """A NaN that went through a file is another object, and the same key."""
    nans = [(canonical(float("nan")), n) for n in range(5)] + [(None, 9)] * 2
    joined = list(matched(nans, nans, Matching.of("full", False), Full()))

    assert len(joined) == 29


def test_the_passing_side_is_read_one_item_at_a_time():
    """What passes by is asked for when a match is asked for."""
    read = []
    passing = ((read.append(n) or n, n) for n in range(9))
    joined = matched([(1, "a"), (3, "b")], passing, Matching.of("inner", False), Bound(2**60))

    assert (next(joined).value, read) == ((1, "a"), [0, 1])


@given(pairs, pairs, st.sampled_from([0, 1, 5, 10**6]))
def test_groups_are_in_order_also_from_files(lefts, rights, after):
    """Each list has the items of its side in order."""
    groups = {key: (lefts, rights) for key, (lefts, rights) in cogrouped(lefts, rights, Full(after))}

    assert groups == {
        key: tuple([value for other, value in side if other == key] for side in (lefts, rights))
        for key in dict(lefts + rights)
    }


@given(st.lists(st.tuples(st.sampled_from([0, 7, None, "k", 1.5, (2, None)]), st.integers()), max_size=300))
def test_a_side_is_routed_by_its_keys_in_order(step_pairs):
    """Each key goes to one target, with its items in order, in rows that are numbered."""
    from pickle import loads

    from dstream.plan import Step

    sink = RouteSide(Side(None, Step(".join(...)", None, 1, 1)), 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONHASHSEED", "0")
        rows = list(sink(iter(step_pairs), StageTask(5, 2**40)))

    found = {}
    for row in sorted(rows, key=lambda row: row.sequence):
        for key, item in zip(*loads(row.payload), strict=True):
            found.setdefault(key, []).append((row.target, item))
    assert all(len({target for target, _ in placed}) == 1 for placed in found.values())
    assert {key: [item for _, item in placed] for key, placed in found.items()} == {
        key: [item for other, item in step_pairs if other == key] for key in dict(step_pairs)
    }


@given(st.lists(st.lists(st.sampled_from([0, 1, True, None, "k", 1.5, (2, None)]), max_size=6)), st.integers(0, 6))
def test_distinct_batches_give_one_item_of_each_key(batches, after):
    """In memory or from files, with items of their own or without."""
    keys = {key for batch in batches for key in batch}
    with_items = distinct_of_batches(((batch, [[key] for key in batch]) for batch in batches), Full(after))
    alone = list(distinct_of_batches(((batch,) for batch in batches), Full(after)))

    assert Counter(key for (key,) in with_items) == Counter(keys) == Counter(alone)


@pytest.mark.parametrize(
    ("text", "size"), [("10485760b", 10 * 2**20), ("4m", 4 * 2**20), ("10MB", 10 * 2**20), ("-1", -1), ("", -1)]
)
def test_sizes_are_read_as_spark_writes_them(text, size):
    """In bytes, or with a unit."""
    assert bytes_of(text) == size
