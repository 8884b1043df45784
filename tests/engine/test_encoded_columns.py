"""`Encoded`: dates, times, decimals and values beside None as columns, with a call for each distinct value."""

from __future__ import annotations

import datetime as times
import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from collectors import counting, grouping_by, summing
from dstream.base.copies import are_plain
from dstream.engine.compiler.evaluation import collector_read
from dstream.errors import NullElementError
from dstream.expressions import Applied, Argument, Constant
from dstream.expressions.reader import Unreadable, read
from dstream.expressions.resolution import is_same_constant_everywhere
from dstream.operators.columns.arrow_rows import Records, column_of_array
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.encoded_calls import as_encoded, by_distinct
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.values import ConstantColumn, Floats, Ints, NotColumnar, column_of, items_of, rows_at
from dstream.operators.rows.batches import dumps, loads_items, packed_columns
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected
from dstream.spi import ArrowRows

_START = date(2024, 1, 1)
_DAYS = [date(2024, 2, 29), date(2023, 12, 31), date(2024, 2, 29), date.min]
_MOMENTS = [datetime(2024, 2, 29, 23, 59, 1, 5), datetime(1970, 1, 1), datetime(2023, 1, 1, 12), datetime.max]
_AWARE = [datetime(2024, month, 27, 1, 30, tzinfo=times.UTC) for month in (3, 10, 3, 7)]
_BERLIN = ZoneInfo("Europe/Berlin")
ROWS: list[dict[str, Any]] = [
    {"day": day, "at": at, "utc": utc, "there": utc.astimezone(_BERLIN), "total": Decimal(n) / 4, "n": n, "text": text}
    for n, (day, at, utc, text) in enumerate(
        zip(_DAYS, _MOMENTS, _AWARE, ("2024-02-29", "2023-12-31", "2024-02-29", "2020-01-01"), strict=True)
    )
]
for row, note, discount in zip(ROWS, ("a", None, "", "a"), (None, 0.5, 1.5, None), strict=True):
    row.update(note=note, discount=discount)
_TYPES = {
    "there": pa.timestamp("us", "Europe/Berlin"),
    "utc": pa.timestamp("ms", "UTC"),
    "total": pa.decimal128(9, 2),
}


def _rows(rows: list[dict[str, Any]] = ROWS) -> Records:
    columns = {name: pa.array([row[name] for row in rows], _TYPES.get(name)) for name in rows[0]}
    table = pa.table(columns)
    parts = {name: lambda name=name: columns[name] for name in columns}

    def items(places: Any) -> Any:
        return table.take(np.arange(len(rows))[places]).to_pylist()

    return Records(
        ArrowRows(
            len(rows), parts, frozenset({"key"}), lambda places: table.take(np.arange(len(rows))[places]).to_pylist(), 3
        ),
        None,
    )


FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda d: d["day"],
    lambda d: (d["day"].year, d["day"].month, d["day"].day, d["at"].hour, d["at"].minute, d["at"].second),
    lambda d: d["day"].isoformat()[:7],
    lambda d: (d["day"].weekday() >= 5, d["day"].isoweekday()),
    lambda d: (d["day"] >= _START, d["day"] > _START, d["day"] == date(2024, 2, 29), d["day"] != d["at"].date()),
    lambda d: (d["day"] - _START).days,
    lambda d: (d["at"].date() - d["day"]).days * d["n"],
    lambda d: (d["at"] - datetime(2020, 1, 1)).total_seconds(),
    lambda d: d["at"].replace(minute=0, second=0, microsecond=0),
    lambda d: d["day"].replace(day=1),
    lambda d: d["at"].isoformat(timespec="minutes") if d["n"] else "",
    lambda d: d["day"] + timedelta(days=1) if d["n"] < 3 else None,
    lambda d: d["day"] + timedelta(d["n"]),
    lambda d: timedelta(days=1, hours=d["n"]) if d["n"] > 9 else timedelta(0, d["n"]),
    lambda d: (d["at"].strftime("%Y-%m"), d["day"].strftime("%d.%m.%Y"), f"{d['day']}/{d['at']}", str(d["total"])),
    lambda d: (date.fromisoformat(d["text"]), datetime.fromisoformat(d["text"]).year),
    lambda d: datetime.strptime(d["text"], "%Y-%m-%d").date() - d["day"],
    lambda d: datetime.fromtimestamp(d["n"] * 86_400, tz=times.UTC),
    lambda d: datetime.fromtimestamp(d["n"] * 86_400, times.UTC).isoformat(),
    lambda d: date(2020 + d["n"], 1, d["n"] + 1),
    lambda d: times.datetime(2020, 1, 1, hour=d["n"], tzinfo=times.UTC),
    lambda d: (d["utc"].hour, d["there"].hour, d["utc"] == d["there"], d["there"].isoformat(), d["utc"].timestamp()),
    lambda d: d["there"] - d["utc"],
    lambda d: d["day"] in (_START, date.min),
    lambda d: (d["day"] and 1, not d["day"], d["day"] or 2),
    lambda d: max(d["day"], _START),
    lambda d: (d["total"] > 1, d["total"] * 2, float(d["total"]), int(d["total"]), round(d["total"], 1), -d["total"]),
    lambda d: d["total"] * d["n"] + 1,
    lambda d: d["total"].quantize(Decimal("0.1"), rounding=ROUND_HALF_UP),
    lambda d: (Decimal(d["n"]), Decimal(d["text"][:4]), d["total"] > Decimal("0.3"), Decimal(d["n"]) / 3),
    lambda d: {"day": d["day"], "note": d["note"]},
    lambda d: (d["note"] is None, d["note"] is not None, d["discount"] is None),
    lambda d: (d["note"] or "none", d["discount"] or 0, d["discount"] or 0.0),
    lambda d: d["note"].upper() if d["note"] is not None else "-",
    lambda d: d["discount"] * 2 if d["discount"] is not None else d["n"] / 2,
    lambda d: (d["note"] == "a", d["note"] in ("a", None), bool(d["note"])),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_are_those_of_python(function: Callable[[Any], Any]) -> None:
    """In value, type and digits."""
    expression: Any = read(function)
    found = items_of(evaluated(expression, [_rows()]))
    assert list(map(repr, found)) == [repr(function(row)) for row in items_of(_rows())]


REFUSED: list[Callable[[Any], Any]] = [
    lambda d: d["day"] < d["at"],
    lambda d: d["day"] - timedelta(days=1),  # One is the first day of all.
    lambda d: d["utc"] < d["at"],
    lambda d: d["note"].upper(),
    lambda d: d["discount"] + 1,
    lambda d: d["day"].hour,
    lambda d: d["day"].replace(hour=1),
    lambda d: date.fromisoformat(d["note"]),
    lambda d: d["total"] / 0,
    lambda d: Decimal(d["text"]),
    lambda d: d["text"].replace(old="2", new="3"),
    lambda d: ~d["note"],
]


@pytest.mark.parametrize("function", REFUSED)
def test_what_raises_is_left_to_python(function: Callable[[Any], Any]) -> None:
    """The loop names the item."""
    expression: Any = read(function)
    with pytest.raises(NotColumnar):
        evaluated(expression, [_rows()])


def test_a_function_is_called_once_for_each_distinct_value() -> None:
    """Also of several columns together, and never for a value that no row has any more."""
    seen: list[Any] = []

    def noted(*values: Any) -> Any:
        seen.append(values)
        return len(seen)

    days = as_encoded(column_of_array(pa.array([*_DAYS, None])))
    chosen = rows_at(days, np.arange(4))
    assert items_of(by_distinct(noted, [chosen, ConstantColumn(1, 4)])) == [1, 2, 1, 3]
    assert seen == [(day, 1) for day in (_DAYS[0], _DAYS[1], _DAYS[3])]
    seen.clear()
    assert items_of(by_distinct(noted, [chosen, column_of([5, 5, 6, 5])])) == [1, 2, 3, 4]
    assert seen == [(_DAYS[0], 5), (_DAYS[1], 5), (_DAYS[2], 6), (_DAYS[3], 5)]


def test_results_of_several_types_stay_what_they_are() -> None:
    """An int is no bool, also beside one."""
    days = column_of_array(pa.array(_DAYS))
    found = by_distinct(lambda day: True if day.day == 29 else day.month // 12, [days])
    assert list(map(repr, items_of(found))) == ["True", "1", "True", "0"]


def test_equal_values_of_different_forms_stay_apart() -> None:
    """And their order among distinct values cannot be told."""
    floats = Floats(np.array([0.0, -0.0, 1.5, 0.0]))
    assert list(map(repr, as_encoded(floats).tolist())) == ["0.0", "-0.0", "1.5", "0.0"]
    with pytest.raises(NotColumnar):
        as_encoded(Floats(np.array([math.nan])))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([2**62], pa.timestamp("s")),
        pa.array([1], pa.timestamp("ns")),
        pa.array([1], pa.time64("ns")),
        pa.array([[1]]),
        pa.array([10**7], pa.date32()),
        pa.array([math.nan, 1.0]).dictionary_encode(),
    ],
)
def test_values_that_python_lacks_are_left_to_it(array: Any) -> None:
    """Whoever makes the items says which one it is."""
    with pytest.raises(NotColumnar):
        column_of_array(array)


def test_results_of_other_types_are_left_to_python() -> None:
    """A list could be changed, and a NaN is one object."""
    days = column_of_array(pa.array(_DAYS))
    for result in ([1], Decimal("NaN"), Decimal("sNaN"), object()):
        with pytest.raises(NotColumnar):
            by_distinct(lambda value, result=result: result, [days])


class _Zone(times.tzinfo):
    """A zone of a user."""


class _NamedAsKnown(_Zone):
    """A zone of a user that gives the name of a library as its module."""

    __module__ = "pytz"


def test_values_with_code_of_a_user_are_left_to_python() -> None:
    """Which may do anything, and see how often it is called."""
    for value in (datetime(2024, 1, 1, tzinfo=_Zone()), times.time(1, tzinfo=_Zone()), _Zone()):
        with pytest.raises(NotColumnar):
            as_encoded(ConstantColumn(value, 1))


@pytest.mark.parametrize("kind", [_Zone, _NamedAsKnown])
def test_zones_of_a_user_are_known_nowhere(kind: Any) -> None:
    """In columns, as constants of functions and as parts of items: by the class itself, which may have any name."""
    at = datetime(2024, 1, 1, tzinfo=kind())
    with pytest.raises(NotColumnar):
        as_encoded(ConstantColumn(at, 1))
    assert not is_same_constant_everywhere(at)
    assert not are_plain([at])
    known = [datetime(2024, 1, 1, tzinfo=zone) for zone in (times.UTC, _BERLIN, None)]
    assert as_encoded(ConstantColumn(known[1], 1)).tolist() == known[1:2]
    assert are_plain(known)
    assert all(map(is_same_constant_everywhere, known))


def test_rows_travel_as_their_items() -> None:
    """Few rows without the values of others."""
    column = as_encoded(column_of_array(pa.array(_DAYS)))
    (packed,) = packed_columns(column)

    assert loads_items(packed[1]) == _DAYS
    assert column.taken(np.array([3])).objects == [date.min]
    both = Encoded.stacked([column, column.taken(np.array([1]))])
    assert both.tolist() == [*_DAYS, _DAYS[1]]
    assert len(dumps(both)) > 0


GROUPED: list[Callable[[Any], Any]] = [
    lambda d: d["day"],
    lambda d: d["at"].date(),
    lambda d: (d["day"], d["n"] > 1),
    lambda d: d["note"] or 0,
    lambda d: d["discount"] or False,
    lambda d: d["day"].isoformat()[:7],
    lambda d: d["total"] * 0,
    lambda d: d["total"] * 0 if d["n"] > 1 else d["n"] - d["n"],
    lambda d: d["note"] or d["n"] > 2 or 1.0,
]


@pytest.mark.parametrize("key", GROUPED)
def test_values_are_keys_of_groups(key: Callable[[Any], Any]) -> None:
    """Of several blocks together; the first one of equal keys stays."""
    for downstream in (counting(), summing(lambda d: d["n"])):
        collector, _ = collector_read(grouping_by(key, downstream), is_verified=False)
        assert collector.in_columns is not None
        blocks = [_rows(), _rows(ROWS[::-1])]
        rows = [row for block in blocks for row in items_of(block)]
        found = collector.finisher(collected(collector, ColumnItems(iter(blocks))))
        expected = collector.finisher(collector.accumulated(collector.supplier(), rows))
        assert list(map(repr, found.items())) == list(map(repr, expected.items()))


def test_a_key_that_is_none_is_refused() -> None:
    """As in Python, with the item."""
    collector, _ = collector_read(grouping_by(lambda d: d["note"], counting()), is_verified=False)
    with pytest.raises(NullElementError, match="a null key"):
        collected(collector, ColumnItems(iter([_rows()])))


def test_constants_of_dates_are_read() -> None:
    """Captured or written; what depends on the clock is not."""
    assert read(lambda x: date(2024, 1, day=1)) == Constant(_START)
    assert read(lambda x: timedelta(hours=2)) == Constant(timedelta(hours=2))
    assert read(lambda x: times.UTC) == Constant(times.UTC)
    assert read(lambda x: datetime.fromisoformat("2024-01-01")) == Constant(datetime(2024, 1, 1))
    for function in (lambda x: date.today(), lambda x: datetime.now(), lambda x: date(day=1, month=2, year=x.year)):
        assert isinstance(read(function), Unreadable)
    zoned = datetime(2024, 1, 1, tzinfo=_BERLIN)
    assert read(lambda x: x < zoned) == Applied("<", (Argument(0), Constant(zoned)))


def test_values_of_one_type_become_numbers_again() -> None:
    """Once the rows with None are gone."""
    column = column_of_array(pa.array([None, 5, 7, 5]))
    expression: Any = read(lambda n: n + 1)
    assert isinstance(evaluated(expression, [rows_at(column, np.arange(1, 4))]), Ints)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "day"])
@pytest.mark.parametrize("numbers", [range(2_000), [n % 3 for n in range(2_000)], [7, 7, None], [-1, -719_162]])
def test_times_are_those_that_arrow_makes(unit: str, numbers: Any) -> None:
    """Whether they repeat or not, in each unit."""
    array = pa.array(numbers, pa.date32() if unit == "day" else pa.timestamp(unit))
    found = column_of_array(array)

    assert items_of(found) == array.to_pylist()
    assert set(map(type, items_of(found))) == set(map(type, array.to_pylist()))
    if len(array) == 2_000:
        assert len(found.objects) == len(set(numbers))  # type: ignore[union-attr]


def test_equal_dates_are_encoded_once_where_they_repeat() -> None:
    """Of a slice, too."""
    found = column_of_array(pa.array([5, 6, 5, 6] * 300, pa.date32()).slice(1))
    assert isinstance(found, Encoded)
    assert found.objects == [date(1970, 1, 7), date(1970, 1, 6)]
