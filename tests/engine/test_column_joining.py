"""Joins by keys that are ints or texts: which rows go in columns, where they go, and what they become."""

from __future__ import annotations

import math
import weakref
from itertools import chain

import numpy as np
import pytest

import dstream.operators.columns.entries as column_entries
import dstream.operators.joins.columns as column_joining
import dstream.operators.joins.key_index as key_index
from dstream.engine.tasks.readers import read_buckets
from dstream.engine.tasks.routing import RouteSide
from dstream.keys import stable_hash
from dstream.operators.columns.entries import JoinedRows, PassingRows, RowValues, entries_of
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.strings import Strings
from dstream.operators.columns.values import NotColumnar, column_of, items_of, rows_at
from dstream.operators.joins.columns import JoinBatch, SideTable, rows_of_block, rows_of_items
from dstream.operators.joins.hash import Matching, Membership
from dstream.operators.joins.key_index import KeyIndex
from dstream.operators.joins.pairs import join_batches, join_with
from dstream.operators.rows.batches import loads
from dstream.operators.rows.blocks import ColumnItems, given
from dstream.operators.rows.keys import KeysAlone, Side
from dstream.plan.steps import unchanged
from dstream.values import Entry
from dstream.values.entries import key_of
from tests.differential.written_expressions import expression_of


@pytest.fixture(autouse=True)
def fixed_hashes(monkeypatch):
    """Workers run with a fixed hash seed."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")


@pytest.mark.parametrize("keys", [[1, True], [1.0], [2**63], ["a"], [None]])
def test_of_items_only_ints_of_64_bits_become_columns(keys):
    """Other keys go as they are."""
    assert rows_of_items(keys, keys) is None


@pytest.mark.parametrize("way", [None, key_of])
def test_ints_and_texts_that_stand_in_columns_stay_there(way):
    """Other keys go as they are."""
    ints, texts = (rows_of_block(column_of([(key, 2.5)]), way) for key in (1, "é"))

    assert (ints[0].tolist(), texts[0].tolist()) == ([1], ["é"])
    assert rows_of_block(column_of([(1.0, 2)]), way) is None
    assert rows_of_block(column_of([((1, 2), 2)]), way) is None
    assert rows_of_block(column_of([1.5]), unchanged) is None
    entries = entries_of(column_of([(1, 2.5)]))
    keys, values = rows_of_block(entries, way)
    assert (keys.tolist(), values) == ([1], entries if way is key_of else entries.members[1])


def test_pairs_of_a_join_whose_sides_are_objects_make_no_column():
    """Pairs of objects have no members, although they are entries."""
    objects = JoinedRows(PassingRows(np.array([1]), [None]), np.arange(1), RowValues([[None]]), np.arange(1), False)

    assert rows_of_block(objects, None) is None


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
    side = SideTable([held], Matching.of("left", holds_left=False))

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
        patched.setattr(column_entries, "as_entry", lambda pair: pytest.fail("an entry"))
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


_TEXTS = ["", "a", "b\n", "\0", "é", "𝄞", "a", "ab"]


def _sent(pairs, step, task, targets=1):
    return RouteSide(Side(None, step), targets, True)(ColumnItems(map(column_of, pairs)), task)


def test_texts_in_columns_go_where_equal_texts_go(task, step):
    """Each target has its rows in order, and columns of them."""
    pairs = [(key, place) for place, key in enumerate(_TEXTS)]
    sent = {row.target: loads(row.payload) for row in _sent([pairs], step, task, 3)}

    expected: dict[int, list[tuple[str, int]]] = {}
    for pair in pairs:
        expected.setdefault(stable_hash(pair[0]) % 3, []).append(pair)
    assert {target: list(zip(*batch.lists(), strict=True)) for target, batch in sent.items()} == expected
    assert {type(batch) for batch in sent.values()} == {JoinBatch}


@pytest.mark.parametrize("passing", [[[("a", 1), ("x", 2)]], [[("a", 1)], [(1, 3), ("b", 4)]], [[(1, 1)], [("a", 3)]]])
@pytest.mark.parametrize("held", [[[("a", "A"), ("b", "B"), ("a", "C")]], [[("a", "A")], [(1, "I")]], [[(1, "I")]]])
@pytest.mark.parametrize("how", ["full", "inner"])
def test_texts_and_ints_meet_their_equals_alone(how, held, passing, task, step):
    """Blocks of either kind stand on either side."""
    rows = [*_sent(held, step, task), *(row._replace(target=1) for row in _sent(passing, step, task))]
    found = join_batches(Matching.of(how, False), step, 1, read_buckets(iter(rows)), task)

    held_pairs, passing_pairs = [*chain(*held)], [*chain(*passing)]
    expected = [(key, (one, other)) for key, one in passing_pairs for each, other in held_pairs if each == key]
    if how == "full":
        keys = ({key for key, _ in held_pairs}, {key for key, _ in passing_pairs})
        expected += [(key, (one, None)) for key, one in passing_pairs if key not in keys[0]]
        expected += [(key, (None, other)) for key, other in held_pairs if key not in keys[1]]
    assert sorted(map(repr, found)) == sorted(repr(Entry(*each)) for each in expected)


_KEYS = {
    "least and greatest": [0, -1, -(2**63), 2**63 - 1, 2**32, -(2**32), 1, 0],
    "only upper bits": [number << 40 for number in range(200)],
    "many equal": [number * 7919 % 50 for number in range(500)],
    "all different": [number * 2654435761 % 2**32 for number in range(500)],
    "texts": [
        "",
        "a",
        "a\0",
        "\0",
        "12345678",
        "123456789",
        "12345678\0",
        "1234567\0",
        "ä",
        "a",
        "",
        "x" * 40,
        "x" * 41,
    ],
    "many texts": [f"customer {number * 7919 % 90}" for number in range(300)],
}


_ROUNDS = [{"_FEW_ROUNDS": few, "_MOST_ROUNDS": most} for few, most in ((1, 1), (3, 3), (1, 256))]
_TO_FIRST_SLOT, _TO_LAST_SLOT = {"_SPREADER": np.uint64(0)}, {"_SPREADER": np.uint64(2**64 - 1)}


@pytest.mark.parametrize("limits", [{}, *_ROUNDS, _TO_FIRST_SLOT, _TO_LAST_SLOT])
@pytest.mark.parametrize("keys", _KEYS.values(), ids=_KEYS)
def test_an_index_has_the_numbers_that_a_dict_has(monkeypatch, keys, limits):
    """Also where keys meet in few slots, or need more rounds than there may be."""
    for name, value in limits.items():
        monkeypatch.setattr(key_index, name, value)
    expected = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    others = [*reversed(keys), *(["b", "x" * 39, "12345679"] if isinstance(keys[0], str) else [5, -2, 2**62])]
    index = KeyIndex(rows_of_block(column_of(keys), unchanged)[0])

    assert index.numbers.tolist() == [expected[key] for key in keys]
    assert index.keys.tolist() == list(expected)
    assert index.is_unique == (len(expected) == len(keys))
    found = index.find(rows_of_block(column_of(others), unchanged)[0])
    assert found.tolist() == [expected.get(key, -1) for key in others]


def test_texts_with_one_hash_are_told_apart(monkeypatch):
    """The hash of strings says where to look, and no more."""
    monkeypatch.setattr(key_index, "_hashes_of_texts", lambda texts: np.zeros(len(texts), np.int64))

    held, others = column_of(["a", "b", "a"]), column_of(["c", "b", "a"])
    assert KeyIndex(held).numbers.tolist() == [0, 1, 0]
    assert KeyIndex(held).find(others).tolist() == [-1, 1, 0]
    assert KeyIndex(column_of(["a", "a"])).find(others).tolist() == [-1, -1, 0]


@pytest.mark.parametrize("stride", [987, 1597, 2584, 832040])
def test_multiples_of_a_number_of_fibonacci_need_no_dict(monkeypatch, stride):
    """The product that spreads other ints best leaves these side by side."""
    monkeypatch.setattr(KeyIndex, "_looked_up", lambda index, keys: pytest.fail("a dict"))
    keys = np.arange(1000) * stride
    index = KeyIndex(keys)

    assert index.is_unique
    assert index.find(keys[::-1]).tolist() == list(range(999, -1, -1))
    assert (index.find(keys + 1) == -1).all()


def test_a_long_text_among_short_ones_needs_no_round_for_each_word(monkeypatch):
    """Python hashes the rest of it, on both sides."""
    rounds = []
    monkeypatch.setattr(key_index, "_folded", lambda numbers, fold=key_index._folded: rounds.append(1) or fold(numbers))
    long = "x" * 1_000_000
    index = KeyIndex(column_of(["a", long, "b" * 256, long + "y", "b" * 257, long]))

    assert index.numbers.tolist() == [0, 1, 2, 3, 4, 1]
    found = index.find(column_of([long + "y", long + "z", "b" * 257, "b" * 258, "b" * 256, long]))
    assert found.tolist() == [3, -1, 4, -1, 2, 1]
    assert len(rounds) < 100


def test_the_rest_of_long_texts_is_in_their_hashes():
    """Texts with one beginning and one length would need a dict otherwise."""
    texts = column_of(["x" * 256 + f"{number:06}" for number in range(2000)])

    assert len(set(key_index._hashes_of_texts(texts).tolist())) == 2000


def test_an_index_of_no_keys_finds_none():
    """A side may have no rows."""
    assert KeyIndex(np.empty(0, np.int64)).find(np.arange(3)).tolist() == [-1] * 3


def test_a_slice_of_texts_has_the_hashes_of_its_texts():
    """It shares the bytes of its array."""
    texts = column_of(["abc", "de", "abc", "fghijklmnop", "de"])
    index = KeyIndex(texts.taken(np.array([1, 3])))

    assert index.find(Strings(texts.values.slice(2), is_ascii=True)).tolist() == [-1, 1, 0]


def test_rows_for_one_target_are_not_hashed_and_travel_alone(monkeypatch):
    """In one task nothing has to be divided; of a slice Arrow pickles the whole array."""
    monkeypatch.setattr(column_joining, "hashes_of", lambda keys: pytest.fail("hashed"))
    texts = column_of([f"text {number}" for number in range(5000)])
    few = Strings(texts.values.slice(100, 2), is_ascii=True)

    ((target, size, data),) = column_joining.sent_to_targets((few, few), 1)
    assert (target, size, len(data) < 2000) == (0, 2, True)
    assert loads(data).lists() == (["text 100", "text 101"], ["text 100", "text 101"])


def test_long_texts_are_looked_up_a_few_at_a_time(monkeypatch):
    """One array of Arrow takes so many bytes, and no more."""
    monkeypatch.setattr(column_joining, "MOST_BYTES", 40)
    side = SideTable([JoinBatch(column_of(["a"]), column_joining.dumps(["A"]))], Matching.of("inner", holds_left=False))
    looked_up = []
    monkeypatch.setattr(side, "_looked_up", lambda rows: looked_up.append(len(rows)) or ())
    passing = [JoinBatch(column_of(["x" * size]), column_joining.dumps([size])) for size in (10, 10, 90, 10)]

    assert list(side.blocks(passing, are_collected=True)) == []
    assert looked_up == [2, 1, 1]
    assert not column_joining.are_of_one_type(passing)


def test_a_long_text_that_is_the_key_of_many_pairs_is_made_once():
    """Arrow has no places for 3 GB of keys, where Python has one object."""
    passing = PassingRows(column_of(["x" * 30_000_000]), ["passes"])
    rows = np.zeros(100, np.int64)

    keys = [entry.key for entry in given(JoinedRows(passing, rows, RowValues([["held"]]), rows, False))]

    assert len(keys) == 100
    assert len({id(key) for key in keys}) == 1


def _joined(passing, rows, held, held_rows):
    keys = np.arange(len(passing))
    held_values = RowValues([column_of(held)], behind=[None])
    return JoinedRows(PassingRows(keys, column_of(passing)), np.array(rows), held_values, np.array(held_rows), False)


@pytest.mark.parametrize(("passing", "rows", "held"), [([1, 1], [0, 1], [math.nan]), ([math.nan], [0, 0], [1])])
def test_a_nan_of_several_pairs_stays_one_object(passing, rows, held):
    """Tuples that have the very same NaN are equal; so also in rows of a block that were chosen."""
    block = _joined(passing, rows, held, [0, 0])

    for each in (block, rows_at(block, np.array([1]))):
        with pytest.raises(NotColumnar, match="NaN"):
            _ = each.members
    first, second = given(block)
    assert first.value == second.value


def test_keys_of_pairs_have_the_bounds_of_their_numbers():
    """Python adds up those that would need more than 64 bits."""
    values = RowValues([column_of([1, 1])])
    rows = JoinedRows(PassingRows(np.array([3, 2**62]), column_of([1, 1])), np.arange(2), values, np.arange(2), False)

    assert items_of(evaluated(expression_of("lambda x: x.key + x.key"), [rows])) == [6, 2**63]


def test_a_nan_of_one_pair_is_in_a_column():
    """There is no other one to tell it from."""
    _, values = _joined([0.5, math.nan, 2.5], [0, 0, 1], [3.5], [0, 0, 0]).members

    assert str(items_of(values)) == "[(0.5, 3.5), (0.5, 3.5), (nan, 3.5)]"


def test_long_texts_are_not_repeated_for_each_pair(monkeypatch):
    """Python has one object for all pairs of a row."""
    monkeypatch.setattr(column_entries, "_MOST_BYTES", 10)
    block = _joined(["x" * 6, "y"], [0, 0], [1], [0, 0])

    with pytest.raises(NotColumnar, match="bytes"):
        _ = block.members
    assert [value for _, value in given(block)] == [("x" * 6, 1)] * 2
    assert items_of(_joined(["x" * 6, "y"], [0, 1], [1], [0, 0]).members[1]) == [("x" * 6, 1), ("y", 1)]


def test_the_values_of_a_side_are_in_memory_once():
    """Their parts are free when they are one column."""
    parts = [column_of([1, 2]), column_of([3])]
    first = weakref.ref(parts[0].values)
    values = RowValues(parts)
    del parts
    values.column()

    assert first() is None
    assert values.items() == [1, 2, 3]


def test_keys_of_a_semi_join_go_once(task, step):
    """Each text of a block, without its item."""
    route = RouteSide(KeysAlone(unchanged, step), 1, True)
    (row,) = route(ColumnItems(iter([column_of(["b", "a", "b"])])), task)

    assert sorted(loads(row.payload).keys.tolist()) == ["a", "b"]
