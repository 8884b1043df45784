"""Arrays of Arrow in the layouts that all of its functions take.

Few of them take views of texts and bytes, as Polars has them, or runs of equal values (pyarrow 26): neither `take` nor
`filter` does. Their values are the same in the layouts of old, in which they also stand in columns.
"""

from __future__ import annotations

from typing import Any

__all__ = ["in_usual_layout", "usual_type"]


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
    fields = [field.with_type(usual_type(field.type)) for field in map(kind.field, range(kind.num_fields))]
    if is_type.is_struct(kind):
        return pa.struct(fields)
    if is_type.is_map(kind):
        return pa.map_(*map(fields[0].type.field, range(2)), keys_sorted=kind.keys_sorted)
    if is_type.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    if is_type.is_large_list(kind):
        return pa.large_list(fields[0])
    return pa.list_(fields[0]) if is_type.is_list(kind) else kind


def in_usual_layout(values: Any) -> Any:
    """Return an array with the same values in the usual layout, or as it is where Arrow does not change it."""
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

    ends = values.run_ends.to_numpy().astype(np.int64) - values.offset
    places = np.searchsorted(ends, np.arange(len(values)), side="right")
    return in_usual_layout(values.values).take(pa.array(places))
