"""The NaN that stands for all of them."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["FIELD_NAN", "NAN", "FieldNan"]

NAN = math.nan
"""The one NaN that stands for all of them: dicts, tuples and frozensets find it again by identity."""


class FieldNan(float):
    """The NaN in a field of a dataclass whose `__eq__` compares fields by `==` alone, as from Python 3.13.

    It equals every NaN, itself among them. Everything else about it is that of a float: `math.isnan(x)` and `x != x`
    hold, and a pickle of it is that of a float.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and other != other

    def __ne__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(NAN)

    def __reduce__(self) -> tuple[Any, ...]:
        return float, ("nan",)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()


FIELD_NAN = FieldNan("nan")
