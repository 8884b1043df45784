"""Spilling: past the memory bound the same results come from disk."""

from __future__ import annotations

import gc
import operator
import os
import random
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.base.memory import Bound
from dstream.operators.rows import spill
from dstream.operators.rows.spill import distinct_items, in_batches, merged, sorted_items


class Tight(Bound):
    """A bound that is reached after some questions, and again after each spill."""

    def __init__(self, room):
        super().__init__()
        self.room = self.left = room

    def exceeded(self):
        self.left -= 1
        return self.left < 0

    def spilled(self):
        self.left = self.room


NUMBERS = [n * 7919 % 2503 for n in range(3000)]
FEW_NUMBERS = NUMBERS[:1000]


def open_files():
    """Return the number of temporary files of ours that this process has open."""
    links = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    # Where a file has no name from the start (O_TMPFILE), the link shows the folder alone.
    return sum(os.readlink(link).startswith(tempfile.gettempdir()) for link in links if os.path.lexists(link))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("room", [0, 1, 5])
def test_sorted_items_from_disk_are_those_of_sorted(room, reverse):
    """The order is that of `sorted()`, stable, whenever the bound is reached."""
    pairs = [(n % 10, position) for position, n in enumerate(NUMBERS)]

    expected = sorted(pairs, key=operator.itemgetter(0), reverse=reverse)
    assert list(sorted_items(pairs, operator.itemgetter(0), reverse, Tight(room))) == expected


def test_sorted_items_merge_very_many_runs(full):
    """More runs than files that may be open: runs are merged on the way, and stay stable."""
    pairs = [(n % 3, n) for n in range(512 * 150)]

    assert list(sorted_items(pairs, operator.itemgetter(0), False, full)) == sorted(pairs, key=operator.itemgetter(0))


def test_sorted_items_without_a_key_and_without_items(full):
    """The natural order, and nothing."""
    assert list(sorted_items(NUMBERS, None, True, full)) == sorted(NUMBERS, reverse=True)
    assert list(sorted_items([], None, False, full)) == []


@pytest.mark.parametrize("room", [1, 2, 7])
def test_distinct_items_from_disk_are_the_first_of_each_key(room):
    """The first item of each key, in encounter order, whenever the bound is reached."""
    expected = list(dict.fromkeys(NUMBERS))

    assert list(distinct_items(NUMBERS, None, Tight(room))) == expected


def test_distinct_items_by_key_keep_the_whole_item():
    """The first item of each key stays as it is."""
    items = [(n % 1000, n) for n in range(2500)]

    assert list(distinct_items(items, operator.itemgetter(0), Tight(2))) == items[:1000]


@pytest.mark.parametrize("room", [2, 100])
def test_distinct_items_take_all_nan_as_one(room):
    """Also when the NaN went through a file, and inside tuples."""
    items = [*range(600), *[float(text) for text in ["nan"] * 700], *[(float("nan"), 1) for _ in range(700)]]

    found = list(distinct_items(items, None, Tight(room)))
    assert (len(found), repr(found[-2:])) == (602, "[nan, (nan, 1)]")


def test_distinct_items_give_the_first_ones_before_the_end():
    """While there is room an item comes as soon as it is seen."""

    def items():
        yield from [1, 1, 2]
        raise AssertionError("read too far")

    result = distinct_items(items(), None, Bound(2**60))
    assert (next(result), next(result)) == (1, 2)


@pytest.mark.parametrize("room", [0, 1, 3, 1000])
def test_pairs_in_batches_are_combined_by_key_in_order(room):
    """Whenever the bound is reached: each key once, containers joined from left to right."""
    expected = {}
    for n in NUMBERS:
        expected.setdefault(n % 700, []).append(n)

    batches = in_batches(((n % 700, [n]) for n in NUMBERS), operator.add)
    found = list(merged(batches, operator.add, Tight(room)))
    assert (dict(found), len(found)) == (expected, 700)


def test_merged_finds_a_none_inside_a_key_again(full):
    """A key that holds a None meets its equals on disk."""
    batches = in_batches((((None, n % 2), [n]) for n in range(2000)), operator.add)

    assert sorted(len(container) for _, container in merged(batches, operator.add, full)) == [1000, 1000]


@pytest.mark.parametrize(
    "run",
    [
        lambda bound: sorted_items(FEW_NUMBERS, None, False, bound),
        lambda bound: distinct_items(FEW_NUMBERS, None, bound),
        lambda bound: merged(in_batches(((n, [n]) for n in FEW_NUMBERS), operator.add), operator.add, bound),
    ],
    ids=["sorted", "distinct", "merged"],
)
@pytest.mark.parametrize("read", [3, 10_000])
# A result that is dropped midway leaves its files to the garbage collector, which closes and reports them.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_temporary_files_are_gone_afterwards(tmp_path, monkeypatch, run, read):
    """Whether the result was read to its end or dropped: no file stays, neither open nor in the folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = open_files()
    result = run(Tight(1))
    for _ in zip(range(read), result, strict=False):
        pass
    assert open_files() - before > 0 or read > len(FEW_NUMBERS)
    del result, _
    gc.collect()

    assert (open_files() - before, list(tmp_path.iterdir())) == (0, [])


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(-5, 5) | st.floats(width=16) | st.none() | st.text(max_size=2), max_size=30), st.integers(2, 3)
)
def test_spilling_changes_no_result(items, room):
    """Whatever the items: from disk comes what comes from memory."""
    many = [*items * 30, *items * 30]
    in_memory = list(distinct_items(many, None, Bound(2**60)))

    assert repr(list(distinct_items(many, None, Tight(room)))) == repr(in_memory)
    assert repr(list(sorted_items(many, repr, False, Tight(room)))) == repr(sorted(many, key=repr))


def test_distinct_items_open_few_files_for_few_items(monkeypatch):
    """If a hundred questions about memory are answered with yes, one item still needs no thousands of files."""
    runs, answers = [], iter([True] * 100)
    make = spill.Run

    class Stubborn(Bound):
        def exceeded(self):
            return next(answers, False)

    monkeypatch.setattr(spill, "Run", lambda *items: runs.append(1) or make(*items))
    assert list(distinct_items("a", None, Stubborn())) == ["a"]
    assert len(runs) <= 200


def test_spilling_large_items_keeps_little_in_memory():
    """Items of 100 KB go through files one small batch at a time."""
    items = [random.Random(n).randbytes(100_000) for n in range(100)] * 6

    assert len(list(distinct_items(items, None, Tight(1)))) == 100


@pytest.mark.parametrize("room", [0, 1, 5, 10**9])
def test_merged_combines_containers_of_a_key_in_order(room):
    """Batches give one container for each key, whenever the bound is reached."""
    batches = []
    for start in range(0, len(NUMBERS), 100):
        groups = {}
        for n in NUMBERS[start : start + 100]:
            groups.setdefault(n % 700, []).append(n)
        batches.append((list(groups), list(groups.values())))

    assert dict(merged(batches, operator.add, Tight(room))) == {
        key: [n for n in NUMBERS if n % 700 == key] for key in range(700)
    }


@pytest.mark.parametrize("room", [0, 1, 3, 1000])
def test_what_stands_beside_a_container_stays_as_it_came_first(room):
    """A further column is not combined, in memory and on disk."""
    keys = [[1, 2], [2, 3], [3, 1, 4]]
    batches = [(some, [[key] for key in some], [f"{number}:{key}" for key in some]) for number, some in enumerate(keys)]

    assert sorted(merged(batches, operator.add, Tight(room))) == [
        (1, [1, 1], "0:1"),
        (2, [2, 2], "0:2"),
        (3, [3, 3], "1:3"),
        (4, [4], "2:4"),
    ]


def test_merged_takes_all_nan_as_one_key(full):
    """Each NaN that came out of a pickle is an object of its own."""
    batches = [([float("nan")], [[n]]) for n in range(3)]

    ((_, container),) = merged(batches, operator.add, full)

    assert container == [0, 1, 2]


def test_a_key_that_raises_stop_iteration_loses_no_sorted_run(full):
    """A merge of runs would take it for the end of one of them: the key fails when it is asked again."""
    asked = set()

    def key(number):
        if number in asked:
            raise StopIteration
        asked.add(number)
        return number

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        list(sorted_items(range(2000), key, False, full))
