"""Forms for formats that hold texts only, such as CSV: how a text is read as a number, a date, a member.

Nothing is guessed: a text is read if it is written as the annotation says, and refused otherwise. An empty field is
None, which only an annotation such as `int | None` takes.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dstream.values.blaming import shown
from sources.forms import Fixed, Form, Scalar, Unfit

__all__ = ["PARSED", "Parsed", "Spelled"]


@dataclass(frozen=True)
class Parsed:
    """Reads a text as a value of one class.

    Attributes:
        kind: the class.
        expected: what is expected, with an example.
        parse: makes the value, or raises a ValueError.
    """

    kind: type
    expected: str
    parse: Callable[[str], Any]

    @property
    def fits(self) -> type | None:
        """The type whose values are left as they are."""
        return str if self.kind is str else None

    def made(self, value: Any) -> Any:
        """Return the value."""
        if type(value) is not str:
            raise Unfit(f"expected {self.expected}, got {_found(value)}")
        try:
            return self.parse(value)
        except (ValueError, ArithmeticError) as error:
            raise Unfit(f"expected {self.expected}, got {shown(value)}") from error


def _found(value: Any) -> str:
    return "an empty field" if value is None else shown(value)


def _int(text: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


_WHOLE = re.compile(r"[+-]?\d+")


def _float(text: str) -> float:
    value = float(_tight(text))
    if math.isinf(value) and any(map(str.isdecimal, text)):
        raise OverflowError(f"{text} is too large for a float")
    return value


def _decimal(text: str) -> decimal.Decimal:
    return decimal.Decimal(_tight(text))


def _tight(text: str) -> str:
    """Refuse what only Python reads as a number: underscores, and spaces around it."""
    if "_" in text or text != text.strip():
        raise ValueError(text)
    return text


def _bool(text: str) -> bool:
    if (found := _TRUTHS.get(text)) is None:
        raise ValueError(text)
    return found


_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}

PARSED: dict[type, Form] = {
    str: Parsed(str, "a text", str),
    int: Parsed(int, "an int such as 12", _int),
    float: Parsed(float, "a float such as 1.5", _float),
    bool: Parsed(bool, "true or false", _bool),
    type(None): Scalar(type(None)),
    decimal.Decimal: Parsed(decimal.Decimal, "a number such as 1.50", _decimal),
    datetime.date: Parsed(datetime.date, "a date such as 2026-01-31", datetime.date.fromisoformat),
    datetime.time: Parsed(datetime.time, "a time such as 23:59:00", datetime.time.fromisoformat),
    datetime.datetime: Parsed(
        datetime.datetime, "a time such as 2026-01-31T23:59:00+00:00", datetime.datetime.fromisoformat
    ),
}
"""How a text is read as a value of each class."""


@dataclass(frozen=True)
class Spelled:
    """Takes the text of one of a few values, each read as its own class is."""

    fixed: Fixed

    @property
    def expected(self) -> str:
        """The values."""
        return self.fixed.expected

    def made(self, value: Any) -> Any:
        """Return what the value stands for."""
        for kind in dict.fromkeys(type(each) for each, _ in self.fixed.values):
            try:
                return self.fixed.made(PARSED[kind].made(value))
            except Unfit:
                continue
        raise Unfit(f"expected {self.expected}, got {_found(value)}")

    @staticmethod
    def of(fixed: Fixed) -> Spelled:
        """Return the form for texts.

        Raises:
            TypeError: nobody knows how one of the values is written.
        """
        if unknown := [value for value, _ in fixed.values if type(value) not in PARSED]:
            raise TypeError(f"no text becomes {shown(unknown[0])}")
        return Spelled(fixed)
