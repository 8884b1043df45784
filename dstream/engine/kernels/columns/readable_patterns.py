r"""Which compiled patterns find runs of characters of one class, such as `[a-z]+` or `\w+`. Loads no NumPy."""

from __future__ import annotations

import re

__all__ = ["is_run_of_one_class", "is_same_beyond_ascii"]

_ONE_CLASS = re.compile(r"(?:\\[wWdDsS]|\[(\^?)((?:[^\\\[\]^]|\\[wWdDsS\\\]\[^.-])+)\])\+")
"""One class with a plus behind it; inside of brackets no other bracket that is not escaped."""

_FLAGS = re.UNICODE | re.ASCII | re.IGNORECASE
"""Other flags change nothing in such a pattern, or are seldom seen beside one."""


def is_run_of_one_class(pattern: object) -> bool:
    """Say whether what a pattern finds are the longest runs of characters of one class."""
    if type(pattern) is not re.Pattern or type(pattern.pattern) is not str or pattern.flags & ~_FLAGS:
        return False
    return _ONE_CLASS.fullmatch(pattern.pattern) is not None


def is_same_beyond_ascii(pattern: re.Pattern[str]) -> bool | None:
    """Say whether a class has all characters beyond ASCII, or none; None if it has some of them."""
    found = _ONE_CLASS.fullmatch(pattern.pattern)
    assert found is not None, "only such patterns are asked for"
    if (
        found[2] is None
        or re.search(r"\\[wWdDsS]", found[2])
        or not found[2].isascii()
        or pattern.flags & re.IGNORECASE
    ):
        return None
    return found[1] == "^"
