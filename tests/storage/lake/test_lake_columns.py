"""What splits of the lake give in columns: the same as one by one, of the types that the codec promises."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from dstream.collections.sources import EntryReader, EntrySource, ItemSource
from dstream.spi import ArrowRows
from dstream.storage.lake import splits
from dstream.storage.lake.splits import rows_of_entries, rows_of_items
from dstream.values import Entry


class Place(NamedTuple):
    """A named tuple."""

    x: int
    y: float


@dataclass
class Order:
    """A dataclass with parts of many kinds."""

    amount: int
    price: Decimal
    place: Place
    day: datetime.date
    note: str | None = None
    other: Place | None = None


@dataclass
class Shifted:
    """Gives something else than it holds."""

    amount: int

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        return found + 1 if type(found) is int else found


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "_ROWS", 4)


def _given(store: Any) -> list[Any]:
    return [each for split in store.splits(1) for each in split.arrow_rows()]


def _items(given: list[Any]) -> list[Any]:
    return [
        item for each in given for item in (each.items(slice(0, each.size)) if isinstance(each, ArrowRows) else each)
    ]


def _part(given: list[Any], name: str) -> list[Any]:
    return [value for each in given for value in each.parts[name]().to_pylist()]


def _with(store: Any, entries: dict[Any, Any]) -> Any:
    store.update(list(entries), lambda old: list(entries.values()))
    return store


def test_entries_stand_in_columns(lake: Any) -> None:
    """Of one file in each bucket, and of several, the newest; those that were removed are gone."""
    store = _with(lake.map(), {number: number / 4 for number in range(50)})
    for _ in range(2):
        given = _given(store)
        assert all(isinstance(each, ArrowRows) for each in given)
        assert _items(given) == [entry for split in store.splits(1) for entry in split.read()]
        assert dict(zip(_part(given, "key"), _part(given, "value"), strict=True)) == lake.content(store)
        _with(store, {number: None if number % 3 else -number / 4 for number in range(20)})
    assert len(_items(given)) < 50


def test_removed_entries_of_a_single_file_are_left_out(lake: Any) -> None:
    """Also where the file that says so stands alone in its bucket; the others stay in columns."""
    store = _with(lake.map(buckets=1), {number: number / 4 for number in range(9)})
    _with(store, {1: None, 2: -2.0, 3: None, 4: -4.0})
    (split,) = store.splits(1)
    ((_, newest),) = split.buckets

    given = list(replace(split, buckets=((newest,),)).arrow_rows())

    assert all(isinstance(each, ArrowRows) for each in given)
    assert sorted(_items(given)) == [(2, -2.0), (4, -4.0)]


def test_rows_with_an_escape_are_read_one_by_one(lake: Any) -> None:
    """The escape is the value, whatever another tool has left in the typed column."""
    items, entries = lake.list(), _with(lake.map(buckets=1), {1: 1})
    items.extend([1])
    ((of_items,), (of_entries,)) = (store.splits(1) for store in (items, entries))
    item_rows = _with_escape(of_items.layout, of_items.layout.items([1, 2, 3]), "b")
    entry_rows = _with_escape(of_entries.layout, of_entries.layout.entries([1, 2, 3], [1, 2, 3]), "b")

    given = [rows_of_items(of_items.layout, item_rows), rows_of_entries(of_entries.layout, entry_rows)]

    assert not any(isinstance(each, ArrowRows) for each in given)
    assert _items(given) == [1, "b", 3, (1, 1), (2, "b"), (3, 3)]


def _with_escape(layout: Any, batch: pa.RecordBatch, value: Any) -> pa.RecordBatch:
    """Return the rows with an escape beside the typed value of the second of three."""
    escape = pa.array([None, layout.codec.encode_value(value), None], batch.schema.field("_pv").type)
    return batch.set_column(batch.schema.get_field_index("_pv"), "_pv", escape)


@pytest.mark.parametrize("entries", [{1: 1, 2: 1.5}, {1: 1, "a": 1}, {1: 1, 2**70: 1}, {1: 1, 2: 2**70}, {1: {"a": 1}}])
def test_entries_of_several_types_are_read_one_by_one(lake: Any, entries: dict[Any, Any]) -> None:
    """Those beside the typed columns are pickled."""
    given = _given(_with(lake.map(), entries))

    assert not all(isinstance(each, ArrowRows) for each in given)
    assert sorted(_items(given), key=repr) == sorted(entries.items(), key=repr)


def test_parts_of_records_are_columns_of_their_own(lake: Any) -> None:
    """Texts that stand for decimals, and dates, are none."""
    orders = [
        Order(n, Decimal(n) / 10, Place(n, n / 4), datetime.date(2026, 1, 1 + n), "a" if n else None) for n in range(9)
    ]
    store = lake.list()
    store.extend(orders)

    given = _given(store)

    assert _items(given) == orders
    assert {frozenset(each.reached_by) for each in given} == {frozenset({"attribute"})}
    assert _part(given, "amount") == list(range(9))
    assert _part(given, "note") == [None, *["a"] * 8]
    assert [each.parts[name]() for each in given for name in ("price", "day", "other")] == [None] * 3 * len(given)
    places = [each.parts["place"]() for each in given]
    assert {frozenset(each.reached_by) for each in places} == {frozenset({"attribute", "place"})}
    assert _part(places, "y") == [n / 4 for n in range(9)]
    assert _items(places) == [order.place for order in orders]


def test_objects_that_give_something_else_have_no_parts(lake: Any) -> None:
    """Their class has code of its own."""
    store = lake.list()
    store.extend([Shifted(1), Shifted(2)])

    (given,) = _given(store)

    assert given.reached_by == frozenset()
    assert [each.amount for each in given.items(slice(0, 2))] == [2, 3]


@pytest.mark.parametrize(("start", "stop"), [(0, 50), (3, 4), (7, 31), (49, 50)])
def test_rows_of_a_stretch_are_those_of_the_stretch(
    lake: Any, start: int, stop: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row groups before and behind it are not read."""
    monkeypatch.setattr("dstream.storage.lake.tables.ROWS_IN_GROUP", 6)
    monkeypatch.setattr("dstream.storage.lake.tables._SMALL_FILE", 0)
    store = lake.list()
    store.extend(range(50))
    (split,) = store.splits(1)
    ((file, _, _),) = split.parts

    batches = list(splits.large_batches(split.folder, file, None, start, stop))

    assert [value for each in batches for value in each.column("value").to_pylist()] == list(range(start, stop))
    assert all(each.num_rows <= 4 for each in batches)


@pytest.mark.parametrize(
    ("items", "kind"), [([1, 2], pa.int64()), ([1.5, -0.0], pa.float64()), ([True], pa.bool_()), (["a"], pa.string())]
)
def test_items_without_parts_are_one_column(lake: Any, items: list[Any], kind: Any) -> None:
    """Of their own type."""
    store = lake.list()
    store.extend(items)

    (given,) = _given(store)

    assert given.reached_by == frozenset()
    assert repr(_part([given], "value")) == repr(items)
    assert given.parts["value"]().type == kind


@pytest.mark.parametrize("items", [[1, None], [1, "a"], [None]])
def test_lists_of_several_types_are_read_one_by_one(lake: Any, items: list[Any]) -> None:
    """None is an item, too."""
    store = lake.list()
    store.extend(items)

    assert _items(_given(store)) == items
    assert not any(isinstance(each, ArrowRows) for each in _given(store))


def test_sources_of_maps_give_entries(lake: Any) -> None:
    """Unless functions of the user's stand where they are read."""
    store = _with(lake.map(), {1: 1.5, 2: 2.5})
    source = EntrySource(store)
    assert source.has_columns
    assert ItemSource(lake.list()).has_columns

    given = [each for split in source.splits(1) for each in split.arrow_rows()]  # type: ignore[attr-defined]
    assert sorted(_items(given)) == [Entry(1, 1.5), Entry(2, 2.5)]
    assert {type(each) for each in _items(given)} == {Entry}
    assert {frozenset(each.reached_by) for each in given} == {frozenset({"attribute", "place"})}

    for functions in ({"predicate": bool}, {"projection": repr}):
        assert not EntrySource(store, **functions).has_columns  # type: ignore[arg-type]
        (reader,) = EntrySource(store, **functions).splits(1)  # type: ignore[arg-type]
        assert isinstance(reader, EntryReader)
        assert reader.arrow_rows() is None
