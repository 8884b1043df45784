"""Programs by chance on sources that have columns: Parquet, tables of the caller, maps and lists of the lake.

Each runs twice: over the columns of its source, and over the items that the source makes, in plain Python.
`python -m tests.soak.columns --kinds record --programs 20000` runs many and says how many blocks stood in columns.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import tempfile
import typing
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet

import dstream as ds
from dstream.connectors import dataframes
from dstream.connectors.dataframes import rows_of_table
from dstream.connectors.files import parquet
from dstream.operators.rows.guards import items_of
from dstream.plan.steps import Step
from dstream.schema.times import in_microseconds
from dstream.storage.lake import splits
from sources import parquet_rows
from tests.differential import random_functions
from tests.differential.column_programs import Checks, Program, judged, outcomes, program_on, watched
from tests.differential.random_functions import Form, WrittenForm

__all__ = ["Workshop", "main", "outcomes_of_records", "workshop"]

_STEP = Step("read", None, 0, 4)


@dataclass(frozen=True)
class Reading:
    """A split, whose items come in columns or one by one."""

    split: Any
    may_be_columns: bool

    def __iter__(self) -> Iterator[Any]:
        return items_of(self.split, _STEP, may_be_columns=self.may_be_columns)


@dataclass(frozen=True)
class RecordProgram(Program):
    """A program on splits."""

    def plain(self) -> Program:
        """Return it without columns."""
        plain = super().plain()
        return replace(plain, parts=[Reading(part.split, False) for part in plain.parts])  # type: ignore[attr-defined]


class Point(NamedTuple):
    """What lists and maps hold."""

    number: int
    part: float


@dataclass
class Order:
    """What lists and maps hold."""

    amount: int
    price: float
    is_paid: bool
    name: str
    place: Point
    day: datetime.date | None = None


class Workshop:
    """Makes programs; its files stand in a folder.

    Args:
        ctx: it has the lake.
        folder: for files.
    """

    def __init__(self, ctx: ds.Context, folder: Path) -> None:
        self.ctx = ctx
        self._folder = folder
        self._numbers = count()

    def program(self, seed: int) -> Program:
        """Make a program."""
        random = Random(seed)
        source, form, shown = self.source(random)
        parts = [Reading(split, True) for split in source.splits(random.randrange(1, 4))]
        made = program_on(parts, form, random, shown)
        return RecordProgram(made.parts, made.ops, made.collector, made.text)

    def source(self, random: Random) -> tuple[Any, Form, str]:
        """Make a source, the form of its items, and what is shown of it."""
        choice = random.random()
        if choice < 0.08:
            return self._map(random)
        if choice < 0.14:
            return self._list(random)
        return self._table(random) if choice < 0.25 else self._parquet(random)

    # --------------------------------------------------------------------------------------------------------- files

    def _parquet(self, random: Random) -> tuple[Any, Form, str]:
        columns = _columns(random)
        folder = self._folder / f"{next(self._numbers)}"
        folder.mkdir()
        shown = []
        for number in range(random.randrange(1, 4)):
            table = _made_table(columns, random)
            options: dict[str, Any] = {} if random.random() < 0.8 else {"write_statistics": False}
            size = random.choice((1, 3, 7, 1000))
            pyarrow.parquet.write_table(table, folder / f"{number}.parquet", row_group_size=size, **options)
            shown.append(f"{table.schema} {table.to_pylist()} by {size}")
        kind, way, said = _kind(columns, random)
        form = _form(columns, way)
        return parquet_rows(str(folder), kind=kind), form, f"{said} of {' then '.join(shown)}"

    def _table(self, random: Random) -> tuple[Any, Form, str]:
        columns = _columns(random)
        table = in_microseconds(_made_table(columns, random))
        kind, way, said = _kind(columns, random)
        return rows_of_table(table, kind), _form(columns, way), f"{said} of {table.schema} {table.to_pylist()}"

    # ------------------------------------------------------------------------------------------------------ the lake

    def _map(self, random: Random) -> tuple[Any, Form, str]:
        found = self.ctx.get_map(f"map {next(self._numbers)}")
        value, names, kinds = random.choice(_VALUES)
        entries: dict[Any, Any] = {}
        for _ in range(random.randrange(1, 4)):
            new = {random.randrange(30): value(random) for _ in range(random.randrange(1, 25))}
            if random.random() < 0.1:
                new[random.choice((2**70, "key", 0.5))] = random.choice((1, 1.0, 0, "text", value(random)))
            found.update(new)
            entries |= new
            for key in random.sample(sorted(entries, key=repr), random.randrange(0, 3) if len(entries) > 3 else 0):
                del found[key]
                del entries[key]
        form = WrittenForm((), "i" + kinds, written=("x.key", *(f"x.value{name}" for name in names)))
        return found.source, form, f"map {entries}"

    def _list(self, random: Random) -> tuple[Any, Form, str]:
        found = self.ctx.get_list(f"list {next(self._numbers)}")
        value, names, kinds = random.choice(_VALUES)
        items: list[Any] = []
        for _ in range(random.randrange(1, 4)):
            new = [value(random) for _ in range(random.randrange(0, 25))]
            if new and random.random() < 0.1:
                new[-1] = random.choice((None, "text", 2**70, 1.5))
            found.extend(new)
            items += new
        form = WrittenForm((), kinds, written=tuple(f"x{name}" for name in names))
        return found.source, form, f"list {items}"


def _point(random: Random) -> Point:
    return Point(random_functions._small(random), random_functions._float(random))


def _order(random: Random) -> Order:
    name = random.choice(("", "Ada", "ß", "İ"))
    day = random.choice((None, datetime.date(2026, 1, random.randrange(1, 29))))
    price = random_functions._odd_float(random)
    return Order(random_functions._wide(random), price, random.random() < 0.5, name, _point(random), day)


def _long(random: Random) -> int:
    return random.choice((random_functions._near_the_end, random_functions._near_exact))(random)


_VALUES: list[tuple[Callable[[Random], Any], tuple[str, ...], str]] = [
    (random_functions._small, ("",), "i"),
    (_long, ("",), "i"),
    (random_functions._odd_float, ("",), "f"),
    (random_functions._bool, ("",), "b"),
    (_point, (".number", ".part", "[0]", "[1]", "[-1]"), "ififf"),
    (_order, (".amount", ".price", ".is_paid", ".name", ".place.number", ".place[1]", ".day"), "ifbsifs"),
]


# ------------------------------------------------------------------------------------------------------------- columns


@dataclass(frozen=True)
class _Column:
    """A column of files.

    Attributes:
        kind: `i`, `f`, `b` or `s`.
        arrow: its type.
        make: makes a value.
        python: what its values are.
        has_nulls: whether some are None.
    """

    name: str
    kind: str
    arrow: Any
    make: Callable[[Random], Any]
    python: type
    has_nulls: bool


def _within(least: int, greatest: int) -> Callable[[Random], int]:
    return lambda random: random.choice((least, greatest, random.randint(least, greatest), min(greatest, 3)))


_DAYS = [datetime.date(2026, 1, day) for day in range(1, 29)] + [datetime.date.min, datetime.date(2024, 2, 29)]
_MOMENTS = [datetime.datetime.min, *(datetime.datetime(2026, 3, 29, hour, 30) for hour in range(1, 20))]
_AWARE = [datetime.datetime(2026, month, 25, hour, tzinfo=datetime.UTC) for month in (3, 10) for hour in (0, 1, 13)]
_KINDS: list[tuple[str, Any, Callable[[Random], Any], type]] = [
    ("i", pa.int64(), random_functions._small, int),
    ("i", pa.int64(), random_functions._wide, int),
    ("i", pa.int64(), random_functions._near_the_end, int),
    ("i", pa.int64(), random_functions._near_exact, int),
    ("i", pa.int32(), _within(-(2**31), 2**31 - 1), int),
    ("i", pa.int8(), _within(-128, 127), int),
    ("i", pa.uint16(), _within(0, 2**16 - 1), int),
    ("i", pa.uint64(), _within(0, 2**64 - 1), int),
    ("f", pa.float64(), random_functions._float, float),
    ("f", pa.float64(), random_functions._odd_float, float),
    ("f", pa.float32(), random_functions._float, float),
    ("b", pa.bool_(), random_functions._bool, bool),
    ("s", pa.string(), random_functions._text, str),
    ("d", pa.date32(), lambda random: random.choice(_DAYS), datetime.date),
    ("m", pa.timestamp("ms"), lambda random: random.choice(_MOMENTS), datetime.datetime),
    ("m", pa.timestamp("us"), lambda random: random.choice(_MOMENTS), datetime.datetime),
    ("m", pa.timestamp("ns"), lambda random: random.choice(_MOMENTS[1:]), datetime.datetime),
    ("m", pa.timestamp("us", "UTC"), lambda random: random.choice(_AWARE), datetime.datetime),
    ("m", pa.timestamp("s", "Europe/Berlin"), lambda random: random.choice(_AWARE), datetime.datetime),
    ("c", pa.decimal128(9, 2), lambda random: Decimal(random.randrange(-99, 9999)) / 100, Decimal),
    ("s", pa.list_(pa.int64()), lambda random: [1, 2], list),
]
_NAMES = ("number", "a b", "count", "key", "é", "value")


def _columns(random: Random) -> list[_Column]:
    names = random.sample(_NAMES, random.randrange(1, 5))
    return [_Column(name, *random.choice(_KINDS), has_nulls=random.random() < 0.2) for name in names]


def _made_table(columns: list[_Column], random: Random) -> Any:
    size = random.randrange(0, 30) if random.random() < 0.9 else 0
    arrays, fields = [], []
    for each in columns:
        has_nulls = each.has_nulls and random.random() < 0.7
        values = [None if has_nulls and random.random() < 0.2 else each.make(random) for _ in range(size)]
        arrays.append(pa.array(values, each.arrow))
        fields.append(pa.field(each.name, each.arrow, nullable=each.has_nulls or random.random() < 0.7))
    return pa.table(arrays, schema=pa.schema(fields))


def _kind(columns: list[_Column], random: Random) -> tuple[Any, str, str]:
    """Return a class for rows, or None, how its objects give their parts, and what it is."""
    if random.random() < 0.3 or not all(each.name.isidentifier() for each in columns):
        return None, "key", "dictionaries"
    fields = {each.name: _hint(each, random) for each in columns}
    if random.random() < 0.3:
        fields = {name: fields[name] for name in random.sample(list(fields), random.randrange(1, len(fields) + 1))}
    said = ", ".join(f"{name}: {hint}" for name, hint in fields.items())
    kinds = ("dataclass", "dataclass", "frozen", "slots", "tuple", "tuple", "dict", *_ODD)
    chosen = random.choice(kinds)
    if chosen == "tuple":
        kind: Any = NamedTuple("Made", list(fields.items()))  # type: ignore[misc]
    elif chosen == "dict":
        kind = typing.TypedDict("Made", fields)  # type: ignore[misc]
    else:
        options = {"slots": {"slots": True}, "frozen": {"frozen": True}}.get(chosen, {})
        bases = (_ODD[chosen],) if chosen in _ODD else ()
        kind = dataclasses.make_dataclass("Made", list(fields.items()), bases=bases, **options)  # type: ignore[arg-type]
    return kind, "key" if chosen == "dict" else "place" if chosen == "tuple" else "attribute", f"{chosen} {said}"


class _Changing:
    """Changes what it was given."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is int:
                setattr(self, name, value + 1)


class _Hiding:
    """Gives something else than it has."""

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        return found if type(found) is not int else found + 1


class _Keeping:
    """Keeps something else than it is given."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value + 1 if type(value) is int else value)


_ODD = {"changing": _Changing, "hiding": _Hiding, "keeping": _Keeping}


def _hint(column: _Column, random: Random) -> Any:
    hint: Any = column.python
    if column.kind == "i" and random.random() < 0.15:
        hint = float
    elif random.random() < 0.1:
        hint = random.choice((Any, int, float))
    elif hint is list:
        hint = list[int]
    is_optional = random.random() < (0.8 if column.has_nulls else 0.1)
    return hint if hint is Any or not is_optional else hint | None


def _form(columns: list[_Column], way: str) -> WrittenForm:
    if way == "key":
        written = [f"x[{each.name!r}]" for each in columns]
    elif way == "place":
        written = [f"x[{place}]" if place % 2 else f"x.{each.name}" for place, each in enumerate(columns)]
    else:
        written = [f"x.{each.name}" for each in columns]
    return WrittenForm((), "".join(each.kind for each in columns), written=tuple(written))


def outcomes_of_records(made: Program, seed: int) -> list[Any]:
    """Return for each way to run a program what columns give, and what plain Python may give."""
    random = Random(seed)
    first, rows = random.choice((1, 3, 8)), random.choice((2, 5, 16))
    small = {"_FIRST_ROWS": first, "_ROWS": rows, "_GROUP_BYTES": random.choice((0, 2**20))}
    with ExitStack() as patches:
        patches.enter_context(patch.multiple(parquet, **small))
        patches.enter_context(patch.multiple(splits, _ROWS=rows, _ITEMS=3))
        patches.enter_context(patch.multiple(dataframes, BLOCK_ROWS=rows, BATCH_ROWS=3))
        return outcomes(made, seed)


@contextmanager
def workshop() -> Iterator[Workshop]:
    """Give what makes programs, with a lake in a folder that is removed."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ds.connect(engine="local", storage=f"{folder}/lake", allowed=[Point, Order]) as ctx,
    ):
        yield Workshop(ctx, Path(folder))


def main(first: int, last: int) -> Counter[str]:
    """Run programs; print those that differ, and return what became of all."""
    counts: Counter[str] = Counter()
    with watched(counts):
        for start in range(first, last, 500):
            with workshop() as made_by:
                judged(range(start, min(start + 500, last)), functools.partial(_checks_of, made_by), counts)
    return counts


def _checks_of(made_by: Workshop, seed: int) -> tuple[str, Checks]:
    made = made_by.program(seed)
    return made.text, ((found[0], found, possible) for found, possible in outcomes_of_records(made, seed))
