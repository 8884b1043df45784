"""Sources whose items stand in columns: which of them, and that these are what the items are."""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypedDict
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet
import pytest

import dstream as ds
import dstream.connectors
from collectors import grouping_by, summing
from dstream.connectors.dataframes import rows_of_table
from dstream.connectors.files import parquet, splits
from dstream.errors import SourceError
from dstream.failures.account import known_of
from dstream.operators.rows.blocks import given
from dstream.operators.rows.guards import items_of
from dstream.plan.steps import Step
from dstream.spi import ArrowRows, InArrow
from dstream.spi.columns import SourceTraits
from dstream.spi.source import InputSize
from dstream.testing.engines import MASTER, SETTINGS
from sources import parquet_rows

TABLE = pa.table(
    {
        "n": pa.array(range(10), pa.int32()),
        "price": [number / 4 for number in range(10)],
        "text": [f"t{number}" for number in range(10)],
        "day": [datetime.date(2026, 1, 1 + number) for number in range(10)],
        "hole": [None, *range(9)],
    }
)


@dataclass
class Row:
    """Some columns, in another order; ints may be floats."""

    text: str
    n: float
    day: datetime.date
    other: int = 7


class Pair(NamedTuple):
    """Two columns."""

    n: int
    price: float


class Holed(NamedTuple):
    """Two columns, with a field between them that the file does not have."""

    price: float
    other: int = 7
    n: int = 0


class Typed(TypedDict):
    """A dictionary."""

    price: float
    hole: int | None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of four row groups."""
    pyarrow.parquet.write_table(TABLE, tmp_path / "a.parquet", row_group_size=3)
    return tmp_path / "a.parquet"


def _rows(source: Any) -> list[Any]:
    (split,) = source.splits(1)
    assert isinstance(split, InArrow)
    found = split.arrow_rows()
    assert found is not None
    return list(found)


def _items(source: Any) -> list[Any]:
    return [item for split in source.splits(1) for item in split.read()]


@pytest.mark.parametrize(
    ("kind", "ways", "names"),
    [
        (None, {"key"}, ["n", "price", "text", "day", "hole"]),
        (Row, {"attribute"}, ["text", "n", "day"]),
        (Pair, {"attribute", "place"}, ["n", "price"]),
        (Holed, {"attribute"}, ["price", "n"]),
        (Typed, {"key"}, ["price", "hole"]),
    ],
)
@pytest.mark.parametrize("group_bytes", [0, 2**20])
def test_rows_of_parquet_stand_in_columns(
    kind: Any, ways: set[str], names: list[str], group_bytes: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block for each row group, from each of which the same items can be made."""
    monkeypatch.setattr(parquet, "_GROUP_BYTES", group_bytes)
    source = parquet_rows(path, kind=kind)

    found = _rows(source)

    assert [each.size for each in found] == [3, 3, 3, 1]
    assert [item for each in found for item in each.items(slice(0, each.size))] == _items(source)
    assert [(list(each.parts), set(each.reached_by)) for each in found] == [(names, ways)] * 4
    assert source.has_columns  # type: ignore[attr-defined]


def test_blocks_are_small_at_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For who looks for one item."""
    monkeypatch.setattr(parquet, "_FIRST_ROWS", 1)

    assert [each.size for each in _rows(parquet_rows(path))] == [1, 2, 1, 2, 1, 2, 1]


def test_ints_are_floats_where_a_field_is_one(tmp_path: Path) -> None:
    """Beyond 2**53 they are rounded as Python does."""
    values = [2**53 + 1, -(2**53) - 1, 2**63 - 1, 3]
    pyarrow.parquet.write_table(pa.table({"n": values}), tmp_path / "a.parquet")
    kind = dataclasses.make_dataclass("Made", [("n", float)])

    (found,) = _rows(parquet_rows(tmp_path / "a.parquet", kind=kind))

    assert found.parts["n"]().to_pylist() == list(map(float, values))


def test_rows_can_be_kept_until_the_file_is_closed(path: Path) -> None:
    """A column that nobody has asked for is read then."""
    found = _rows(parquet_rows(path))

    assert found[1].parts["text"]().to_pylist() == ["t3", "t4", "t5"]


class _Own(NamedTuple):
    n: int


class _OwnPlaces(_Own):
    def __getitem__(self, place: Any) -> Any:
        return 0


class _OwnField(_Own):
    n = 7  # type: ignore[assignment]


class _OwnNew(_Own):
    def __new__(cls, n: int) -> _OwnNew:
        return super().__new__(cls, n + 1)


@dataclass
class _PostInit:
    n: int

    def __post_init__(self) -> None:
        self.n += 1


@dataclass
class _Checks:
    n: int
    known: ClassVar[int] = 0

    def __init__(self, n: int) -> None:
        self.n = n + 1


@dataclass
class _Looks:
    n: int

    def __getattribute__(self, name: str) -> Any:
        return 7 if name == "n" else object.__getattribute__(self, name)


@dataclass
class _Keeps:
    n: int

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value + 1)


@dataclass
class _Made:
    n: int

    def __new__(cls, n: int) -> _Made:
        raise ValueError(n)


class _Property:
    @property
    def n(self) -> int:
        return 7

    @n.setter
    def n(self, value: int) -> None:
        pass


_OF_A_TEXT: dict[str, Any] = {"__name__": "namedtuple_of_ours"}
_TEXT = """
import dataclasses, collections

@dataclasses.dataclass
class Doubled:
    n: int

    def __init__(self, n):
        self.n = n * 2

class Next(collections.namedtuple("Next", "n")):
    def __new__(cls, n):
        return super().__new__(cls, n + 1)
"""
exec(compile(_TEXT, "<string>", "exec", dont_inherit=True), _OF_A_TEXT)  # As of `python -c`.
_Computed = dataclasses.make_dataclass("_Computed", [("n", int)], bases=(_Property,))
_Given = dataclasses.make_dataclass("_Given", [("n", int), ("m", dataclasses.InitVar[int], 3)])


@pytest.mark.parametrize(
    "kind",
    [
        *(_OwnPlaces, _OwnField, _OwnNew, _PostInit, _Checks, _Looks, _Keeps, _Made, _Computed, _Given),
        *(_OF_A_TEXT["Doubled"], _OF_A_TEXT["Next"]),
    ],
)
def test_classes_that_do_more_than_to_keep_their_fields_have_no_columns(kind: Any, path: Path) -> None:
    """Each object may be something else."""
    for source in (parquet_rows(path, kind=kind), rows_of_table(TABLE.select(["n"]), kind)):
        assert not source.has_columns  # type: ignore[attr-defined]
        assert source.splits(1)[0].arrow_rows() is None  # type: ignore[index, union-attr]


@pytest.mark.parametrize("has_statistics", [True, False])
@pytest.mark.parametrize(
    ("fields", "values", "fit"),
    [
        ([("n", int)], {"n": [1, None]}, False),
        ([("n", int | None)], {"n": [1, None]}, True),
        ([("n", int)], {"n": [1, 2]}, True),
        ([("n", int)], {"n": [1.0]}, False),
        ([("n", float)], {"n": [True]}, False),
        ([("n", bool)], {"n": [1]}, False),
        ([("n", str)], {"n": [b"a"]}, False),
        ([("n", Any)], {"n": [None]}, True),
        ([("n", int), ("m", list[int])], {"n": [1], "m": [[1]]}, False),
        ([("n", int), ("m", datetime.datetime)], {"n": [1], "m": [datetime.date(2026, 1, 1)]}, False),
    ],
)
def test_rows_stand_in_columns_if_all_of_them_become_items(
    fields: Any, values: Any, fit: bool, has_statistics: bool, tmp_path: Path
) -> None:
    """Otherwise the items of their row group are made one by one, and one may be refused."""
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table(values), path, write_statistics=has_statistics)

    (found,) = _rows(parquet_rows(path, kind=dataclasses.make_dataclass("Made", fields)))

    assert isinstance(found, ArrowRows) is fit
    assert fit or isinstance(found, Iterator)


@pytest.mark.parametrize("options", [{"with_path": True}, {"on_bad": "skip"}])
def test_pairs_and_rows_that_may_be_left_out_are_not_drawn_as_columns(options: Any, path: Path) -> None:
    """With the path items are pairs of it and the row."""
    source = parquet_rows(path, **options)

    assert not source.has_columns
    assert (source.splits(1)[0].arrow_rows() is None) is ("with_path" in options)


@pytest.mark.parametrize(
    ("kind", "ways"),
    [
        (None, {"key"}),
        (Pair, {"attribute", "place"}),
        (dataclasses.make_dataclass("Made", ["price", "n"]), {"attribute"}),
    ],
)
def test_rows_of_a_table_stand_in_columns(kind: Any, ways: set[str]) -> None:
    """By keys, or as the kind gives its fields."""
    source = rows_of_table(TABLE.select(["n", "price"]), kind)

    (found,) = _rows(source)

    assert set(found.reached_by) == ways
    assert list(found.items(slice(0, 10))) == _items(source)
    assert found.parts["n"]().to_pylist() == list(range(10))


def test_a_table_with_a_null_where_a_field_needs_a_value_is_refused() -> None:
    """Also by steps that use another field: the row becomes no item."""
    kind = dataclasses.make_dataclass("Made", [("n", int), ("hole", int)])
    (found,) = _rows(rows_of_table(TABLE.select(["n", "hole"]), kind))

    with pytest.raises(SourceError, match="row 1"):
        list(found)


class _Turned(NamedTuple):
    price: float
    n: int


@pytest.mark.parametrize(
    "source", [lambda path: parquet_rows(path, _Turned), lambda _: rows_of_table(TABLE.select(["n", "price"]), _Turned)]
)
def test_places_are_those_of_the_fields(source: Callable[[Path], Any], path: Path) -> None:
    """Columns in another order say nothing of places."""
    found, *_ = _rows(source(path))

    names = list(found.parts)
    assert "place" not in found.reached_by or names == ["price", "n"]


@pytest.mark.parametrize("columns", ["auto", "verify", "off"])
def test_functions_run_over_columns_of_sources_on_spark(
    columns: Any, path: Path, spark_context: ds.Context, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What comes out is the same in all three ways, and that of plain Python."""
    expected = [(number / 2, Pair(number, number / 4)) for number in range(10) if number % 3 != 1]
    with ds.connect(MASTER, config=SETTINGS, storage=data, columns=columns) as ctx:
        pairs = ctx.get_list(f"pairs {uuid4()}")
        pairs.extend(Pair(number, number / 4) for number in range(10))
        for stream in (ctx.read(parquet_rows(path, Pair)), pairs.stream()):
            chosen = stream.filter(lambda row: row.n % 3 != 1)

            assert chosen.map(lambda row: (row.price * 2, row)).to_list() == expected
            assert chosen.collect(grouping_by(lambda row: row.n % 2, summing(lambda row: row.n))) == {0: 16, 1: 17}
            chosen.explain(routes=True)
            assert ("# columns" in capsys.readouterr().out) is (columns != "off")


@pytest.mark.parametrize("kind", [Pair, None])
@pytest.mark.parametrize("columns", ["auto", "verify"])
def test_rows_of_parquet_are_sorted_and_joined_on_spark(
    columns: Any, kind: Any, path: Path, spark_context: ds.Context, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By several tasks, which send rows to each other: whole, and beside their key."""
    monkeypatch.setattr(splits, "SMALLEST_SPLIT", 1)
    rows = _items(parquet_rows(path, kind=kind))
    number: Any = (lambda row: row["n"]) if kind is None else (lambda row: row.n)
    with ds.connect(MASTER, config=SETTINGS, storage=data, columns=columns) as ctx:
        stream = ctx.read(parquet_rows(path, kind=kind))
        pairs = stream.map(lambda row: (number(row), row))

        assert len(stream.partitions()) > 1
        assert stream.sorted(key=number, reverse=True).to_list() == rows[::-1]
        assert pairs.sorted(key=lambda pair: -pair[0]).to_list() == [(number(row), row) for row in rows[::-1]]
        joined = pairs.join([(each, str(each)) for each in range(10)], how="full")
        assert joined.sorted(key=lambda entry: entry.key).to_list() == [
            (number(row), (row, str(number(row)))) for row in rows
        ]


def test_texts_that_are_none_are_told_with_their_file(tmp_path: Path) -> None:
    """As where rows are read one by one, whenever they are made."""
    places = pa.py_buffer(b"\0\0\0\0\1\0\0\0")
    texts = pa.Array.from_buffers(pa.string(), 1, [None, places, pa.py_buffer(b"\xff")])
    pyarrow.parquet.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    (found,) = _rows(parquet_rows(tmp_path / "a.parquet"))

    with pytest.raises(SourceError, match=r"a.parquet, row 1: column text: a text that is no UTF-8"):
        list(found.items(slice(0, 1)))


@pytest.mark.parametrize("kind", [None, Row])
def test_a_value_that_python_has_not_names_the_step_that_reads(kind: Any, tmp_path: Path) -> None:
    """As where rows do not stand in columns: the source, and no step behind it."""
    days = pa.array([0, 3_000_000], pa.int32()).cast(pa.date32())
    pyarrow.parquet.write_table(pa.table({"text": ["a", "b"], "n": [1, 2], "day": days}), tmp_path / "a.parquet")
    (split,), step = parquet_rows(tmp_path / "a.parquet", kind=kind).splits(1), Step("read(...)", None, 0, 1)

    for may_be_columns in (False, True):
        items: Any = items_of(split, step, may_be_columns=may_be_columns)
        blocks = items.blocks() if may_be_columns else iter((items,))
        with pytest.raises(SourceError, match="date value out of range") as caught:
            list(chain.from_iterable(map(given, blocks)))
        failure = known_of(caught.value)
        assert failure is not None
        assert failure.step is step


def test_columns_that_cannot_be_read_are_told_with_their_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file that is torn."""

    def fail(*arguments: Any) -> Any:
        raise OSError("torn")

    monkeypatch.setattr(parquet._ColumnsOfGroup, "_read", fail)
    found = _rows(parquet_rows(path))

    with pytest.raises(SourceError, match=r"cannot read .*a.parquet: .*torn"):
        found[0].parts["n"]()


def test_columns_beside_those_of_the_fields_are_left_out(path: Path) -> None:
    """Where they are asked for, too."""
    (found, *_) = _rows(parquet_rows(path, Pair, columns=["n", "price", "text"]))

    assert list(found.parts) == ["n", "price"]
    assert list(found.items(slice(0, 1))) == [Pair(0, 0.0)]


def test_each_attribute_that_engines_read_belongs_to_a_source():
    """A misspelt name would be a default for ever: each is an attribute or a field of a source of dstream's."""
    modules = [each.name for each in pkgutil.walk_packages(dstream.connectors.__path__, "dstream.connectors.")]
    kinds = [
        kind for name in modules for kind in vars(importlib.import_module(name)).values() if hasattr(kind, "splits")
    ]
    bases = [vars(base) for kind in kinds if isinstance(kind, type) for base in kind.__mro__]
    found = {name for each in bases for name in (*each, *each.get("__annotations__", ()))}
    asked = re.findall(r'attr\(self\._source, "(\w+)"', inspect.getsource(SourceTraits))

    assert len(asked) == len([each for each in vars(SourceTraits).values() if isinstance(each, property)])
    assert set(asked) <= found


@pytest.mark.parametrize("room", ["engine", "explain"])
def test_engines_read_attributes_of_sources_at_one_place(room):
    """No module of theirs asks a source for one by its name."""
    asked = re.findall(r'attr\(self\._source, ("\w+")', inspect.getsource(SourceTraits))
    texts = {path: path.read_text() for path in (Path(dstream.__path__[0]) / room).rglob("*.py")}

    assert [path for path, text in texts.items() if re.search(rf"attr\(.*?, ({'|'.join(asked)})\b", text)] == []


class _OfTheUser:
    """A source with an attribute of its own, whose name is that of one of dstream's."""

    ordered = bounded = True
    in_caller = False

    def __init__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def splits(self, parallelism: int) -> list[_Numbers]:
        return [_Numbers()]

    def input_size(self) -> InputSize:
        return InputSize(3, stored_bytes=1_000)


class _Numbers:
    def read(self) -> Iterator[int]:
        return iter(range(3))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("paths", [Path("numbers")]), ("paths", None), ("paths", len), ("maker", ["a"]), ("glob", "*")),
        *(("has_columns", True), ("gives_texts", True), ("columns_if", len), ("item_class", dict)),
        *(("is_free_to_read", True), ("is_of_functions", True), ("iterable", [[1]]), ("iterable", range(7))),
    ],
)
def test_a_source_of_the_user_may_have_attributes_of_any_name(
    name: str, value: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Engines take them for none of dstream's."""
    with ds.connect(storage="memory:", progress=False) as context:

        def explained(source: _OfTheUser) -> str:
            context.read(source).map(lambda n: n + 1).explain(routes=True)
            return re.sub("0x[0-9a-f]+", "", capsys.readouterr().out)

        assert explained(_OfTheUser(name, value)) == explained(_OfTheUser("other", value))
        assert context.read(_OfTheUser(name, value)).map(lambda n: n + 1).to_list() == [1, 2, 3]
