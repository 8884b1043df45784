r"""Runs of characters: the words of `split()`, and what a pattern such as `[a-z]+` finds, by a look at each byte.

Which characters of ASCII are inside of a run, Python itself is asked. What lies beyond ASCII has bytes of 128 and more,
and all of them are inside, or all outside; where that does not hold for a function, such texts are withheld.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.engine.kernels.columns.column_texts import Lists, Texts, array_of, offsets_and_bytes
from dstream.engine.kernels.columns.column_values import Withheld
from dstream.engine.kernels.columns.readable_patterns import is_run_of_one_class, is_same_beyond_ascii

__all__ = ["BLANKS", "found_by_pattern", "has_other_blanks", "words_of"]

BLANKS = "".join(chr(code) for code in range(128) if chr(code).isspace())
r"""What `str.split` and `str.strip` take for blanks, in ASCII: "\x1c" to "\x1f" among them."""

_NEWLINE = 10


@dataclass(frozen=True, slots=True)
class _Outside:
    """Which bytes are in no run.

    Attributes:
        table: for each byte 1 if it is in none.
        bytes: those.
    """

    table: bytes
    bytes: bytes


def _outside(inside: Any, beyond_ascii: bool) -> _Outside:
    # No text that is joined holds a newline: there it ends a text, and every run.
    found = [not (inside(chr(code)) if code < 128 else beyond_ascii) or code == _NEWLINE for code in range(256)]
    return _Outside(bytes(found), bytes(code for code in range(256) if found[code]))


_NOT_BLANK = _outside(lambda character: character not in BLANKS, beyond_ascii=True)


def words_of(texts: Texts) -> Lists:
    """Return what `str.split` without arguments gives for each text.

    Raises:
        Withheld: one of them holds a newline, or a blank beyond ASCII.
    """
    if not texts.is_ascii and has_other_blanks(texts):
        raise Withheld("a blank beyond ASCII")
    return _runs(texts, _NOT_BLANK)


_OTHER_BLANKS = [
    code.encode()
    for code in (
        *("\x85", "\xa0", "\u1680", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"),
        *map(chr, range(0x2000, 0x200B)),
    )
]


def has_other_blanks(texts: Texts) -> bool:
    """Say whether there is a blank beyond ASCII."""
    joined = texts.joined if texts.is_joined else None
    data = offsets_and_bytes(texts.values)[1] if joined is None else np.frombuffer(joined, np.uint8)
    places = np.flatnonzero(_BEGINS_BLANK[data])
    first, second = data[places], data[places + 1]
    third = np.where(first == _OF_TWO_BYTES, 0, data[np.minimum(places + 2, len(data) - 1)])
    return bool(np.isin(_number(first, second, third), _NUMBERS_OF_BLANKS).any())


_OF_TWO_BYTES = 0xC2
"""What begins those blanks that have two bytes; all others have three."""


def _number(first: Any, second: Any, third: Any) -> Any:
    return np.asarray(first, np.int64) << 16 | np.asarray(second, np.int64) << 8 | third


_NUMBERS_OF_BLANKS = np.array([_number(*blank, *[0] * (3 - len(blank))) for blank in _OTHER_BLANKS])
_BEGINS_BLANK = np.isin(np.arange(256), [blank[0] for blank in _OTHER_BLANKS])


def found_by_pattern(pattern: re.Pattern[str], texts: Texts) -> Lists:
    """Return what `findall` of a pattern gives for each text.

    Raises:
        Withheld: it is no run of characters of one class; or a text holds a newline, or is not ASCII where a class
            has some characters beyond that.
    """
    if not is_run_of_one_class(pattern):
        raise Withheld("a pattern that only Python reads")
    beyond = is_same_beyond_ascii(pattern)
    if beyond is None and not texts.is_ascii:
        raise Withheld("a text beyond ASCII")
    return _runs(texts, _of_pattern(pattern, bool(beyond)))


@functools.lru_cache(maxsize=64)
def _of_pattern(pattern: re.Pattern[str], beyond_ascii: bool) -> _Outside:
    return _outside(pattern.fullmatch, beyond_ascii)


def _runs(texts: Texts, outside: _Outside) -> Lists:
    joined = texts.joined
    if joined is None:
        raise Withheld("a text that holds a newline")
    places = np.flatnonzero(np.frombuffer(joined.translate(outside.table), np.bool_))
    # So many bytes of runs stand before each byte that is in none.
    before = np.zeros(len(places) + 1, np.int32)
    np.subtract(places, np.arange(len(places)), out=before[1:], casting="unsafe")
    is_end = before[1:] != before[:-1]
    offsets = before if is_end.all() else before[np.concatenate((_YES, is_end))]
    members = Texts(array_of(offsets, joined.translate(None, outside.bytes)), is_ascii=texts.is_ascii)
    return Lists(members, lambda: _ends(joined, places, is_end), len(texts))


_YES = np.array([True])


def _ends(joined: bytes, places: NDArray[np.intp], is_end: NDArray[np.bool_]) -> NDArray[Any]:
    """Return how many runs have ended when each text does."""
    ended: NDArray[Any] = np.cumsum(is_end)
    of_texts: NDArray[Any] = ended[np.frombuffer(joined, np.uint8)[places] == _NEWLINE]
    return of_texts
