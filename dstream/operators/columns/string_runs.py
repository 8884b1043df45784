"""Runs of characters of one class in columns of strings, and the characters beyond ASCII of a column.

Python itself is asked whether a character is in a class, once for each distinct character beyond ASCII in a column.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dstream.base.records import record
from dstream.operators.columns.capabilities import is_run_of_one_class
from dstream.operators.columns.strings import StringLists, Strings, array_of, offsets_and_bytes
from dstream.operators.columns.values import NotColumnar

__all__ = ["BLANKS", "are_of_class", "beyond_ascii", "class_of", "found_by_pattern", "has_other_blanks", "words_of"]


BLANKS = "".join(chr(code) for code in range(128) if chr(code).isspace())
r"""The blanks of `str.split` and `str.strip` in ASCII: "\x1c" to "\x1f" among them."""

_NEWLINE = 10


@record
class CharacterClass:
    """The characters of which runs consist.

    Attributes:
        has: returns whether a character is one of them.
        table: for each byte 1 if it is a character of ASCII that is in no run.
        outside: those bytes.
    """

    has: Callable[[str], Any]
    table: bytes
    outside: bytes


def class_of(has: Callable[[str], Any]) -> CharacterClass:
    """Return the class of the characters that a function accepts; a newline is in none."""
    # No string that is joined contains a newline: there it ends a string, and every run.
    outside = bytes(code for code in range(128) if code == _NEWLINE or not has(chr(code)))
    return CharacterClass(has, bytes(code in outside for code in range(256)), outside)


_NOT_BLANK = class_of(lambda character: not character.isspace())


def words_of(texts: Strings) -> StringLists:
    """Return the words of `str.split` without arguments for each string.

    Raises:
        NotColumnar: one of them holds a newline.
    """
    return _runs(texts, _NOT_BLANK)


_OTHER_BLANKS = [
    code.encode()
    for code in (
        *("\x85", "\xa0", "\u1680", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"),
        *map(chr, range(0x2000, 0x200B)),
    )
]


def has_other_blanks(texts: Strings) -> bool:
    """Return whether there is a blank beyond ASCII."""
    joined = texts.joined if texts.is_joined else None
    data = offsets_and_bytes(texts.values)[1] if joined is None else np.frombuffer(joined, np.uint8)
    places = np.flatnonzero(_BEGINS_BLANK[data])
    first, second = data[places], data[places + 1]
    third = np.where(first == _OF_TWO_BYTES, 0, data[np.minimum(places + 2, len(data) - 1)])
    return bool(np.isin(_number(first, second, third), _NUMBERS_OF_BLANKS).any())


_OF_TWO_BYTES = 0xC2
"""The first byte of blanks that have two bytes; all others have three."""


def _number(first: Any, second: Any, third: Any) -> Any:
    return np.asarray(first, np.int64) << 16 | np.asarray(second, np.int64) << 8 | third


_NUMBERS_OF_BLANKS = np.array([_number(*blank, *[0] * (3 - len(blank))) for blank in _OTHER_BLANKS])
_BEGINS_BLANK = np.isin(np.arange(256), [blank[0] for blank in _OTHER_BLANKS])


def found_by_pattern(pattern: re.Pattern[str], texts: Strings) -> StringLists:
    """Return the matches of `findall` of a pattern for each string.

    Raises:
        NotColumnar: it is no run of characters of one class; or a text holds a newline.
    """
    if not is_run_of_one_class(pattern):
        raise NotColumnar("a pattern that only Python reads")
    return _runs(texts, _of_pattern(pattern))


@functools.lru_cache(maxsize=64)
def _of_pattern(pattern: re.Pattern[str]) -> CharacterClass:
    return class_of(pattern.fullmatch)


def _runs(texts: Strings, of: CharacterClass) -> StringLists:
    joined = texts.joined
    if joined is None:
        raise NotColumnar("a text that holds a newline")
    is_outside = np.frombuffer(joined.translate(of.table), np.bool_)
    is_ascii, inside = True, joined.translate(None, of.outside)
    if not texts.is_ascii:
        data = np.frombuffer(joined, np.uint8)
        is_outside, is_ascii = _also_outside(is_outside, data, of)
        inside = data[~is_outside].tobytes()
    places = np.flatnonzero(is_outside)
    # The number of bytes in runs before each byte that is in none.
    before = np.zeros(len(places) + 1, np.int32)
    np.subtract(places, np.arange(len(places)), out=before[1:], casting="unsafe")
    is_end = before[1:] != before[:-1]
    offsets = before if is_end.all() else before[np.concatenate((_YES, is_end))]
    members = Strings(array_of(offsets, inside), is_ascii=is_ascii)
    # The ends are found on demand: a `flat_map` to all words does not ask for them.
    return StringLists(members, lambda: _ends(joined, places, is_end), len(texts))


def _also_outside(
    of_ascii: NDArray[np.bool_], data: NDArray[np.uint8], of: CharacterClass
) -> tuple[NDArray[np.bool_], bool]:
    """Return which bytes are in no run, given those of ASCII; and whether all others are ASCII."""
    beyond = beyond_ascii(data)
    of_code = np.zeros(beyond.greatest() + 1, np.bool_)
    distinct = beyond.distinct()
    of_code[distinct] = [not of.has(chr(code)) for code in distinct.tolist()]
    is_outside = of_code[beyond.codes]
    found = of_ascii.copy()
    for byte in range(_MOST_OF_CHARACTER):
        found[beyond.places[is_outside & (beyond.sizes > byte)] + byte] = True
    return found, bool(is_outside.all())


class _Beyond(NamedTuple):
    """The characters beyond ASCII of UTF-8.

    Attributes:
        places: the place of the first byte of each.
        codes: their code points.
        sizes: the number of bytes of each.
    """

    places: NDArray[np.intp]
    codes: NDArray[np.int32]
    sizes: NDArray[np.int32]

    def greatest(self) -> int:
        return int(self.codes.max(initial=0))

    def distinct(self) -> NDArray[np.intp]:
        """Return each code point once."""
        occurs = np.zeros(self.greatest() + 1, np.bool_)
        occurs[self.codes] = True
        return np.flatnonzero(occurs)


def beyond_ascii(data: NDArray[np.uint8]) -> _Beyond:
    """Return the characters beyond ASCII of UTF-8."""
    places = np.flatnonzero(data >= _FIRST_OF_SEVERAL)
    first = data[places].astype(np.int32)
    sizes = 2 + (first >= 0xE0) + (first >= 0xF0).astype(np.int32)
    codes = first & (0x7F >> sizes)
    for byte in range(1, _MOST_OF_CHARACTER):
        has_it = sizes > byte
        codes[has_it] = codes[has_it] << 6 | data[places[has_it] + byte] & 0x3F
    return _Beyond(places, codes, sizes)


_FIRST_OF_SEVERAL = 0xC0
"""The least byte with which a character of several bytes begins in UTF-8."""
_MOST_OF_CHARACTER = 4


def are_of_class(texts: Strings, has: Callable[[str], Any]) -> NDArray[np.bool_]:
    """Return for each string whether a function accepts each of its characters; of an empty string, True."""
    offsets, data = offsets_and_bytes(texts.values)
    of = class_of(has)
    is_outside = np.frombuffer(data.tobytes().translate(of.table), np.bool_)
    if has("\n"):
        is_outside = is_outside & (data != _NEWLINE)
    if not texts.is_ascii:
        is_outside, _ = _also_outside(is_outside, data, of)
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum(is_outside, out=before[1:])
    are_inside: NDArray[np.bool_] = before[offsets[1:]] == before[offsets[:-1]]
    return are_inside


_YES = np.array([True])


def _ends(joined: bytes, places: NDArray[np.intp], is_end: NDArray[np.bool_]) -> NDArray[Any]:
    """Return how many runs have ended when each text does."""
    ended: NDArray[Any] = np.cumsum(is_end)
    of_texts: NDArray[Any] = ended[np.frombuffer(joined, np.uint8)[places] == _NEWLINE]
    return of_texts
