"""Values of NumPy as plain data: arrays and scalars whose dtype says all of their bytes.

They are stored by dtype, shape, order and bytes, so that loading one calls nothing that the store names. NumPy is
imported where such a value is loaded, and nowhere else.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any, Literal

from dstream.schema.classes import ClassRefusedError

__all__ = ["Parts", "from_parts", "is_of_numpy", "parts_of_numpy"]

Parts = tuple[bool, str, list[int], str, Any]
"""Whether it is a scalar; the dtype; the shape; the order, "C" or "F"; the bytes, or the str of a scalar."""

_DTYPE = re.compile(r"[<>|](?:[biufc][0-9]{1,2}|[SU][1-9][0-9]{0,9}|[mM]8(?:\[[0-9]*[a-zA-Z]+\])?)")
_TEXTS = {"S": bytes, "U": str}


def is_of_numpy(value: Any) -> bool:
    """Say whether a value is an array or a scalar of NumPy, which is not imported for that."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def parts_of_numpy(value: Any) -> Parts | None:
    """Return what a value of NumPy is made of; None: its dtype holds objects or fields, or its class adds something."""
    import numpy as np

    whole = slice(None)
    if type(value) is np.str_:  # An array would drop the zeros at its end, and so does `str`.
        return True, "U", [], "C", str.__getitem__(value, whole)
    if type(value) is np.bytes_:
        return True, "S", [], "C", bytes.__getitem__(value, whole)
    is_scalar = isinstance(value, np.generic)
    if not (is_scalar or type(value) is np.ndarray) or not _DTYPE.fullmatch(value.dtype.str) or value.dtype.names:
        return None
    array = np.asarray(value)
    order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return is_scalar, array.dtype.str, list(array.shape), order, array.tobytes(order)


def from_parts(is_scalar: Any, dtype: Any, shape: Any, order: Any, data: Any) -> Any:
    """Return the value that `parts_of_numpy` has taken apart.

    Raises:
        ClassRefusedError: NumPy is not installed.
        ValueError: these are no such parts.
    """
    try:
        import numpy as np
    except ImportError as error:
        raise ClassRefusedError(
            "the value is one of NumPy, which cannot be imported here: pip install numpy"
        ) from error
    if is_scalar is True and type(dtype) is str and dtype in _TEXTS and type(data) is _TEXTS[dtype]:
        return np.str_(data) if dtype == "U" else np.bytes_(data)
    if type(dtype) is not str or not _DTYPE.fullmatch(dtype) or type(data) is not bytes or order not in ("C", "F"):
        raise ValueError("no array of NumPy was stored there")
    kind = np.dtype(dtype)
    if type(shape) is not list or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("an array of NumPy was stored without its shape")
    if math.prod(shape) * kind.itemsize != len(data):
        raise ValueError(f"an array of NumPy of the shape {tuple(shape)} was stored with {len(data):,} bytes")
    # A copy, since memory of others makes an array that cannot grow, or be written.
    array = np.ndarray(tuple(shape), kind, data, order=order).copy(order="K")
    return array[()] if is_scalar is True else array
