"""Text forms of scalar types: how a value becomes a string in CSV, JSON, SQL and keys, and how it is read again.

`TEXT_FORMS` is the one table. A string that a form wrote is read as an equal value of the same class, and a string in
another notation is refused: nothing is guessed. Formats with a native type for a class use it instead, so the table is
also the fallback for classes without a type in Arrow and databases.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID

from dstream.base.records import record

__all__ = ["TEXT_FORMS", "TextForm", "beyond_limit", "refusal", "text_form", "text_of"]


@record
class TextForm:
    """The text form of one class.

    Attributes:
        kind: the class.
        noun: a value of it, in words.
        example: a string that is read.
        parse: returns the value of a string, or raises a ValueError, TypeError or ArithmeticError.
        write: returns the string of a value.
    """

    kind: type
    noun: str
    example: str
    parse: Callable[[str], Any]
    write: Callable[[Any], str] = str

    @property
    def expected(self) -> str:
        """The noun, with the example."""
        return f"{self.noun} such as {self.example}" if self.example else self.noun


def beyond_limit(error: Exception) -> str:
    """Return the sentence of Python on an int of more digits than it reads, in parentheses; "" of other errors."""
    # The error has no class of its own (Python 3.11 to 3.14); it also arrives from `Fraction` and `timedelta`.
    text = str(error)
    return f" ({text})" if text.startswith("Exceeds the limit (") else ""


def _bool(text: str) -> bool:
    if (found := _TRUTHS.get(text)) is None:
        raise ValueError(text)
    return found


def _text_of_bool(value: bool) -> str:
    return "true" if value else "false"


_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def _int(text: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


_WHOLE = re.compile(r"[+-]?\d+")


def _float(text: str) -> float:
    value = float(_tight(text))
    # `float` converts a number that is too large to infinity; infinity itself is written without digits.
    if math.isinf(value) and any(map(str.isdecimal, text)):
        raise OverflowError(f"{text} is too large for a float")
    return value


def _decimal(text: str) -> Decimal:
    return Decimal(_tight(text))


def _tight(text: str) -> str:
    """Refuse numbers that only Python reads: underscores, and spaces around them."""
    if "_" in text or text != text.strip():
        raise ValueError(text)
    return text


def _fraction(text: str) -> Fraction:
    # Fraction() reads decimals too, and converts 1e999999999 to an int with a billion digits.
    if _RATIO.fullmatch(text) is None:
        raise ValueError(text)
    return Fraction(text)


_RATIO = re.compile(r"[+-]?[0-9]+(/[0-9]+)?")


def _duration(text: str) -> timedelta:
    if (found := _DURATION.fullmatch(text)) is None:
        raise ValueError(text)
    sign, years, weeks, days, hours, minutes, seconds, fraction = found.groups(default="0")
    value = timedelta(
        days=365 * int(years) + 7 * int(weeks) + int(days),  # pydantic writes 400 days as P1Y35D.
        hours=int(hours),
        minutes=int(minutes),
        seconds=int(seconds),
        microseconds=int(fraction.ljust(6, "0")),
    )
    return -value if sign == "-" else value


_DURATION = re.compile(
    r"([+-])?P(?=[0-9T])(?:([0-9]+)Y)?(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:[.,]([0-9]{1,6}))?S)?)?"
)
"""A duration of ISO 8601 without months, which have no fixed length."""


def _text_of_duration(value: timedelta) -> str:
    sign, length = ("-" if value.days < 0 else ""), abs(value)
    minutes, seconds = divmod(length.seconds, 60)
    exact = f"{seconds}.{length.microseconds:06}".rstrip("0") if length.microseconds else str(seconds)
    parts = {"H": minutes // 60, "M": minutes % 60, "S": exact}
    clock = "".join(f"{part}{unit}" for unit, part in parts.items() if part not in (0, "0"))
    days = f"{length.days}D" if length.days else ""
    return f"{sign}P{days}{'T' if clock else ''}{clock}" if days or clock else "PT0S"


def _uuid(text: str) -> UUID:
    # UUID() accepts braces, URNs and hyphens at any position as well.
    if _UUID.fullmatch(text) is None:
        raise ValueError(text)
    return UUID(text)


_UUID = re.compile(r"[0-9A-Fa-f]{8}(-?)[0-9A-Fa-f]{4}\1[0-9A-Fa-f]{4}\1[0-9A-Fa-f]{4}\1[0-9A-Fa-f]{12}")


def _ipv4(text: str) -> IPv4Address:
    return IPv4Address(str.__str__(text))  # IPv4Address() reads an int, too.


def _ipv6(text: str) -> IPv6Address:
    return IPv6Address(str.__str__(text))


def _bytes(text: str) -> bytes:
    # Unless it validates, characters outside of the alphabet are left out in silence.
    return base64.b64decode(text.translate(_URL_SAFE), validate=True)


_URL_SAFE = str.maketrans("-_", "+/")


def _text_of_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


_PATHS: tuple[type, ...] = (Path, type(Path()), PurePath, PurePosixPath, PureWindowsPath)
_FORMS = [
    TextForm(str, "a text", "", str, str.__str__),
    TextForm(bool, "true or false", "", _bool, _text_of_bool),
    # `str` of a member of an Enum, or of a subclass, may be anything.
    TextForm(int, "an int", "12", _int, int.__repr__),
    TextForm(float, "a float", "1.5", _float, float.__repr__),
    TextForm(Decimal, "a number", "1.50", _decimal),
    TextForm(Fraction, "a fraction", "1/3", _fraction),
    TextForm(date, "a date", "2026-01-31", date.fromisoformat, date.isoformat),
    TextForm(time, "a time", "23:59:00", time.fromisoformat, time.isoformat),
    TextForm(datetime, "a time", "2026-01-31T23:59:00+00:00", datetime.fromisoformat, datetime.isoformat),
    TextForm(timedelta, "a duration", "P1DT2H3M4.5S", _duration, _text_of_duration),
    TextForm(UUID, "a UUID", "12345678-1234-5678-1234-567812345678", _uuid),
    TextForm(IPv4Address, "an address", "10.0.0.1", _ipv4),
    TextForm(IPv6Address, "an address", "2001:db8::1", _ipv6),
    TextForm(bytes, "bytes in base64", "AP8=", _bytes, _text_of_bytes),
    *(TextForm(kind, "a path", "data/file.csv", kind) for kind in _PATHS),
]
TEXT_FORMS: dict[type, TextForm] = {form.kind: form for form in _FORMS}
"""The text form of each class without parts."""

_SUBCLASSED = (bool, str, int, float)


def text_form(value: Any) -> TextForm | None:
    """Return the form in which a value is written; None if it has none.

    A member of an enumeration is written as its value is, and an instance of a subclass of str, int or float as one of
    that.
    """
    kind = type(value)
    if kind in TEXT_FORMS:
        return TEXT_FORMS[kind]
    if isinstance(value, Enum):
        inner = text_form(value.value)
        return None if inner is None else TextForm(kind, inner.noun, inner.example, inner.parse, _of_member)
    return next((TEXT_FORMS[each] for each in _SUBCLASSED if isinstance(value, each)), None)


def _of_member(member: Any) -> str:
    return text_of(member.value)


def text_of(value: Any) -> str:
    r"""Return the text form of a value.

    Raises:
        TypeError: its class has none.
        ValueError: it is an int of more digits than Python writes.

    Example:
        >>> from dstream.schema.text_forms import text_of
        >>> text_of(timedelta(days=1, hours=2)), text_of(Fraction(1, 3)), text_of(b"\x00\xff")
        ('P1DT2H', '1/3', 'AP8=')
    """
    form = text_form(value)
    if form is None:
        raise TypeError(f"{type(value).__qualname__} has no text form")
    return form.write(value)


def refusal(format: str, type_name: str, instead: str, field: str | None = None, owner: str | None = None) -> str:
    """Return the sentence with which each format refuses a type or a value.

    Args:
        format: its name in prose, such as "CSV".
        type_name: the type, or a description of the value.
        instead: an instruction, such as "map() it to a str before".
        field: its field or column; None for an item.
        owner: the class of the field.

    Example:
        >>> from dstream.schema.text_forms import refusal
        >>> refusal("CSV", "list[int]", "write format='json'", "sizes", "Order")
        "field 'sizes' of Order: list[int] cannot be stored in CSV; write format='json'"
    """
    of = "" if owner is None else f" of {owner}"
    where = "" if field is None else f"field {field!r}{of}: "
    return f"{where}{type_name} cannot be stored in {format}; {instead}"
