"""Sinks: the items of one task as rows."""

from __future__ import annotations

import itertools
import operator

import pytest

from collectors import counting, grouping_by
from dstream.engine.tasks.routing import RouteGroups
from dstream.engine.tasks.rows import ITEMS, SAMPLE, STOPPED, WAITING, Row
from dstream.engine.tasks.sinks import Accumulate, Act, RouteByKey, RouteByPlace, WriteItems, WriteParts, WritePrefix
from dstream.engine.tasks.sorting import RouteByRange, SortRuns
from dstream.errors import EngineError, UnstableKeyError
from dstream.failures import failure
from dstream.operators.rows.batches import dumps_items, loads
from dstream.spi import Collector


@pytest.fixture(autouse=True)
def fixed_hashes(monkeypatch):
    """Workers run with a fixed hash seed."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")


def by_target(rows):
    """Return the items that were sent to each target, in order."""
    found = {}
    for row in rows:
        if row.channel == ITEMS:
            found.setdefault(row.target, []).extend(loads(row.payload))
    return found


def test_write_items_counts_the_items_before_each_batch(task):
    """`sequence` is the position of a batch's first item, `source` the partition."""
    rows = list(WriteItems()(iter(range(200)), task))

    assert [(row.source, row.sequence, row.size) for row in rows] == [(3, 0, 64), (3, 64, 136)]
    assert by_target(rows) == {0: list(range(200))}


@pytest.mark.parametrize(("size", "expected"), [(1, [0, 1, 2]), (200, [0, 0, 1]), (10**6, [0, 0, 0])])
def test_write_parts_divides_the_rows(task, size, expected):
    """A part has its bytes, or a little more, in the order of the items; the last row says what waits."""
    rows = list(WriteParts(size)(iter(range(500)), task))
    written = [row for row in rows if row.channel == ITEMS]
    waiting = sum(len(row.payload) for row in written if row.target)

    assert [row.target for row in written] == expected
    assert [item for row in written for item in loads(row.payload)] == list(range(500))
    assert rows[3:] == ([Row(0, 3, waiting, WAITING, expected[-1], b"")] if waiting else [])


def test_write_parts_begins_each_part_anew(task):
    """Two rows of a quarter of a megabyte make a part of half a megabyte, the third one begins the next."""
    rows = list(WriteParts(500_000)(iter([f"{n:010000d}" for n in range(189)]), task))

    assert [row.target for row in rows if row.channel == ITEMS] == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(("keep_rest", "written"), [(False, [1, 2]), (True, [1, 2, 9, 1])])
def test_write_prefix_marks_where_it_ended(task, keep_rest, written):
    """The mark holds the position of the first item that fails; the rest is written if asked for."""
    rows = list(WritePrefix(lambda n: n < 5, keep_rest)(iter([1, 2, 9, 1]), task))

    assert (by_target(rows), [row.sequence for row in rows if row.channel == STOPPED]) == ({0: written}, [2])


def test_write_prefix_that_does_not_end_has_no_mark(task):
    """If all items pass, later partitions decide."""
    rows = list(WritePrefix(bool, False)(iter([1, 2]), task))

    assert [row.channel for row in rows] == [ITEMS]


def test_accumulate_writes_one_container_in_pieces(task, step):
    """A container of many megabytes travels in several rows; nothing gives an empty container."""
    collector = Collector(list, list.append, list.extend)
    large = list(Accumulate(collector, step)(iter([b"x" * 9_000_000]), task))
    (empty,) = Accumulate(collector, step)(iter([]), task)

    assert [row.sequence for row in large] == [0, 1, 2]
    assert loads(b"".join(row.payload for row in large)) == [[b"x" * 9_000_000]]
    assert loads(empty.payload) == [[]]


def test_act_runs_the_action_and_writes_nothing(task, step):
    """The action gets an iterator; its exception names the step."""
    seen = []

    assert (list(Act(seen.extend, step)(iter("ab"), task)), seen) == ([], ["a", "b"])
    with pytest.raises(KeyError) as caught:
        Act({}.__getitem__, step)("x", task)
    assert failure(caught.value).step == step


def test_route_by_key_sends_equal_keys_to_one_target(task, step):
    """Each key goes to one target, its first item only, with the position that it had."""
    items = [n % 10 for n in range(50)] + [0.0, True, 5.0]
    sent = by_target(RouteByKey(None, 3, step)(iter(items), task))
    again = by_target(RouteByKey(None, 3, step)(iter(map(float, items)), task))

    assert sorted(pair for pairs in sent.values() for pair in pairs) == [(n, n) for n in range(10)]
    assert again == sent


def test_route_by_key_past_the_bound_repeats_but_loses_nothing(task, step, full):
    """What was forgotten to save memory is sent again; the target takes the first one."""
    task.bound = full
    sent = by_target(RouteByKey(None, 2, step)(iter([1, 1, 2] * 5000), task))

    assert {item for pairs in sent.values() for _, item in pairs} == {1, 2}
    assert min(position for pairs in sent.values() for position, item in pairs if item == 2) == 2


def test_route_by_place_sends_items_back_in_order(task):
    """Neighbouring source partitions share a target, so targets follow one another."""
    pairs = [((source, 0), source) for source in range(8)]

    assert by_target(RouteByPlace(8, 3)(iter(pairs), task)) == {
        0: pairs[:3],
        1: pairs[3:6],
        2: pairs[6:],
    }


def test_route_groups_combines_before_it_sends(task, step):
    """One container for each key of the partition, ranked in first-seen order."""
    rows = list(RouteGroups(grouping_by(str, counting()), 2, step)(iter("abca"), task))

    sent = [group for row in rows for group in zip(*loads(row.payload), strict=True)]
    assert sorted((key, count) for key, _, count in sent) == [("a", 2), ("b", 1), ("c", 1)]
    assert [key for key, _, _ in sorted(sent, key=lambda group: group[1])] == ["a", "b", "c"]


def test_routing_refuses_keys_and_workers_that_cannot_route(task, step, monkeypatch):
    """A key without a hash, and a worker whose hashes are random."""
    with pytest.raises(UnstableKeyError):
        list(RouteByKey(None, 2, step)(iter([[1]]), task))
    monkeypatch.delenv("PYTHONHASHSEED")
    with pytest.raises(EngineError, match="PYTHONHASHSEED"):
        list(RouteByKey(None, 2, step)(iter([1]), task))


def test_sort_runs_sorts_and_samples(task, step):
    """The items of a run in order, and some of them, spread over it, as a sample."""
    rows = list(SortRuns(None, True, step)(iter(range(1000)), task))
    (sample,) = [row for row in rows if row.channel == SAMPLE]

    assert by_target(rows) == {0: list(range(999, -1, -1))}
    assert (sample.size, loads(sample.payload)[:3]) == (1000, [968, 906, 844])


def ranges(items, sample, targets, *, key=None, reverse=False, task, step):
    """Return what each target gets of one sorted batch."""
    batch = sorted(items, key=key, reverse=reverse)
    return by_target(RouteByRange(key, reverse, [dumps_items(list(sample))], targets, step)(iter([batch]), task))


def test_route_by_range_cuts_at_the_borders(task, step):
    """The sample is divided evenly; a key equal to a border stands right of it."""
    parts = ranges(range(9), [0, 3, 6], 3, task=task, step=step)

    assert parts == {0: [0, 1, 2], 1: [3, 4, 5], 2: [6, 7, 8]}


def test_route_by_range_descending(task, step):
    """In reverse the greatest keys go to the first target."""
    parts = ranges(range(9), [8, 5, 2], 3, reverse=True, task=task, step=step)

    assert parts == {0: [8, 7, 6], 1: [5, 4, 3], 2: [2, 1, 0]}


@pytest.mark.parametrize("reverse", [False, True])
def test_route_by_range_keeps_equal_keys_together(task, step, reverse):
    """Duplicates of a border are never spread over two targets, so the sort stays stable."""
    items = [(n % 3, n) for n in range(30)]
    parts = ranges(items, items[:9], 5, key=operator.itemgetter(0), reverse=reverse, task=task, step=step)
    keys = [{key for key, _ in part} for _, part in sorted(parts.items())]

    assert sorted(item for part in parts.values() for item in part) == sorted(items)
    assert all(not left & right for left, right in itertools.pairwise(keys))


def test_route_by_range_of_one_key_sends_all_to_one_target(task, step):
    """If all keys are equal there is one range."""
    assert ranges([7] * 5, [7] * 4, 3, task=task, step=step) == {2: [7] * 5}
