"""Values of Arrow as those of Python, and the rows that hold one which Python does not have.

Such are moments beyond the years 1 to 9999, long durations, nanoseconds, intervals, texts that are no UTF-8, and maps
that have a key twice, of which a dictionary would keep one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sources.arrow_times import has_nanoseconds, in_microseconds
from sources.forms import Unfit

__all__ = ["UnreadPlace", "UnreadRow", "has_intervals", "has_maps", "rows_of_python", "unread_place", "values_of"]


@dataclass(frozen=True, slots=True)
class UnreadRow:
    """A row with a value that Python does not have, and what is wrong with it."""

    row: dict[str, Any]
    problem: Unfit


class UnreadPlace(Exception):
    """Some rows become no items: the place of the first, and the row."""

    def __init__(self, place: int, unread: UnreadRow) -> None:
        super().__init__(f"row {place}: {unread.problem}")
        self.place = place
        self.unread = unread


def values_of(column: Any, *, is_strict: bool = True) -> list[Any]:
    """Return the values of a column without nanoseconds.

    Args:
        column: an array of Arrow.
        is_strict: maps are dictionaries, and lists of pairs otherwise.

    Raises:
        Exception: one of them is none of Python: whatever pyarrow raises of it, of which there are many.
    """
    values: list[Any]
    if is_strict and has_maps(column.type):
        values = column.to_pylist(maps_as_pydicts="strict")
    else:
        values = column.to_pylist()
    if has_intervals(column.type) and any(map(_is_interval, values)):
        raise ValueError("months and days have no fixed length")
    return values


def has_maps(kind: Any) -> bool:
    """Say whether values of a type are maps, or hold some."""
    import pyarrow as pa

    fields = range(kind.num_fields)
    return pa.types.is_map(kind) or any(has_maps(kind.field(index).type) for index in fields)


def has_intervals(kind: Any) -> bool:
    """Say whether values of a type are intervals, or hold some."""
    return "month_day_nano_interval" in str(kind)


def _is_interval(value: Any) -> bool:
    import pyarrow as pa

    if isinstance(value, dict):
        return any(map(_is_interval, value.values()))
    return isinstance(value, pa.MonthDayNano) or (isinstance(value, list | tuple) and any(map(_is_interval, value)))


def rows_of_python(batch: Any, *, is_strict: bool) -> Iterator[list[list[Any]] | UnreadRow]:
    """Give the values of each column, of some rows of a batch after others; an `UnreadRow` for each that has none.

    Args:
        batch: the rows.
        is_strict: as for `values_of`.
    """
    try:
        found = [values_of(column, is_strict=is_strict) for column in in_microseconds(batch).columns]
    except MemoryError:
        raise
    except Exception:
        if batch.num_rows == 1:
            yield _unread(batch, is_strict)
        else:
            half = batch.num_rows // 2
            yield from rows_of_python(batch.slice(0, half), is_strict=is_strict)
            yield from rows_of_python(batch.slice(half), is_strict=is_strict)
    else:
        yield found


def _unread(row: Any, is_strict: bool) -> UnreadRow:
    shown: dict[str, Any] = {}
    problems: list[Unfit] = []
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            [shown[name]] = values_of(in_microseconds(column), is_strict=is_strict)
        except Exception as error:
            shown[name] = _text(column, error)
            problems.append(Unfit(_reason(column.type, error, shown[name]), name))
            problems[-1].__cause__ = error
    return UnreadRow(shown, problems[0])


def _text(column: Any, error: Exception) -> Any:
    """Return what stands in a row, as Arrow shows it."""
    if isinstance(error, UnicodeDecodeError):
        return error.object
    if isinstance(error, KeyError) and has_maps(column.type):
        return column.to_pylist()[0]
    return " ".join(str(column).split()).removeprefix("[ ").removesuffix(" ]")


def _reason(kind: Any, error: Exception, text: Any) -> str:
    import pyarrow as pa

    if isinstance(error, UnicodeDecodeError):
        return f"a text that is no UTF-8 ({error.reason}), got {text!r}"
    if isinstance(error, pa.ArrowInvalid) and has_nanoseconds(kind):
        return f"times of Python have no nanoseconds, got {text}"
    if isinstance(error, KeyError) and has_maps(kind):
        return f"a map has a key twice: {text}"
    return f"Python has no such {kind}, got {text} ({error})"


def unread_place(columns: Iterable[Any], names: Iterable[str], places: Any, *, is_strict: bool) -> UnreadPlace | None:
    """Return the first of some rows that holds a value which Python does not have, None if none does.

    Args:
        columns: the values at these places.
        names: those of the columns.
        places: where the rows are: a slice, or an array.
        is_strict: as for `values_of`.
    """
    import pyarrow as pa

    done = 0
    for found in rows_of_python(pa.RecordBatch.from_arrays(list(columns), list(names)), is_strict=is_strict):
        if isinstance(found, UnreadRow):
            return UnreadPlace(places.start + done if isinstance(places, slice) else int(places[done]), found)
        done += len(found[0])
    return None
