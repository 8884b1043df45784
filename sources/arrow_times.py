"""Times of Arrow as those of Python: nanoseconds become microseconds where nothing is lost, and are an error elsewhere.

Left to Arrow they would become Timestamps where pandas is there, an error where it is not, and cut if they are times of
day.
"""

from __future__ import annotations

from typing import Any

from dstream.spi import ArrowRows

__all__ = ["has_nanoseconds", "in_microseconds"]


def has_nanoseconds(kind: Any) -> bool:
    """Say whether values of a type hold nanoseconds, also further inside."""
    return bool(_microseconds(kind) != kind)


def in_microseconds(values: Any) -> Any:
    """Return an array, a batch or a table without nanoseconds.

    Raises:
        pyarrow.ArrowInvalid: some of them are no whole microseconds.
        pyarrow.ArrowNotImplementedError: they stand within a type in which Arrow does not change them.
    """
    import pyarrow as pa

    to: Any
    if isinstance(values, pa.RecordBatch | pa.Table):
        to = pa.schema([field.with_type(_microseconds(field.type)) for field in values.schema])
        is_same = to.types == values.schema.types
    else:
        to = _microseconds(values.type)
        is_same = to == values.type
    if is_same:
        return values
    try:
        return values.cast(to)
    except pa.ArrowInvalid:  # It may be about values in lists of rows that are not among these.
        return _alone(values).cast(to)


def _alone(values: Any) -> Any:
    """Return some rows without the values of others: Arrow's cast looks at those in the lists of a slice, too."""
    import numpy as np
    import pyarrow as pa

    if isinstance(values, pa.Table):
        return pa.Table.from_batches(map(_alone, values.to_batches()), values.schema)
    return ArrowRows.chosen(values, np.arange(len(values)))


def _microseconds(kind: Any) -> Any:
    """Return a type with microseconds in place of nanoseconds."""
    import pyarrow as pa

    is_type = pa.types
    if getattr(kind, "unit", "") == "ns":
        if is_type.is_timestamp(kind):
            return pa.timestamp("us", kind.tz)
        return pa.duration("us") if is_type.is_duration(kind) else pa.time64("us")
    if is_type.is_dictionary(kind):
        value = _microseconds(kind.value_type)
        return kind if value == kind.value_type else value
    fields = [field.with_type(_microseconds(field.type)) for field in map(kind.field, range(kind.num_fields))]
    if is_type.is_struct(kind):
        return pa.struct(fields)
    if is_type.is_map(kind):
        return pa.map_(*map(fields[0].type.field, range(2)), keys_sorted=kind.keys_sorted)
    if is_type.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    if is_type.is_large_list(kind):
        return pa.large_list(fields[0])
    if is_type.is_list(kind):
        return pa.list_(fields[0])
    if "[ns" in str(kind):
        raise pa.ArrowNotImplementedError(f"nanoseconds are not read from a {kind}")
    return kind
