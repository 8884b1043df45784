"""Times of Arrow as times of Python, also beyond the range of nanoseconds; usual layouts of arrays.

Left to Arrow, times of nanoseconds would become Timestamps where pandas is installed and an error elsewhere, and times
of day would be truncated.

Few functions of Arrow support views of strings and bytes, as used by Polars, or run-end encoding (pyarrow 26): neither
`take` nor `filter` does. They are converted to the usual layouts with the same values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dstream.spi import ArrowRows

__all__ = ["has_nanoseconds", "in_microseconds", "in_usual_layout", "usual_type"]


def usual_type(kind: Any) -> Any:
    """Return the type of the same values in the usual layout.

    Example:
        >>> import pyarrow as pa
        >>> usual_type(pa.list_(pa.string_view()))
        ListType(list<item: large_string>)
    """
    import pyarrow as pa

    is_type = pa.types
    if str(kind) == "string_view":  # pyarrow has a function for it since 16
        return pa.large_string()
    if str(kind) == "binary_view":
        return pa.large_binary()
    if is_type.is_run_end_encoded(kind):
        return usual_type(kind.value_type)
    if is_type.is_dictionary(kind):
        value = usual_type(kind.value_type)
        return kind if value == kind.value_type else pa.dictionary(kind.index_type, value, kind.ordered)
    found = _with_parts(kind, usual_type)
    return kind if found is None else found


def _with_parts(kind: Any, changed: Callable[[Any], Any]) -> Any:
    """Return a type of structs, maps or lists with the types of its parts changed; None for other types."""
    import pyarrow as pa

    is_type = pa.types
    fields = [field.with_type(changed(field.type)) for field in map(kind.field, range(kind.num_fields))]
    if is_type.is_struct(kind):
        return pa.struct(fields)
    if is_type.is_map(kind):
        return pa.map_(*map(fields[0].type.field, range(2)), keys_sorted=kind.keys_sorted)
    if is_type.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    if is_type.is_large_list(kind):
        return pa.large_list(fields[0])
    return pa.list_(fields[0]) if is_type.is_list(kind) else None


def in_usual_layout(values: Any) -> Any:
    """Return an array with the same values in the usual layout, or unchanged if Arrow cannot convert it."""
    import pyarrow as pa

    kind = values.type
    if usual_type(kind) == kind:
        return values
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([in_usual_layout(chunk) for chunk in values.chunks], usual_type(kind))
    if pa.types.is_run_end_encoded(kind):
        return _without_runs(values)
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(values.indices, in_usual_layout(values.dictionary), ordered=kind.ordered)
    if pa.types.is_struct(kind):
        parts = [in_usual_layout(values.field(index)) for index in range(kind.num_fields)]
        fields = [field.with_type(part.type) for field, part in zip(kind, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=values.is_null())
    try:
        return values.cast(usual_type(kind))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return values


def _without_runs(values: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    # A slice has the run ends of the complete array.
    ends = values.run_ends.to_numpy().astype(np.int64) - values.offset
    places = np.searchsorted(ends, np.arange(len(values)), side="right")
    return in_usual_layout(values.values).take(pa.array(places))


def has_nanoseconds(kind: Any) -> bool:
    """Return whether values of a type contain nanoseconds, also nested."""
    return bool(_microseconds(kind) != kind)


def in_microseconds(values: Any) -> Any:
    """Return an array, a batch or a table without nanoseconds.

    Raises:
        pyarrow.ArrowInvalid: a value is no whole number of microseconds.
        pyarrow.ArrowNotImplementedError: they are nested in a type in which Arrow cannot convert them.
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
    """Return rows without the values of other rows: Arrow's cast also converts values of lists outside of a slice."""
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
    found = _with_parts(kind, _microseconds)
    if found is None and "[ns" in str(kind):
        raise pa.ArrowNotImplementedError(f"nanoseconds are not read from a {kind}")
    return kind if found is None else found


def with_far_times(read: Iterable[Any], again: Iterable[Any], names: Sequence[str]) -> Iterator[Any]:
    """Yield batches in which times beyond the years 1677 to 2262, which do not fit nanoseconds, have microseconds.

    Arrow (26) returns wrong values for them, without an error, none of which is a whole number of microseconds.

    Args:
        read: the batches.
        again: the same batches, with microseconds in the columns of times; read if there are such times.
        names: the names of these columns.
    """
    import pyarrow as pa

    others, done = iter(again), 0
    for number, batch in enumerate(read):
        try:
            in_microseconds(batch.select(names))
        except pa.ArrowInvalid:
            other, done = next(itertools.islice(others, number - done, None)), number + 1
            yield from _far_times(batch, other, names)
        else:
            yield batch


def _far_times(batch: Any, other: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of a batch, with the times of another one where these are the same, or overflow to the same."""
    import numpy as np
    import pyarrow as pa

    pairs = [(_numbers(batch.column(name)), _numbers(other.column(name))) for name in names]
    are_same = np.array([microseconds * 1_000 == nanoseconds for nanoseconds, microseconds in pairs])
    ends = [0, *(np.flatnonzero(np.any(are_same[:, 1:] != are_same[:, :-1], axis=0)) + 1), batch.num_rows]
    for start, stop in itertools.pairwise(map(int, ends)):
        exact = {name for name, is_same in zip(names, are_same[:, start], strict=True) if is_same}
        columns = [(other if name in exact else batch).column(name) for name in batch.schema.names]
        found = pa.RecordBatch.from_arrays(columns, batch.schema.names)
        yield found.slice(start, stop - start)


def _numbers(times: Any) -> Any:
    import pyarrow as pa

    return times.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
