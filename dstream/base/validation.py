"""Validation of stored data, all of which is input: any writer of the storage may have chosen it.

`docs/reference/checks-of-a-storage.md` lists for each file and each key what is checked.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from dstream.errors import IllegalStateError

__all__ = ["NOT_UNDERSTOOD", "checked_number", "checked_text", "identity", "is_unicode", "receipts_of"]


T = TypeVar("T")

NOT_UNDERSTOOD = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error)
"""The exceptions that the parsers of this project raise on invalid data."""

_IDENTITY = re.compile(r"[0-9a-f]{32}")
_LARGEST = 2**63 - 1


def identity(data: Any) -> str:
    """Return the identity of a collection, which becomes part of paths and keys: 32 hexadecimal digits.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(data, str) or not _IDENTITY.fullmatch(data):
        raise ValueError("an identity has 32 hexadecimal digits")
    return data


def checked_number(data: Any, most: int = _LARGEST) -> int:
    """Return a whole number that is not negative, also one that is written as a string.

    Raises:
        ValueError: it is none, or larger than `most`.
    """
    # `int` also takes signs, blanks, underscores and digits of other scripts.
    found = int(data) if isinstance(data, str) and data.isascii() and data.isdigit() else data
    if type(found) is not int or not 0 <= found <= most:  # A bool is an instance of int.
        raise ValueError(f"a number from 0 to {most} was expected")
    return found


def checked_text(data: Any) -> str:
    """Return a string.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(data, str):
        raise ValueError("a text was expected")
    return data


def is_unicode(text: str) -> bool:
    """Return whether a string has no lone surrogate, which UTF-8 cannot encode."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def receipts_of(title: object, read: Callable[[Any], T], receipts: Iterable[Any]) -> list[T]:
    """Return the contents of receipts, which may have been stored anywhere since tasks returned them.

    Raises:
        IllegalStateError: one of them is none.
    """
    try:
        return [read(receipt) for receipt in receipts]
    except NOT_UNDERSTOOD as error:
        raise IllegalStateError(
            f"{title}: nothing was changed, since what was to be committed is no receipt of it: {error}"
        ) from error
