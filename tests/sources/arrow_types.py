"""An array of three values of each type of Arrow, one of which is null where the type has nulls."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = ["ARRAYS", "INTERVALS", "WITHOUT_VALUES"]

_MOMENTS = [datetime.datetime(2026, 1, 31, 12), None, datetime.datetime(1, 1, 1)]
_DECIMALS = [Decimal("1.1"), None, Decimal(2)]
_TEXTS = ["x", None, "é" * 20]
_BYTES = [b"x", None, b"\0" * 20]
_LISTS = [["x"], None, ["é" * 20, None]]


def _runs(values: list[Any], kind: Any) -> Any:
    return pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(values, kind))


def _dictionary(values: list[Any], kind: Any) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), pa.array(values, kind))


def _pairs(texts: Any) -> Any:
    return pa.StructArray.from_arrays([texts, pa.array([1, 2, 3])], ["s", "n"], mask=pa.array([False, False, True]))


_UNION = [pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["x", "y", "z"])]]

ARRAYS: dict[str, Any] = {
    **{str(kind): pa.array([1, None, 0], kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(kind): pa.array([1, None, 0], kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    **{str(kind): pa.array([1.5, None, 0], kind) for kind in (pa.float16(), pa.float32(), pa.float64())},
    "null": pa.nulls(3),
    "bool": pa.array([True, None, False]),
    **{str(kind): pa.array(_TEXTS, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())},
    **{str(kind): pa.array(_BYTES, kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())},
    "fixed_size_binary": pa.array([b"ab", None, b"\0\0"], pa.binary(2)),
    "decimal32": pa.array(_DECIMALS, pa.decimal32(5, 2)),
    "decimal64": pa.array(_DECIMALS, pa.decimal64(15, 2)),
    "decimal128": pa.array(_DECIMALS, pa.decimal128(38, 2)),
    "decimal256": pa.array(_DECIMALS, pa.decimal256(50, 2)),
    "date32": pa.array([1, None, 0], pa.date32()),
    "date64": pa.array([86_400_000, None, 0], pa.date64()),
    "time32": pa.array([1, None, 0], pa.time32("s")),
    "time64": pa.array([1, None, 0], pa.time64("us")),
    "timestamp": pa.array(_MOMENTS, pa.timestamp("us")),
    "timestamp with a zone": pa.array([1, None, 0], pa.timestamp("ms", "Asia/Tokyo")),
    "duration": pa.array([1, None, 0], pa.duration("ms")),
    "list": pa.array(_LISTS, pa.list_(pa.string())),
    "large_list": pa.array(_LISTS, pa.large_list(pa.string())),
    "fixed_size_list": pa.array([["x", "y"], None, [None, "z"]], pa.list_(pa.string(), 2)),
    "list_view": pa.array(_LISTS, pa.list_view(pa.string())),
    "large_list_view": pa.array(_LISTS, pa.large_list_view(pa.string())),
    "map": pa.array([[("x", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "struct": _pairs(pa.array(_TEXTS)),
    "dictionary": _dictionary(["x", "y"], pa.string()),
    "run_end_encoded": _runs(["x", None], pa.string()),
    "run_end_encoded of ints": _runs([7, 8], pa.int64()),
    "dense_union": pa.UnionArray.from_dense(_UNION[0], pa.array([0, 0, 1], pa.int32()), _UNION[1]),
    "sparse_union": pa.UnionArray.from_sparse(*_UNION),
    # What Arrow changes in none of its functions stands within others, too.
    "list of views": pa.array(_LISTS, pa.list_(pa.string_view())),
    "large_list of views": pa.array(_LISTS, pa.large_list(pa.string_view())),
    "fixed_size_list of views": pa.array([["x", "y"], None, [None, "z"]], pa.list_(pa.string_view(), 2)),
    "list_view of views": pa.array(_LISTS, pa.list_view(pa.string_view())),
    "map of views": pa.array([[("x", b"y")], None, []], pa.map_(pa.string_view(), pa.binary_view())),
    "struct of views": _pairs(pa.array(_TEXTS, pa.string_view())),
    "struct of runs": _pairs(_runs(["x", None], pa.string_view())),
    "list of runs": pa.ListArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), _runs(["x", None], pa.string())),
    "dictionary of views": _dictionary(["x", "y"], pa.string_view()),
    "extension uuid": pa.array([b"0" * 16, None, b"1" * 16], pa.uuid()),
    "extension json": pa.array(["{}", None, "[]"], pa.json_()),
    "extension bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, None, 1], pa.int8())),
    "extension of views": pa.ExtensionArray.from_storage(
        pa.opaque(pa.string_view(), "text", "somebody"), pa.array(_TEXTS, pa.string_view())
    ),
}
"""By the names of the types, and of what is within them."""

INTERVALS: dict[str, Any] = {
    "month_day_nano_interval": pa.array([(1, 2, 3000), None, (0, 0, 0)], pa.month_day_nano_interval())
}
"""Of types whose values are none of Python."""

WITHOUT_VALUES = frozenset({pa.lib.Type_INTERVAL_MONTHS, pa.lib.Type_INTERVAL_DAY_TIME})
"""Types that pyarrow reads from others and has no arrays for."""
