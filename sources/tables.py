"""Rows of a table that the caller holds: a pandas DataFrame, an Arrow table, or what gives one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from dstream.spi import ArrowRows
from dstream.values.fields import field_names, has_plain_fields
from sources.arrow_times import in_microseconds
from sources.memory import split_count
from sources.names import repeated

__all__ = ["TableRows", "TableSplit", "table_of"]

BATCH_ROWS = 8_192
"""So many rows become dictionaries at a time."""
BLOCK_ROWS = 32_768
"""So many rows of numbers stay in the cache of a core."""
LARGEST_SPLIT = 16 << 20
"""A split holds about so many bytes of the table at most, since it travels as a whole."""


def table_of(frame: Any) -> Any:
    """Return a frame as a `pyarrow.Table`, as it stands now, with times in microseconds.

    Raises:
        TypeError: it is no table, Arrow has no type for one of its columns, or there are nanoseconds in one.
        ValueError: two columns have one name.
    """
    # pyarrow takes some 200 ms to import, which only those who use it should pay.
    import pyarrow as pa

    if _is_pandas(frame):
        _refuse_objects_with_nanoseconds(frame)
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False) if _is_pandas(frame) else pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"this {type(frame).__name__} does not become an Arrow table: {error}") from error
    for column in table.schema:
        if getattr(column.type, "extension_name", "") in _CHANGED:
            raise TypeError(
                f"column {column.name!r} holds values of pandas that Arrow changes ({column.type}): make others of "
                "them before, such as texts with .astype(str)"
            )
    if twice := repeated(table.column_names):
        raise ValueError(f"the table has more than one column {twice}: rename them before")
    try:
        return in_microseconds(table)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TypeError(
            f"the table holds nanoseconds, which times of Python have not: {error}; round them before, such as with "
            '.dt.floor("us")'
        ) from error


def _refuse_objects_with_nanoseconds(frame: Any) -> None:
    """Refuse Timestamps and Timedeltas of pandas in columns of objects, whose nanoseconds Arrow would cut.

    Raises:
        TypeError: there is one.
    """
    from pandas.api.types import infer_dtype

    for name in dict.fromkeys(frame.columns):
        column = frame[name]
        for each in [column] if column.ndim == 1 else []:  # Two columns of one name are refused later.
            if each.dtype == object and infer_dtype(each, skipna=True) not in _WITHOUT_TIMES:
                found = next((value for value in each if _has_nanoseconds(value)), None)
                if found is not None:
                    raise TypeError(
                        f"column {name!r} holds nanoseconds, which times of Python have not: {found!r}; round them "
                        "before"
                    )


_WITHOUT_TIMES = frozenset({"string", "bytes", "boolean", "integer", "floating", "decimal", "complex", "date", "time"})


def _has_nanoseconds(value: Any) -> bool:
    if isinstance(value, list | tuple | set):
        return any(map(_has_nanoseconds, value))
    if isinstance(value, dict):
        return any(map(_has_nanoseconds, value.values()))
    if getattr(getattr(value, "dtype", None), "hasobject", False):
        return any(map(_has_nanoseconds, value.flat))
    # A Timestamp has `nanosecond`, a Timedelta `nanoseconds`; those of NaT are NaN.
    return bool(getattr(value, "nanosecond", 0) > 0 or getattr(value, "nanoseconds", 0) > 0)


_CHANGED = frozenset({"pandas.period", "pandas.interval"})
"""Arrow would give an int for a period, and for an interval a dictionary of its ends."""


def _is_pandas(frame: object) -> bool:
    return any(kind.__module__.partition(".")[0] == "pandas" for kind in type(frame).__mro__)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableRows:
    """The rows of an Arrow table, in order: dictionaries, or what `kind` makes of the columns named as its fields.

    **Parallelism**: as many splits as keep every core busy, and more of a table beyond 16 MiB for each of them.
    **Guarantee**: ordered; every row once.
    **On re-run**: the same rows.
    """

    table: Any
    kind: Callable[..., Any] | None = None

    ordered = True
    bounded = True
    in_caller = False

    @property
    def has_columns(self) -> bool:
        """Whether the rows stand in columns for those who read them."""
        return _ways(self.kind, tuple(self.table.column_names)) is not None

    def count_splits(self, parallelism: int) -> int:
        """Say how many splits there will be."""
        return split_count(self.table.num_rows, None, max(parallelism, self.table.nbytes // LARGEST_SPLIT))

    def count_items(self) -> int:
        """Say how many rows there are."""
        rows: int = self.table.num_rows
        return rows

    def size(self) -> int:
        """Say how many rows there are."""
        return self.count_items()

    def splits(self, parallelism: int) -> list[TableSplit]:
        """Cut the table into slices, which share its memory."""
        size, count = self.table.num_rows, self.count_splits(parallelism)
        borders = [size * index // count for index in range(count + 1)]
        return [
            TableSplit(self.table.slice(start, stop - start), self.kind) for start, stop in itertools.pairwise(borders)
        ]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableSplit:
    """Some rows of a table. They travel without the rest of the table, of which they are a view."""

    table: Any
    kind: Callable[..., Any] | None

    def read(self) -> Iterator[Any]:
        """Give the rows."""
        for batch in self.table.to_batches(max_chunksize=BATCH_ROWS):
            rows = batch.to_pylist()
            yield from rows if self.kind is None else (self.kind(**row) for row in rows)

    def arrow_rows(self) -> Iterator[ArrowRows] | None:
        """Give the rows in columns; None if the kind does more than to keep them."""
        ways = _ways(self.kind, tuple(self.table.column_names))
        return None if ways is None or not self.table.num_columns else self._blocks(ways)

    def _blocks(self, ways: frozenset[Literal["attribute", "key", "place"]]) -> Iterator[ArrowRows]:
        for batch in self.table.combine_chunks().to_batches(max_chunksize=BLOCK_ROWS):
            parts = {name: functools.partial(batch.column, name) for name in batch.schema.names}
            yield ArrowRows(batch.num_rows, parts, ways, functools.partial(self._items, batch), BATCH_ROWS)

    def _items(self, batch: Any, places: Any) -> Iterable[Any]:
        rows: list[Any] = ArrowRows.chosen(batch, places).to_pylist()
        return rows if self.kind is None else (self.kind(**row) for row in rows)

    def __reduce__(self) -> tuple[Any, ...]:
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as stream:
            stream.write_table(self.table)
        return _received, (sink.getvalue().to_pybytes(), self.kind)


def _ways(kind: Any, names: tuple[str, ...]) -> frozenset[Literal["attribute", "key", "place"]] | None:
    """Return how rows give the values of these columns; None if that is not known."""
    if kind is None:
        return frozenset({"key"})
    if not isinstance(kind, type) or not has_plain_fields(kind) or set(names) != set(field_names(kind)):
        return None
    is_in_order = issubclass(kind, tuple) and names == field_names(kind)
    return frozenset({"attribute", "place"} if is_in_order else {"attribute"})


def _received(data: bytes, kind: Callable[..., Any] | None) -> TableSplit:
    import pyarrow as pa

    with pa.ipc.open_stream(data) as stream:
        return TableSplit(stream.read_all(), kind)
