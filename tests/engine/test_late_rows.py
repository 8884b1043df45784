"""Rows of Parquet that are joined travel with the parts that steps behind use, and are read again for all else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import dstream as ds
from collectors import averaging, counting, filtering, grouping_by, max_by, summing
from dstream.base.pickling import dumps
from dstream.connectors.files import parquet
from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.compiler.joins import AdaptiveJoin
from dstream.errors import SourceError
from dstream.failures.account import known_of
from dstream.operators.columns.arrow_rows import LateRows, Records, ReferredRows, blocks_of_rows, referred_rows
from dstream.operators.columns.values import NotColumnar, items_of
from dstream.operators.rows.batches import Reopened, loads_items
from dstream.plan import Collect, ToList, rewrite
from dstream.plan.steps import Step
from dstream.stream import Stream
from sources import parquet_rows
from tests.engine.graphs_here import GraphHere

_STEP = Step("read", None, 0, 1)
_ROWS = [{"id": n, "name": f"n{n % 9}", "amount": n % 10, "price": n / 4, "zero": 0} for n in range(60)]


@pytest.fixture(autouse=True)
def one_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """This one process routes keys to itself, in small blocks."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setattr(parquet, "_FIRST_ROWS", 3)
    monkeypatch.setattr(parquet, "_ROWS", 8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of several row groups."""
    return _written(tmp_path / "rows.parquet", _ROWS)


def _written(path: Path, rows: list[dict[str, Any]]) -> Path:
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=20)
    return path


@pytest.fixture
def rows(path: Path) -> Iterator[Stream[Any]]:
    """Give the rows of the file as a stream."""
    with ds.connect(engine="local") as ctx:
        yield ctx.read(parquet_rows(str(path)))


def _run(stream: Stream[Any], largest: int = -1) -> list[Any]:
    return GraphHere(rewrite(ToList(stream._node)), ClusterFacts(3, 2, largest)).items()


def _joined_by_hand() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(one, other) for one in _ROWS for other in _ROWS if one["name"] == other["name"]]


def _by_name(rows: Stream[Any]) -> Stream[Any]:
    return rows.join(rows, on=lambda row: row["name"])


@pytest.mark.parametrize("largest", [-1, 0, 2**20])
def test_only_the_columns_that_are_used_are_read(
    rows: Stream[Any], monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    """Wherever the sides meet; the key is used by the join alone."""
    read, names = parquet._ColumnsOfGroup._read, set()
    monkeypatch.setattr(
        parquet._ColumnsOfGroup, "_read", lambda own, opened, name: names.add(name) or read(own, opened, name)
    )

    found = _run(_by_name(rows).map(lambda e: e.value[0]["amount"] + e.value[1]["amount"]), largest)

    assert sorted(found) == sorted(one["amount"] + other["amount"] for one, other in _joined_by_hand())
    assert names == {"name", "amount"}


def _called(entry: Any) -> Any:
    while not entry:
        pass
    return entry.value[0]["amount"]


_ALL = None, None
_USES: dict[str, tuple[Callable[[Stream[Any]], Any], Any, tuple[Any, Any]]] = {
    "fields": (lambda s: s.map(lambda e: e.value[0]["amount"] + e.value[1]["id"]), None, ({"amount"}, {"id"})),
    "a filter": (
        lambda s: s.filter(lambda e: e.value[1]["price"] > 2).map(lambda e: e.key),
        None,
        (set(), {"price"}),
    ),
    "a row within a tuple": (
        lambda s: s.map(lambda e: (e.key, e.value[0])).map(lambda p: p[1]["price"]),
        None,
        ({"price"}, set()),
    ),
    "one of both": (
        lambda s: s.map(lambda e: (e.value[0] if e.key > "n3" else e.value[1])["id"]),
        None,
        _ALL,
    ),
    "get": (lambda s: s.map(lambda e: e.value[1].get("id", 0)), None, (set(), {"id"})),
    "a collector": (
        lambda s: s,
        grouping_by(lambda e: e.value[0]["amount"], averaging(lambda e: e.value[1]["price"])),
        ({"amount"}, {"price"}),
    ),
    "a condition": (
        lambda s: s,
        filtering(lambda e: e.value[0]["id"] > 3, summing(lambda e: e.value[1]["amount"])),
        ({"id"}, {"amount"}),
    ),
    "a truth": (lambda s: s.filter(lambda e: e.value[0]).map(lambda e: 1), None, (None, set())),
    "a count": (lambda s: s, counting(), (set(), set())),
    "the greatest": (lambda s: s, max_by(key=lambda e: e.value[0]["amount"]), _ALL),
    "the items": (lambda s: s, None, _ALL),
    "a filter alone": (lambda s: s.filter(lambda e: e.value[0]["id"] > 3), None, _ALL),
    "a row": (lambda s: s.map(lambda e: e.value[0]), None, (None, set())),
    "a comparison": (lambda s: s.map(lambda e: e.value[0] == e.value[1]), None, _ALL),
    "None": (lambda s: s.filter(lambda e: e.value[0] is None).map(lambda e: 1), None, (None, set())),
    "a function": (lambda s: s.map(_called), None, _ALL),
    "a name": (lambda s: s.map(lambda e: getattr(e.value[0], e.key)), None, _ALL),
    "a key that differs": (lambda s: s.map(lambda e: e.value[0][e.key]), None, (None, set())),
    "a comprehension": (lambda s: s.map(lambda e: [v * 2 for v in e.value[1]]), None, (set(), None)),
    "a sort": (lambda s: s.sorted(key=lambda e: e.value[0]["id"]), None, _ALL),
    "a failure handled": (lambda s: s.map(lambda e: e.value[0]["id"]).ignore(ValueError), None, _ALL),
    "a peek": (lambda s: s.peek(print).map(lambda e: 1), None, _ALL),
    "two readers": (lambda s: s.map(lambda e: e.key) + s.map(lambda e: e.value[0]["id"]), None, _ALL),
    "a number": (lambda s: s.map_to_int(lambda e: e.value[0]["id"]), summing(), ({"id"}, set())),
}


@pytest.mark.parametrize("case", _USES)
def test_what_steps_use_is_what_travels(rows: Stream[Any], case: str) -> None:
    """Where a row may be seen as a whole, all of it travels."""
    steps, collector, expected = _USES[case]
    node = steps(_by_name(rows))._node
    end: Any = ToList(node) if collector is None else Collect(node, collector)
    graph, _ = compiled(rewrite(end), ClusterFacts(3, 2, -1))
    (join,) = (each for each in graph.decisions if isinstance(each, AdaptiveJoin))
    assert join.used is not None

    assert (join.used.of(True), join.used.of(False)) == expected


@pytest.mark.parametrize("how", ["left", "right", "full"])
def test_rows_without_partners_travel_as_they_are(rows: Stream[Any], how: Any) -> None:
    """Functions get their items."""
    joined = rows.join(rows, on=lambda row: row["id"], how=how).map(lambda e: 1)
    graph, _ = compiled(rewrite(ToList(joined._node)), ClusterFacts(3, 2, -1))

    assert [each.used for each in graph.decisions] == [None]  # type: ignore[attr-defined]


def test_nothing_is_left_out_where_columns_are_verified(rows: Stream[Any]) -> None:
    """Each item is made anyway."""
    end = rewrite(ToList(_by_name(rows).map(lambda e: 1)._node))
    graph, _ = compiled(end, ClusterFacts(3, 2, -1, columns="verify"))

    assert [each.used for each in graph.decisions] == [None]  # type: ignore[attr-defined]


@pytest.mark.parametrize("largest", [-1, 2**20])
def test_the_item_of_a_failure_is_whole(rows: Stream[Any], largest: int) -> None:
    """Fields that no step uses are in it."""
    failing = _by_name(rows).map(lambda e: e.value[0]["amount"] // (e.value[1]["id"] - 59))

    with pytest.raises(ZeroDivisionError) as raised:
        _run(failing, largest)

    known = known_of(raised.value)
    assert known is not None
    assert (known.item.value[1], known.item.value[0] in _ROWS) == (_ROWS[59], True)


@pytest.mark.parametrize("largest", [-1, 2**20])
def test_what_leaves_the_columns_is_read_again(rows: Stream[Any], largest: int) -> None:
    """Ints of more than 64 bits are made by Python, of items."""
    found = _run(_by_name(rows).map(lambda e: (e.value[0]["id"] + 2**60) * (e.value[1]["id"] + 1)), largest)

    assert sorted(found) == sorted((one["id"] + 2**60) * (other["id"] + 1) for one, other in _joined_by_hand())


def test_rows_of_a_semi_join_travel_in_parts(rows: Stream[Any]) -> None:
    """Of the other side the keys travel alone."""
    some = rows.filter(lambda row: row["id"] < 2).map(lambda row: row["name"])
    found = rows.semi_join(some, on=(lambda row: row["name"], lambda name: name)).map(lambda row: row["amount"])

    assert sorted(_run(found)) == sorted(row["amount"] for row in _ROWS if row["name"] in ("n0", "n1"))


class Row(NamedTuple):
    """The rows as objects."""

    id: int
    name: str
    amount: int
    price: float


def test_objects_are_read_again_as_objects(path: Path) -> None:
    """Of the class that the source has; a place may be any field."""
    with ds.connect(engine="local") as ctx:
        rows = ctx.read(parquet_rows(str(path), Row))
        joined = rows.join(rows, on=lambda row: row.id)

        assert sorted(_run(joined.map(lambda e: e.value[0].id + e.value[1].price))) == [n * 1.25 for n in range(60)]
        assert sorted(_run(joined.map(lambda e: e.value[0].id + 2**63))) == [n + 2**63 for n in range(60)]
        assert sorted(_run(joined.map(lambda e: e.value[0][2]))) == sorted(row["amount"] for row in _ROWS)


# ---------------------------------------------------------------------------------------------------------- late rows


def _blocks(path: Path) -> list[Records]:
    (split,) = parquet_rows(str(path)).splits(1)
    return list(blocks_of_rows(split.arrow_rows(), _STEP))  # type: ignore[arg-type]


def _travelled(rows: Records, *parts: str) -> ReferredRows:
    found = referred_rows(rows, frozenset(parts))
    assert found is not None
    return loads_items(dumps(found))  # type: ignore[no-any-return]


def test_rows_have_all_parts_and_items_behind_their_travel(path: Path) -> None:
    """Also a selection of them, and a selection of that."""
    block = _blocks(path)[1]
    late = _travelled(block.at(np.array([4, 0, 2])), "amount").unpacked(Reopened())
    first = items_of(block)

    assert items_of(late.part("amount")) == [first[place]["amount"] for place in (4, 0, 2)]
    assert items_of(late.part("price")) == [first[place]["price"] for place in (4, 0, 2)]
    assert items_of(late) == [first[place] for place in (4, 0, 2)]
    assert items_of(late.at(np.array([2, 2]))) == [first[2], first[2]]
    assert items_of(late.at(np.array([2, 0])).at(np.array([1])).part("id")) == [first[4]["id"]]
    with pytest.raises(NotColumnar, match="not there"):
        late.part("other")


def test_rows_of_several_blocks_are_put_together(path: Path) -> None:
    """In order, with the rows of each block at their places."""
    reopened = Reopened()
    late = LateRows.stacked([_travelled(each, "name").unpacked(reopened) for each in _blocks(path)])
    places = np.array([59, 0, 30, 30])

    assert items_of(late) == _ROWS
    assert items_of(late.part("name")) == [row["name"] for row in _ROWS]
    assert items_of(late.at(places)) == [_ROWS[place] for place in places]
    assert items_of(late.at(places).part("price")) == [_ROWS[place]["price"] for place in places]


def test_rows_with_other_parts_are_not_put_together(path: Path) -> None:
    """Nor are selections."""
    one, other = (_travelled(_blocks(path)[0], name).unpacked(Reopened()) for name in ("id", "name"))

    with pytest.raises(NotColumnar, match="layouts"):
        LateRows.stacked([one, other])
    with pytest.raises(NotColumnar, match="layouts"):
        LateRows.stacked([one.at(np.array([0])), one])


def test_neighbours_are_read_from_one_open_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a row group share its columns; two row groups are open at most."""
    opened, groups = parquet.BlockOfGroup.opened, []
    monkeypatch.setattr(parquet.BlockOfGroup, "opened", lambda block: groups.append(block.group.index) or opened(block))
    reopened = Reopened()

    for each in [*_blocks(path), *_blocks(path)[-1:], *_blocks(path)[:1]]:
        items_of(_travelled(each, "name").unpacked(reopened))

    assert groups == [0, 1, 2, 0]


_CHANGED = {
    "a value": [{**row, "amount": row["amount"] + 1} for row in _ROWS],
    "a type": [{**row, "zero": 0.0} for row in _ROWS],
    "a row less": _ROWS[:2],
    "columns that are gone": [{"amount": row["amount"]} for row in _ROWS],
    "no column": [{**row, "amount": [1]} for row in _ROWS],
    "no file": [],
}


@pytest.mark.parametrize("case", _CHANGED)
def test_rows_of_a_file_that_was_changed_are_refused(path: Path, case: str) -> None:
    """Rows that are read again are compared with the columns that have travelled."""
    block = _blocks(path)[0]
    object.__setattr__(block.rows.again.group.file, "size", 0)  # type: ignore[union-attr]  # It did not shrink.
    late = _travelled(block, "amount", "zero").unpacked(Reopened())
    path.unlink()
    if _CHANGED[case]:
        _written(path, _CHANGED[case])

    assert items_of(late.part("amount")) == [0, 1, 2]
    with pytest.raises(SourceError, match=r"rows\.parquet"):
        items_of(late)


def test_rows_travel_whole_where_all_parts_are_used_or_one_is_no_column(path: Path) -> None:
    """A reference would save nothing."""
    (block, *_) = _blocks(path)

    assert referred_rows(block, frozenset(_ROWS[0])) is None
    _written(path, [{**row, "tags": [1], "data": b"1"} for row in _ROWS])
    assert referred_rows(_blocks(path)[0], frozenset({"tags"})) is None
    assert referred_rows(_blocks(path)[0], frozenset({"data"})) is None
    assert referred_rows(_blocks(path)[0], frozenset({"id"})) is not None


def test_workers_of_spark_read_rows_again(spark_context: ds.Context, path: Path) -> None:
    """Another process than the one that read them first; the item of a failure has all fields."""
    rows = spark_context.read(parquet_rows(str(path)))
    met = _by_name(rows).configure({"spark.sql.autoBroadcastJoinThreshold": "-1"})
    large = met.map(lambda e: (e.value[0]["id"] + 2**60) * (e.value[1]["id"] + 1))

    assert sorted(large.to_list()) == sorted(
        (one["id"] + 2**60) * (other["id"] + 1) for one, other in _joined_by_hand()
    )
    with pytest.raises(ZeroDivisionError, match=r"'price': 14\.75, 'zero': 0"):
        met.map(lambda e: e.value[0]["amount"] // (e.value[1]["id"] - 59)).to_list()
