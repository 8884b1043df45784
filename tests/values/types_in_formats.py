"""The types that dataclasses commonly have, the formats that store them, and how their values return.

`ROWS` has the types, `FORMATS` the functions that write records and read them back; `answer` computes a cell.
"""

from __future__ import annotations

import datetime as dt
import enum
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, is_dataclass, make_dataclass
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import pyarrow as pa
import pydantic
from typing_extensions import TypedDict  # pydantic reads that of `typing` from Python 3.12 on

import dstream as ds
from dstream.errors import DStreamError
from reducers import to_files, to_sql
from sources import avro_records, csv_rows, json_lines, parquet_rows, sql_rows

__all__ = ["FORMATS", "ROWS", "Row", "answer"]

BERLIN = ZoneInfo("Europe/Berlin")


class Mood(enum.Enum):
    """An enumeration of plain members."""

    CALM = "calm"
    WILD = "wild"


class Size(enum.IntEnum):
    """An enumeration whose members are ints."""

    SMALL = 1
    LARGE = 2


@dataclass(frozen=True)
class Place:
    """A dataclass."""

    name: str
    depth: int


class Point(NamedTuple):
    """A named tuple."""

    x: int
    y: float


class Crew(TypedDict):
    """A dictionary with known keys."""

    captain: str
    sailors: int


class Ship(pydantic.BaseModel):
    """A class of pydantic."""

    name: str
    mass: int


@attrs.frozen
class Whale:
    """A class of attrs."""

    name: str
    length: float


class Flag(enum.StrEnum):
    """An enumeration whose members are strings."""

    RED = "red"


@dataclass(frozen=True)
class Row:
    """A type with some of its values.

    Attributes:
        sql: the columns of its table in SQL.
        kind: the class of the records.
        items: the records.
    """

    name: str
    sql: str
    kind: Any
    items: list[Any]


def _field(name: str, sql: str, annotation: Any, *values: Any) -> Row:
    """Return the row of a type as the field of a dataclass, which a pickle finds by its name in this module."""
    called = "Of" + re.sub(r"\W+", "_", name)
    kind = make_dataclass(called, [("n", int), ("v", annotation)], frozen=True)
    kind.__module__ = __name__
    globals()[called] = kind
    return Row(name, f"n BIGINT, v {sql}", kind, [kind(number, value) for number, value in enumerate(values)])


DAY, MOMENT = dt.date(2026, 1, 31), dt.datetime(2026, 7, 1, 4, 5, 6, 7)
OLD = dt.datetime(1851, 10, 18)

ROWS = [
    _field("int", "BIGINT", int, 7, -(2**63)),
    _field("int of 65 bits", "NUMERIC", int, 2**64),
    _field("float", "DOUBLE", float, 0.1, -2.0),
    _field("float inf", "DOUBLE", float, float("inf")),
    _field("float nan", "DOUBLE", float, float("nan")),
    _field("bool", "BOOLEAN", bool, True, False),
    _field("str", "TEXT", str, 'a "b",\r\nc', "", "NA"),
    _field("str with \\0", "TEXT", str, "a\0b"),
    _field("str, surrogate", "TEXT", str, "a\ud800b"),
    _field("bytes", "BLOB", bytes, b"\x00\xff", b""),
    _field("Decimal", "NUMERIC(38, 18)", Decimal, Decimal("2.50"), Decimal("-0.000001")),
    _field("Decimal 39 digits", "NUMERIC(38, 18)", Decimal, Decimal(10**38)),
    _field("Decimal NaN", "NUMERIC(38, 18)", Decimal, Decimal("NaN")),
    _field("Fraction", "TEXT", Fraction, Fraction(1, 3), Fraction(2)),
    _field("date", "DATE", dt.date, DAY, dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    _field("time", "TIME", dt.time, dt.time(23, 59, 58, 7), dt.time(0)),
    _field("time, zone", "TIME", dt.time, dt.time(4, 5, tzinfo=dt.UTC)),
    _field("datetime", "TIMESTAMP", dt.datetime, MOMENT, OLD, dt.datetime.min, dt.datetime.max),
    _field("datetime, UTC", "TIMESTAMP", dt.datetime, MOMENT.replace(tzinfo=dt.UTC)),
    _field("datetime, zone", "TIMESTAMP", dt.datetime, MOMENT.replace(tzinfo=ZoneInfo("Europe/Berlin"))),
    _field("timedelta", "TEXT", dt.timedelta, dt.timedelta(days=2, microseconds=7), dt.timedelta(seconds=-1)),
    _field("timedelta.max", "TEXT", dt.timedelta, dt.timedelta.max),
    _field("UUID", "CHAR(36)", UUID, UUID(int=7), UUID(int=2**127)),
    _field("Enum", "TEXT", Mood, Mood.CALM, Mood.WILD),
    _field("IntEnum", "INTEGER", Size, Size.SMALL, Size.LARGE),
    _field("StrEnum", "TEXT", Flag, Flag.RED),
    _field("Literal", "TEXT", Literal["tea", "cake"], "tea", "cake"),
    _field("Path", "TEXT", Path, Path("a/b"), Path("/c")),
    _field("IPv4Address", "TEXT", IPv4Address, IPv4Address("10.0.0.1")),
    _field("IPv6Address", "TEXT", IPv6Address, IPv6Address("::1")),
    _field("list[int]", "JSON", list[int], [1, 2], []),
    _field("list[date]", "JSON", list[dt.date], [DAY], []),
    _field("list[Enum]", "JSON", list[Mood], [Mood.CALM], []),
    _field("list[dataclass]", "JSON", list[Place], [Place("sea", 3)], []),
    _field("tuple[int, ...]", "JSON", tuple[int, ...], (1, 2), ()),
    _field("tuple[int, str]", "JSON", tuple[int, str], (1, "a"), (2, "b")),
    _field("tuple[int, int]", "JSON", tuple[int, int], (1, 2), (3, 4)),
    _field("set[str]", "JSON", set[str], {"a"}, set()),
    _field("frozenset[int]", "JSON", frozenset[int], frozenset({1})),
    _field("dict[str, int]", "JSON", dict[str, int], {"a": 1}, {"b": 2}),
    _field("dict[int, str]", "JSON", dict[int, str], {1: "a"}, {}),
    _field("dict[str, date]", "JSON", dict[str, dt.date], {"a": DAY}, {"b": DAY}),
    _field("dict to None", "JSON", dict[str, int | None], {"a": 1}, {"b": None}),
    _field("int or None", "BIGINT", int | None, 7, None),
    _field("int or None, big", "BIGINT", int | None, 2**53 + 1, None),
    _field("bool or None", "BOOLEAN", bool | None, True, None),
    _field("str or None", "TEXT", str | None, "", None),
    _field("date or None", "DATE", dt.date | None, DAY, None),
    _field("float or None", "DOUBLE", float | None, float("nan"), None),
    _field("Enum or None", "TEXT", Mood | None, Mood.CALM, None),
    _field("list or None", "JSON", list[str] | None, [], None),
    _field("dataclass or None", "JSON", Place | None, Place("sea", 3), None),
    _field("int or str", "TEXT", int | str, 7, "7"),
    _field("int or float", "NUMERIC", int | float, 7, 7.0),
    _field("bool or int", "INTEGER", bool | int, True, 1),
    _field("date or str", "TEXT", dt.date | str, DAY, "2026-01-31"),
    _field("dataclass", "JSON", Place, Place("sea", 3), Place("", -1)),
    _field("NamedTuple", "JSON", Point, Point(1, 2.0), Point(0, 0.5)),
    _field("TypedDict", "JSON", Crew, Crew(captain="Ahab", sailors=30)),
    _field("pydantic", "JSON", Ship, Ship(name="Pequod", mass=7)),
    _field("attrs", "JSON", Whale, Whale("Moby", 20.5)),
    Row("record NamedTuple", "x BIGINT, y DOUBLE", Point, [Point(1, 2.0), Point(0, 0.5)]),
    Row("record TypedDict", "captain TEXT, sailors BIGINT", Crew, [Crew(captain="Ahab", sailors=30)]),
    Row("record pydantic", "name TEXT, mass BIGINT", Ship, [Ship(name="Pequod", mass=7)]),
    Row("record attrs", "name TEXT, length DOUBLE", Whale, [Whale("Moby", 20.5)]),
]


class Refused(Exception):
    """A cell that ended with an exception: `phase` is "call", "write" or "read"."""

    def __init__(self, phase: str, error: Exception) -> None:
        super().__init__(phase, error)
        self.phase, self.error = phase, error


@contextmanager
def _phase(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise Refused(name, error) from error


Cell = Callable[[Row, Path], list[Any]]


def _connected(storage: object = "memory:") -> Any:
    return ds.connect(engine="local", storage=str(storage), progress=False)


def _files(format: Any, source: Callable[[Path, Any], Any], *, columns: bool = False) -> Cell:
    """Return the function that writes a row with `to_files`, with `columns=` or without, and reads the files."""

    def cell(row: Row, folder: Path) -> list[Any]:
        with _connected() as ctx:
            with _phase("call"):
                options = {"columns": row.kind} if columns else {}
                sink = to_files(folder / "files", format=format, **options)
            with _phase("write"):
                ctx.stream(row.items).collect(sink)
            with _phase("read"):
                return list(ctx.read(source(folder / "files", row.kind)).to_list())

    return cell


def _rows_of_delta(folder: Path, kind: Any) -> Any:
    """Return the source of a table that was written once, so that each of its files is in it."""
    return parquet_rows(str(folder / "*.parquet"), kind)


def _json_read(row: Row, folder: Path) -> list[Any]:
    """Return the records of a file that pydantic wrote, if pydantic itself reads them."""
    with _phase("none"):
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(row.kind)
        lines = [adapter.dump_json(item) for item in row.items]
        if not _is_same([adapter.validate_json(line) for line in lines], row.items):
            raise ValueError("pydantic changes these")
    (folder / "lines").write_bytes(b"\n".join(lines))
    with _connected() as ctx, _phase("read"):
        return list(ctx.read(json_lines(folder / "lines", row.kind)).to_list())


def _sql(row: Row, folder: Path) -> list[Any]:
    url = f"sqlite:///{folder}/rows.db"
    with closing(sqlite3.connect(folder / "rows.db")) as connection:
        connection.execute(f"CREATE TABLE rows ({row.sql})")
    with _connected() as ctx:
        with _phase("write"):
            ctx.stream(row.items).collect(to_sql(url, "rows"))
        with _phase("read"):
            return list(ctx.read(sql_rows(url, "SELECT * FROM rows", kind=row.kind)).to_list())


def _table(method: str) -> Cell:
    """Return the function that makes a table of a row, and records of the table."""

    def cell(row: Row, folder: Path) -> list[Any]:
        with _connected() as ctx:
            with _phase("write"):
                table = getattr(ctx.stream(row.items), method)()
            with _phase("read"):
                return list(ctx.from_df(table, row.kind).to_list())

    return cell


def _put(storage: str, row: Row) -> None:
    with _connected(storage) as ctx:
        with _phase("call"):
            made = ctx.get_map("m", key_type=int, value_type=row.kind)
        with _phase("write"):
            made.put_all(dict(enumerate(row.items)))


def _map(scheme: str) -> Cell:
    """Return the function that puts a row into a map, and gets the values from another context."""

    def cell(row: Row, folder: Path) -> list[Any]:
        _put(f"{scheme}{folder}/stored", row)
        with _connected(f"{scheme}{folder}/stored") as ctx, _phase("read"):
            found = dict(ctx.get_map("m").items())
            return [found[number] for number in range(len(row.items))]

    return cell


def _map_arrow(row: Row, folder: Path) -> list[Any]:
    """Return the values of a map by its table, whose column `value` has the fields of the class."""
    _put(f"{folder}/stored", row)
    with _connected(f"{folder}/stored") as ctx:
        with _phase("write"):
            table = ctx.get_map("m").to_arrow().sort_by("key")
        with _phase("read"):
            values = table["value"].combine_chunks()
            names = [values.type.field(at).name for at in range(values.type.num_fields)]
            return list(ctx.from_df(pa.Table.from_arrays(values.flatten(), names), row.kind).to_list())


FORMATS: Mapping[str, tuple[Cell, ...]] = {
    "csv": (_files("csv", csv_rows), _files("csv", csv_rows, columns=True)),
    "json": (_files("json", json_lines),),
    "json.read": (_json_read,),
    "parquet": (_files("parquet", parquet_rows), _files("parquet", parquet_rows, columns=True)),
    "avro": (_files("avro", avro_records), _files("avro", avro_records, columns=True)),
    "delta": (_files("delta", _rows_of_delta), _files("delta", _rows_of_delta, columns=True)),
    "sql": (_sql,),
    "arrow": (_table("to_arrow"),),
    "pandas": (_table("to_pandas"),),
    "map": (_map(""),),
    "table": (_map_arrow,),
    "sqlite": (_map("sqlite:"),),
}


def answer(row: Row, format: str, folder: Path) -> str:
    """Return the code of a cell; two of them, without and with `columns=` and the class, if they differ."""
    codes = []
    for number, cell in enumerate(FORMATS[format]):
        (folder / f"{number}").mkdir(parents=True)
        codes.append(_code(cell, row, folder / f"{number}"))
    return "/".join(dict.fromkeys(codes))


def _code(cell: Cell, row: Row, folder: Path) -> str:
    try:
        found = cell(row, folder)
    except Refused as end:
        refusals = {"none": "-", "call": "call", "write": "run", "read": "read"}
        code = refusals[end.phase]
        return code if code == "-" or _is_refusal(end.error, row) else f"{code}!"
    if repr(found) == repr(row.items):
        return "="
    return "=*" if _is_same(found, row.items) else _change(found, row.items)


def _is_refusal(error: Exception, row: Row) -> bool:
    """Tell whether an error is the library's, or a plain one that names the field or the class."""
    if isinstance(error, DStreamError):
        return True
    return type(error) in (TypeError, ValueError, UnicodeEncodeError) and bool(
        re.search(rf"\bv\b|\b{row.kind.__name__}\b", str(error))
    )


def _is_same(found: Any, value: Any) -> bool:
    """Tell whether two values are equal and of the same types, also inside of dataclasses, lists and dicts."""
    if type(found) is not type(value):
        return False
    if is_dataclass(value):
        return all(_is_same(getattr(found, name), getattr(value, name)) for name in vars(value))
    if isinstance(value, (list, tuple)):
        return len(found) == len(value) and all(map(_is_same, found, value))
    if isinstance(value, dict):
        return found.keys() == value.keys() and all(_is_same(found[key], value[key]) for key in value)
    return bool(found == value) or repr(found) == repr(value)


def _change(found: list[Any], items: list[Any]) -> str:
    """Return the code of records that differ: the type of the first other value, or `value` if the type is the same."""
    for one, item in zip(found, items, strict=False):
        one, value = getattr(one, "v", one), getattr(item, "v", item)
        if not _is_same(one, value):
            return "~value" if type(one) is type(value) else f"~{type(one).__name__.removesuffix('Type')}"
    return "~count"
