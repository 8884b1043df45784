"""Which numbers a collector takes: ints only, floats, or both; anything else is refused by name."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Complex, Real
from typing import Any

from collectors.arguments import shown
from collectors.batches import applied, kinds
from dstream.values.blaming import each

__all__ = ["Numbers", "doubles", "exact_numbers", "ints", "numbers"]


@dataclass(frozen=True)
class Numbers:
    """The numbers that one factory takes.

    Attributes:
        factory: the name that messages give.
        wanted: the numbers in words.
        types: the types whose instances are taken as they are.
        convert: makes one of these types of anything else, or raises TypeError.
        kind: `int` or `float` if all become such ones.
    """

    factory: str
    wanted: str
    types: frozenset[type]
    convert: Callable[[Any], Any]
    kind: type | None = None

    def one(self, value: Any, item: Any) -> Any:
        """Return `value`, which `item` gave, as a number.

        Raises:
            TypeError: it is not one that the factory takes.
        """
        if type(value) in self.types:
            return value
        try:
            return self.convert(value)
        except TypeError:
            given = "" if value is item else f" gave {shown(value)}, which"
            raise TypeError(f"{self.factory}() needs {self.wanted}, but {shown(item)}{given} is not") from None

    def every(self, fn: Callable[[Any], Any] | None, batch: list[Any]) -> list[Any]:
        """Return the number of each item of the batch; `fn` runs once for each.

        Raises:
            TypeError: an item gave something else.
        """
        values = applied(fn, batch)
        return values if self.types >= kinds(values) else each(self.one, batch, values)


def ints(factory: str) -> Numbers:
    """Take ints and what Python itself takes for an index."""
    return Numbers(factory, "ints", frozenset({int}), operator.index, int)


def doubles(factory: str) -> Numbers:
    """Take real numbers, as floats."""
    return Numbers(factory, "numbers", frozenset({float}), _as_float, float)


def numbers(factory: str) -> Numbers:
    """Take ints and floats, each as it is."""
    return Numbers(factory, "ints or floats", frozenset({int, float}), _as_number)


def exact_numbers(factory: str) -> Numbers:
    """Take ints, floats, complex numbers, and the exact numbers of Python's library, each as it is."""
    taken = frozenset({int, float, complex, Decimal, Fraction})
    return Numbers(factory, "ints, floats, Decimals, Fractions or complex numbers", taken, _as_exact_number)


def _as_float(value: Any) -> float:
    if isinstance(value, str | bytes | bytearray):
        raise TypeError("text is not a number")
    if _is_complex(value):
        raise TypeError("not real")  # One of NumPy's would lose its imaginary part.
    return float(value)


def _is_complex(value: Any) -> bool:
    return isinstance(value, Complex) and not isinstance(value, Real)


def _as_number(value: Any) -> int | float:
    if hasattr(value, "__index__"):
        return operator.index(value)
    if isinstance(value, Decimal | Fraction):
        raise TypeError("not a float")  # A float would lose what they are used for.
    return _as_float(value)


def _as_exact_number(value: Any) -> int | float | Decimal | Fraction | complex:
    if _is_complex(value):
        return complex(value)
    if isinstance(value, Decimal):
        return Decimal(value)
    return Fraction(value) if isinstance(value, Fraction) else _as_number(value)
