"""`Records`: lazy rows of Arrow, such as those of Parquet, decoded column by column on demand.

A part becomes a column when an expression asks for it, and an item an object when it is needed. What no step reads
is never decoded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dstream.base.records import record
from dstream.failures import naming
from dstream.operators.columns.built_rows import Access, RowsWithParts, travels_as_column
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.encoded_calls import attribute_of_values, encoded_array
from dstream.operators.columns.entries import Entries
from dstream.operators.columns.strings import Strings, numbers_of_array, offsets_and_bytes
from dstream.operators.columns.values import (
    GREATEST,
    Bools,
    Column,
    Floats,
    Ints,
    NotColumnar,
    Objects,
    items_of,
    rows_at,
    stacked,
)
from dstream.operators.rows.batches import Reopened
from dstream.operators.rows.blocks import Block
from dstream.spi import ArrowRows, RowsAgain

__all__ = [
    "LateRows",
    "Records",
    "ReferredRows",
    "attribute_of",
    "blocks_of_rows",
    "column_of_array",
    "member_of",
    "referred_rows",
]


class Records(RowsWithParts):
    """Rows of Arrow.

    Args:
        rows: all of them.
        step: how their source names itself.
        places: which of them these are, in order; None for all.
        known: the parts that have been asked for; it is filled.
    """

    def __init__(
        self, rows: ArrowRows, step: Any, places: Any = None, known: dict[str, tuple[Any, Column | None]] | None = None
    ) -> None:
        self.size = rows.size if places is None else len(places)
        self.rows = rows
        self.step = step
        self.places = places
        self._known = {} if known is None else known

    @property
    def access(self) -> frozenset[Access]:
        return self.rows.reached_by

    @property
    def item_class(self) -> type | None:
        return self.rows.item_class

    @property
    def names(self) -> Sequence[str]:
        return tuple(self.rows.parts)

    def at(self, places: Any) -> Records:
        # Parts that were decoded are shared by all selections of the rows.
        return Records(self.rows, self.step, places if self.places is None else self.places[places], self._known)

    def portions(self) -> Iterator[Iterable[Any]]:
        with naming(self.step):
            for start in range(0, self.size, self.rows.most):
                few = slice(start, min(start + self.rows.most, self.size))
                yield self.rows.items(few if self.places is None else self.places[few])

    def part(self, name: str) -> Column:
        if name not in self.rows.parts:
            raise NotColumnar(f"a part {name} that is not there")
        array, column = self._found(name)
        if array is None:
            raise NotColumnar(f"a part {name} that stands in no column")
        if column is not None:
            return column if self.places is None else rows_at(column, self.places)
        if self.places is not None:
            array = ArrowRows.chosen(array, self.places)
        return column_of_array(array)

    def _found(self, name: str) -> tuple[Any, Column | None]:
        """Return a part as its source gives it, and as a column if it is one of records, or of numbers in all rows."""
        if name not in self._known:
            with naming(self.step):
                array = self.rows.parts[name]()
            column: Column | None = None
            if isinstance(array, ArrowRows):
                column = Records(array, self.step)
            elif array is not None and not array.null_count and _is_number(array.type):
                column = _numbers(array)
            elif array is not None and _is_encoded(array.type):
                # Several steps ask for it, and each value is made once for all of them.
                with contextlib.suppress(NotColumnar):
                    column = encoded_array(array)
            self._known[name] = array, column
        return self._known[name]


@record(eq=False)
class ReferredRows:
    """Rows of a source that travel as a reference to them and the columns of some parts.

    Attributes:
        again: reads them once more.
        places: which rows of the reference these are.
        members: the columns that travel, by the names of the parts.
        names: those of all parts.
        access: as of `RowsWithParts`.
        step: how their source names itself.
    """

    again: RowsAgain
    places: NDArray[Any]
    members: Mapping[str, Column]
    names: tuple[str, ...]
    access: frozenset[Access]
    step: Any

    @property
    def layout(self) -> tuple[Any, ...]:
        """Properties that rows share which can be put together."""
        return tuple(self.members), self.names, self.access

    def unpacked(self, reopened: Reopened) -> LateRows:
        """Return the rows."""
        return LateRows((self,), dict(self.members), reopened)

    def read_again(self, reopened: Reopened) -> Records:
        """Return the rows with all their parts, read once more.

        Raises:
            SourceError: they are gone, or others than before.
        """
        with naming(self.step):
            rows = self.again.rows(reopened.of(self.again))
            records = Records(rows, self.step, self.places.astype(np.int64))
            if not all(_are_same(records, name, column) for name, column in self.members.items()):
                raise self.again.changed()
        return records


def referred_rows(rows: RowsWithParts, wanted: frozenset[str]) -> ReferredRows | None:
    """Return rows so that only some of their parts travel; None if all are wanted, or they cannot be read again.

    Args:
        rows: which.
        wanted: the names of the parts that travel.
    """
    if not isinstance(rows, Records) or rows.rows.again is None or wanted >= set(rows.names):
        return None
    try:
        members = {name: rows.part(name) for name in rows.names if name in wanted}
    except NotColumnar:
        return None
    if not all(map(travels_as_column, members.values())):
        return None
    places = np.arange(rows.size) if rows.places is None else rows.places
    few = np.asarray(places, np.min_scalar_type(rows.rows.size))
    return ReferredRows(rows.rows.again, few, members, tuple(rows.names), rows.access, rows.step)


def _are_same(records: Records, name: str, column: Column) -> bool:
    """Return whether a part has the same values, to the last bit, as when it was read first."""
    try:
        found = records.part(name)
    except NotColumnar:
        return False
    if isinstance(found, Strings) and isinstance(column, Strings):
        return bool(found.values.equals(column.values))
    if isinstance(found, Encoded) or isinstance(column, Encoded):
        return repr(items_of(found)) == repr(items_of(column))
    return type(found) is type(column) and found.values.tobytes() == column.values.tobytes()  # type: ignore[union-attr]


class LateRows(RowsWithParts):
    """Rows that have travelled with the columns of some parts. The other parts, and the items, are read again.

    Who is to get a part or an item that did not travel waits for that, and gets what there was at first.

    Args:
        parts: the rows as they travelled, one after another.
        known: the columns of some parts of all of them; it is filled.
        reopened: where the sources of these are open, and of others beside them.
        places: which of all rows these are, in order; None for all.
    """

    def __init__(
        self,
        parts: tuple[ReferredRows, ...],
        known: dict[str, Column],
        reopened: Reopened,
        places: Any = None,
    ) -> None:
        self.size = sum(len(each.places) for each in parts) if places is None else len(places)
        self._parts, self._known, self._reopened, self._places = parts, known, reopened, places

    @staticmethod
    def stacked(rows: Sequence[LateRows]) -> LateRows:
        parts = tuple(chain.from_iterable(each._parts for each in rows))
        if len({each.layout for each in parts}) > 1 or any(each._places is not None for each in rows):
            raise NotColumnar("rows of several layouts")
        known = {name: stacked([each.part(name) for each in rows]) for name in parts[0].members}
        return LateRows(parts, known, rows[0]._reopened)

    @property
    def access(self) -> frozenset[Access]:
        return self._parts[0].access

    @property
    def names(self) -> Sequence[str]:
        return self._parts[0].names

    def at(self, places: Any) -> LateRows:
        own = places if self._places is None else self._places[places]
        return LateRows(self._parts, self._known, self._reopened, own)

    def part(self, name: str) -> Column:
        if name not in self.names:
            raise NotColumnar(f"a part {name} that is not there")
        if name not in self._known:
            self._known[name] = stacked([each.part(name) for each in self._read_again()])
        column = self._known[name]
        return column if self._places is None else rows_at(column, self._places)

    def portions(self) -> Iterator[Iterable[Any]]:
        if len(self._parts) == 1:
            (records,) = self._read_again()
            yield from (records if self._places is None else records.at(self._places)).portions()
            return
        portions = chain.from_iterable(each.portions() for each in self._read_again())
        if self._places is None:
            yield from portions
        else:
            yield map(list(chain.from_iterable(portions)).__getitem__, self._places.tolist())

    def _read_again(self) -> Iterator[Records]:
        return (each.read_again(self._reopened) for each in self._parts)


def blocks_of_rows(given: Iterator[ArrowRows | Iterator[Any]], step: Any) -> Iterator[Block]:
    """Yield the items of a split as blocks."""
    for each in given:
        if not isinstance(each, ArrowRows):
            yield _named(each, step)
        elif each.reached_by or len(each.parts) > 1:
            yield Records(each, step)
        else:
            yield _only_part(Records(each, step))


def _named(items: Iterator[Any], step: Any) -> Iterator[Any]:
    with naming(step):
        yield from items


def _only_part(records: Records) -> Block:
    (name,) = records.rows.parts
    try:
        return records.part(name)
    except NotColumnar:
        return chain.from_iterable(records.portions())


def attribute_of(column: Column, name: str) -> Column:
    """Return `item.name` of each row.

    Raises:
        NotColumnar: the items have no such part, or get it in a way of their own.
    """
    if isinstance(column, Encoded):
        return attribute_of_values(column, name)
    if isinstance(column, Entries):
        return column.part(name)
    if not isinstance(column, RowsWithParts) or "attribute" not in column.access:
        raise NotColumnar("an attribute of something else than a record")
    return column.part(name)


def member_of(records: RowsWithParts, index: Any) -> Column:
    """Return `item[index]` of each row, where the index is the same in all.

    Raises:
        NotColumnar: the items have no such key or place, or no such things at all.
    """
    if type(index) is str and "key" in records.access:
        return records.part(index)
    names = records.names
    if type(index) is int and "place" in records.access and -len(names) <= index < len(names):
        return records.part(names[index])
    raise NotColumnar("a key or a place that is not there")


def column_of_array(array: Any) -> Column:
    """Return an array of Arrow as a column.

    Raises:
        NotColumnar: its values are neither numbers of 64 bits, nor bools, texts or bytes; or one of them is no text.
    """
    if not array.null_count and _is_number(array.type):
        return _numbers(array)
    if _is_one_of(array.type, "is_string", "is_large_string") and not array.null_count:
        texts = _texts(array)
        if texts is not None:
            return texts
    if array.null_count and (_is_number(array.type) or _is_text(array.type)):
        with contextlib.suppress(NotColumnar):
            return encoded_array(array)
    if _is_number(array.type) or _is_text(array.type):
        try:
            return Objects(array.to_pylist(), is_plain=True)
        except UnicodeDecodeError:  # The code that makes the items reports their location.
            raise NotColumnar("bytes that are no text") from None
    if _is_encoded(array.type):
        return encoded_array(array)
    raise NotColumnar(f"a column of {array.type}")


def _is_encoded(kind: Any) -> bool:
    """Return whether values of a type are dates, Decimals, or times without nanoseconds, which Python lacks."""
    return _is_one_of(kind, "is_date32", "is_decimal128") or (
        getattr(kind, "unit", "ns") != "ns" and _is_one_of(kind, "is_timestamp", "is_duration", "is_time")
    )


def _is_number(kind: Any) -> bool:
    return _is_one_of(kind, "is_float32", "is_float64", "is_integer", "is_boolean")


def _is_text(kind: Any) -> bool:
    return _is_one_of(kind, "is_string", "is_large_string", "is_binary", "is_large_binary")


def _is_one_of(kind: Any, *tests: str) -> bool:
    return any(getattr(pa.types, test)(kind) for test in tests)


def _numbers(array: Any) -> Column:
    """Return numbers without nulls; unsigned ints of 64 bits may be too long."""
    values = numbers_of_array(array)
    if pa.types.is_boolean(array.type):
        return Bools(values)
    if pa.types.is_floating(array.type):
        return Floats(values.astype(np.float64, copy=False))
    if not len(values):
        return Ints(np.empty(0, np.int64), 0, 0)
    least, greatest = int(values.min()), int(values.max())
    if greatest > GREATEST:
        raise NotColumnar("ints of more than 64 bits")
    return Ints(values.astype(np.int64, copy=False), least, greatest)


def _texts(array: Any) -> Strings | None:
    """Return texts without nulls; None if they have too many bytes for one array, or are no UTF-8."""
    if array.nbytes > _MOST_BYTES:
        return None
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    whole = whole.cast(pa.string()) if pa.types.is_large_string(whole.type) else whole
    is_ascii = not np.any(offsets_and_bytes(whole)[1] > _LAST_OF_ASCII)
    if not is_ascii:
        # Files may have strings that are no UTF-8: pyarrow does not check them when it reads (26).
        try:
            whole.validate(full=True)
        except pa.ArrowInvalid:
            return None
    return Strings(whole, is_ascii=is_ascii)


_LAST_OF_ASCII = 127
_MOST_BYTES = 2**30
"""An Arrow array of texts has places of 32 bits."""
