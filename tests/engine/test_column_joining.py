"""Joins by keys that are ints: which rows go in columns, where they go, and what they become."""

from __future__ import annotations

import numpy as np
import pytest

import dstream.engine.kernels.columns.column_joining as column_joining
from dstream.engine.kernels.columns.column_items import ColumnItems, given
from dstream.engine.kernels.columns.column_joining import HeldSide, JoinBatch, JoinedRows, rows_of_block, rows_of_items
from dstream.engine.kernels.columns.column_values import column_of, rows_at
from dstream.engine.kernels.hash_join import Matching
from dstream.engine.kernels.item_batches import loads
from dstream.engine.kernels.join_sides import KeysAlone, Side
from dstream.engine.kernels.join_tasks import join_batches, join_with
from dstream.engine.kernels.membership import Membership
from dstream.engine.worker.readers import read_buckets
from dstream.engine.worker.routing import RouteSide
from dstream.keys import stable_hash
from dstream.plan.steps import unchanged
from dstream.values import Entry


@pytest.fixture(autouse=True)
def fixed_hashes(monkeypatch):
    """Workers run with a fixed hash seed."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")


@pytest.mark.parametrize("keys", [[1, True], [1.0], [2**63], ["a"], [None]])
def test_only_ints_of_64_bits_go_in_columns(keys):
    """Other keys go as they are."""
    assert rows_of_items(keys, keys) is None
    assert rows_of_block(column_of([(1.0, 2)]), None) is None


def test_keys_that_are_no_ints_make_no_column(monkeypatch):
    """The first one tells."""
    monkeypatch.setattr(column_joining, "column_of", lambda keys: pytest.fail("a column of texts"))

    assert rows_of_items(["a", "b"], [1, 2]) is None


def test_keys_in_columns_go_where_equal_keys_go(task, step):
    """Also those below zero, and those that are congruent to others; each target has its rows in order."""
    keys = [5, -1, -2, 2**61 - 1, 0, 5, -(2**63)]
    rows = list(RouteSide(Side(None, step), 4, True)(iter([(key, place) for place, key in enumerate(keys)]), task))
    sent = {row.target: list(zip(*loads(row.payload).lists(), strict=True)) for row in rows}

    expected: dict[int, list[tuple[int, int]]] = {}
    for place, key in enumerate(keys):
        expected.setdefault(stable_hash(key) % 4, []).append((key, place))
    assert sent == expected


def test_what_stands_in_columns_stays_there(task, step):
    """A column of pairs is cut as a column."""
    (row,) = RouteSide(Side(None, step), 1, True)(ColumnItems(iter([column_of([(1, 1.5), (2, 2.5)])])), task)

    assert loads(row.payload).values() == [1.5, 2.5]
    assert b"values" in loads(row.payload).data


def test_a_hot_key_is_joined_some_entries_at_a_time(monkeypatch):
    """Entries of a row that has many partners, and of many rows, are made when they are asked for."""
    monkeypatch.setattr(column_joining, "_MOST_ENTRIES", 2)
    held = JoinBatch(column_of([1, 1, 1]).values, column_joining.dumps(["a", "b", "c"]))
    passing = JoinBatch(column_of([1, 2, 1]).values, column_joining.dumps(["x", "y", "z"]))
    side = HeldSide([held], Matching.of("left", holds_left=False))

    blocks = list(side.blocks([passing], are_collected=True))
    assert [type(block) for block in blocks] == [JoinedRows] * 3
    assert [value for block in blocks for _, value in given(block)] == [
        *(("x", "a"), ("x", "b"), ("x", "c")),
        ("y", None),
        *(("z", "a"), ("z", "b"), ("z", "c")),
    ]


def test_rows_of_a_join_that_nobody_looks_at_make_no_entries(task, step, monkeypatch):
    """A count knows them by number; a filter that looks at nothing takes some of them."""
    payloads = [row.payload for row in RouteSide(Side(None, step), 1, True)(iter([(1, "a"), (1, "b"), (2, "c")]), task)]
    passing = ColumnItems(iter([column_of([(2, 20), (1, 10), (3, 30)])]))
    with monkeypatch.context() as patched:
        patched.setattr(column_joining, "_entry", lambda pair: pytest.fail("an entry"))
        joined = join_with(payloads, Matching.of("inner", False), step, Side(None, step), passing, task)
        (block, rest) = joined.blocks()
        chosen = rows_at(block, np.array([2, 0]))

    assert ([block.size, chosen.size], list(rest)) == ([3, 2], [])
    assert list(given(chosen)) == [(1, (10, "b")), (2, (20, "c"))]
    assert {type(each) for each in given(block)} == {Entry}
    assert loads(column_joining.dumps(chosen)).values == list(given(chosen))


def test_a_semi_join_leaves_what_it_gives_in_columns(task, step):
    """So steps behind it run over columns."""
    payloads = [row.payload for row in RouteSide(KeysAlone(unchanged, step), 1, True)(iter([2, 4, 4]), task)]
    passing = ColumnItems(iter([column_of([1, 2, 3, 4, 2])]))
    given_on = join_with(payloads, Membership(is_wanted=True), step, Side(unchanged, step), passing, task)
    (block, rest) = given_on.blocks()

    assert (block.values.tolist(), list(rest)) == ([2, 4, 2], [])


@pytest.mark.parametrize("is_exceeded", [False, True])
def test_a_full_join_gives_all_of_both_sides(task, step, monkeypatch, is_exceeded):
    """Those that matched nothing come last; past the memory bound items are matched, in files."""
    monkeypatch.setattr(task.bound, "exceeded", lambda: is_exceeded)
    route = RouteSide(Side(None, step), 1, True)
    held = list(route(iter([(3, "c"), (1, "a"), (3, "d"), (2, "b")]), task))
    passing = [row._replace(target=1) for row in route(iter([(1, "x"), (4, "y"), (1, "z")]), task)]
    batches = read_buckets(iter([*held, *passing]))
    found = [tuple(each) for each in join_batches(Matching.of("full", False), step, 1, batches, task)]

    expected = [(1, ("x", "a")), (4, ("y", None)), (1, ("z", "a"))]
    expected += [(3, (None, "c")), (3, (None, "d")), (2, (None, "b"))]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert is_exceeded or found == expected


def test_items_that_pass_one_by_one_are_read_one_by_one(task, step):
    """Where a small side travels, an entry is there before the next item is asked for."""
    route = RouteSide(Side(None, step), 1, True)
    payloads = [row.payload for row in route(iter([(1, "a")]), task)]
    asked: list[int] = []
    passing = ((1, number) for number in range(9) if not asked.append(number))
    entries = join_with(payloads, Matching.of("inner", False), step, Side(None, step), passing, task)

    assert (next(entries), asked) == ((1, (0, "a")), [0])
