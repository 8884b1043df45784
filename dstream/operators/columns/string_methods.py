"""Methods and operators of `str` on columns of strings, exactly as in Python. Loads pyarrow.

Python itself is asked what it does with a character, once for each distinct character beyond ASCII in a column. Where
the result of one character depends on others, or has another size, Python is called for each text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from dstream.operators.columns.capabilities import is_run_of_one_class
from dstream.operators.columns.strings import StringLists, Strings, array_of, offsets_and_bytes
from dstream.operators.columns.values import Bools, Column, ConstantColumn, Ints, NotColumnar, size_of_column

__all__ = [
    "BLANKS",
    "METHODS",
    "compared_texts",
    "contained_in_texts",
    "found_by_pattern",
    "has_other_blanks",
    "index_of_lists",
    "joined_texts",
    "length_of_texts",
    "merged_texts",
    "method_of_texts",
    "sliced_texts",
    "texts_among",
    "texts_of_ints",
    "words_of",
]


BLANKS = "".join(chr(code) for code in range(128) if chr(code).isspace())
r"""The blanks of `str.split` and `str.strip` in ASCII: "\x1c" to "\x1f" among them."""

_NEWLINE = 10


@dataclass(frozen=True, slots=True)
class _CharacterClass:
    """The characters of which runs consist.

    Attributes:
        has: says whether a character is one of them.
        table: for each byte 1 if it is a character of ASCII that is in no run.
        outside: those bytes.
    """

    has: Callable[[str], Any]
    table: bytes
    outside: bytes


def _class_of(has: Callable[[str], Any]) -> _CharacterClass:
    # No string that is joined contains a newline: there it ends a string, and every run.
    outside = bytes(code for code in range(128) if code == _NEWLINE or not has(chr(code)))
    return _CharacterClass(has, bytes(code in outside for code in range(256)), outside)


_NOT_BLANK = _class_of(lambda character: not character.isspace())


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
    """Say whether there is a blank beyond ASCII."""
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
def _of_pattern(pattern: re.Pattern[str]) -> _CharacterClass:
    return _class_of(pattern.fullmatch)


def _runs(texts: Strings, of: _CharacterClass) -> StringLists:
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
    of_ascii: NDArray[np.bool_], data: NDArray[np.uint8], of: _CharacterClass
) -> tuple[NDArray[np.bool_], bool]:
    """Return which bytes are in no run, given those of ASCII; and whether all others are ASCII."""
    beyond = _beyond_ascii(data)
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


def _beyond_ascii(data: NDArray[np.uint8]) -> _Beyond:
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


_YES = np.array([True])


def _ends(joined: bytes, places: NDArray[np.intp], is_end: NDArray[np.bool_]) -> NDArray[Any]:
    """Return how many runs have ended when each text does."""
    ended: NDArray[Any] = np.cumsum(is_end)
    of_texts: NDArray[Any] = ended[np.frombuffer(joined, np.uint8)[places] == _NEWLINE]
    return of_texts


Given: TypeAlias = "Sequence[Column]"

pc: Any = pyarrow.compute
"""Arrow makes its functions when it is loaded, where type checkers see none."""


def method_of_texts(name: str, of: Column, arguments: Given) -> Column:
    """Return the results of a method, or of `findall` of a pattern, for each string.

    Raises:
        NotColumnar: it cannot be said for these texts and arguments.
    """
    if (
        name == "findall"
        and isinstance(of, ConstantColumn)
        and len(arguments) == 1
        and isinstance(arguments[0], Strings)
    ):
        if type(of.value) is not re.Pattern:
            raise NotColumnar("what is no pattern")
        return found_by_pattern(of.value, arguments[0])
    if not isinstance(of, Strings) or name not in METHODS:
        raise NotColumnar(f"{name} of something else than texts")
    return METHODS[name](of, *(_constant(each) for each in arguments))


def _constant(column: Column) -> Any:
    if not isinstance(column, ConstantColumn):
        raise NotColumnar("an argument that is not the same for all texts")
    return column.value


def _encoded(text: Any) -> bytes:
    """Return a text that stands in all rows as bytes.

    Raises:
        NotColumnar: it is no exact text, or has a surrogate.
    """
    if type(text) is not str:
        raise NotColumnar("an argument that is no text")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise NotColumnar("a surrogate") from None


def _check_size(size: int) -> None:
    """Look whether texts of so many bytes may be made at once.

    Python makes one text after another, and may let go of each. Arrow's places have 32 bits, which wrap where a text
    is repeated or replaced (pyarrow 26).

    Raises:
        NotColumnar: they are too large.
    """
    if size > _MOST_MADE:
        raise NotColumnar("texts that take much memory together")


_MOST_MADE = 2**27


def _changed(change: Callable[[bytes], bytes], method: Callable[[str], str]) -> Callable[[Strings], Strings]:
    """Return a method that replaces each character by one that depends on it alone, as far as it does.

    Args:
        change: replaces the characters of ASCII.
        method: replaces all.
    """

    def apply(texts: Strings) -> Strings:
        joined = texts.joined if texts.is_joined else None
        # Newlines between the strings are not letters, so that all bytes can be changed at once.
        before = offsets_and_bytes(texts.values)[1].tobytes() if joined is None else joined
        changed = change(before) if texts.is_ascii else _also_changed(change(before), method)
        if changed is None:
            return _by_python(texts, method)
        if joined is not None:
            return Strings(None, is_ascii=texts.is_ascii, joined=changed)
        return Strings(array_of(offsets_and_bytes(texts.values)[0], changed), is_ascii=texts.is_ascii)

    return apply


def _also_changed(changed: bytes, method: Callable[[str], str]) -> bytes | None:
    """Return UTF-8 with the characters beyond ASCII replaced; None if one changes its size, or depends on others."""
    data = np.frombuffer(bytearray(changed), np.uint8)
    beyond = _beyond_ascii(data)
    for code in beyond.distinct().tolist():
        before, after = chr(code).encode(), method(chr(code)).encode()
        if len(before) != len(after) or code == _SIGMA:
            return None
        if before != after:
            places = beyond.places[beyond.codes == code]
            for place, byte in enumerate(after):
                data[places + place] = byte
    return data.tobytes()


_SIGMA = 0x3A3
"""In lower case it is another letter at the end of a word, the only character that depends on its neighbours."""


def _by_python(texts: Strings, method: Callable[..., str], *arguments: Any) -> Strings:
    """Return what a method returns for each text."""
    array = pa.array([method(each, *arguments) for each in texts.tolist()], pa.string())
    if not isinstance(array, pa.StringArray):  # It is cut into several where it is large.
        raise NotColumnar("texts of many bytes")
    return Strings(array, is_ascii=False)


def _stripped(trim: Callable[..., Any], method: Callable[..., str]) -> Callable[..., Strings]:
    def apply(texts: Strings, characters: Any = None) -> Strings:
        if characters is None:
            if not texts.is_ascii and has_other_blanks(texts):
                return _by_python(texts, method)
            characters = BLANKS
        elif not _encoded(characters).isascii():
            return _by_python(texts, method, characters)
        return Strings(trim(texts.values, characters), is_ascii=texts.is_ascii) if characters else texts

    return apply


def _replaced(texts: Strings, old: Any, new: Any) -> Strings:
    before, after = _encoded(old), _encoded(new)
    if not before:
        raise NotColumnar("a replacement between all characters")
    _check_replaced(texts, before, after)
    is_ascii = texts.is_ascii and after.isascii()
    # With a newline in either string, a replacement would join or divide neighbours.
    if texts.is_joined and texts.joined is not None and b"\n" not in before + after:
        return Strings(None, is_ascii=is_ascii, joined=texts.joined.replace(before, after))
    return Strings(pc.replace_substring(texts.values, old, new), is_ascii=is_ascii)


def _check_replaced(texts: Strings, before: bytes, after: bytes) -> None:
    size, more = texts.nbytes(), len(after) - len(before)
    # Occurrences are counted only where the upper bound of the result is too large.
    if size + size // len(before) * max(more, 0) > _MOST_MADE:
        data: Any = texts.joined if texts.is_joined else offsets_and_bytes(texts.values)[1].tobytes()
        _check_size(size + data.count(before) * max(more, 0))


def sliced_texts(texts: Strings, start: Any, stop: Any, step: Any) -> Strings:
    """Return `text[start:stop:step]`, whose bounds are the same for all texts.

    Raises:
        NotColumnar: the step is not 1, or a bound is no int of 32 bits.
    """
    if step is not None and (type(step) is not int or step != 1):
        raise NotColumnar("a step between characters")
    for bound in (start, stop):
        if bound is not None and (type(bound) is not int or abs(bound) >= _MOST_CHARACTERS):
            raise NotColumnar("a bound that is no int")
    values = texts.values
    if texts.is_ascii and texts.nbytes() <= _MOST_SLICED:
        return Strings(_slices_of_bytes(values, start, stop), is_ascii=True)
    # Of an end before the start Arrow (26) makes an empty text, as Python does.
    return Strings(pc.utf8_slice_codeunits(values, start or 0, stop), is_ascii=texts.is_ascii)


_MOST_SLICED = 2**24
"""Places of so many bytes, 24 for each, are few enough."""


_MOST_CHARACTERS = 2**31


def _slices_of_bytes(values: Any, start: int | None, stop: int | None) -> Any:
    offsets, data = offsets_and_bytes(values)
    lengths = np.diff(offsets).astype(np.int64)
    first = _bounded(0 if start is None else start, lengths)
    last = lengths if stop is None else _bounded(stop, lengths)
    kept = np.maximum(last - first, 0)
    found = np.zeros(len(values) + 1, np.int64)
    np.cumsum(kept, out=found[1:])
    # The distance of each remaining byte to its new place, plus that place.
    places = np.repeat(offsets[:-1] + first - found[:-1], kept) + np.arange(found[-1])
    return array_of(found, data[places])


def _bounded(bound: int, lengths: Any) -> Any:
    return np.minimum(bound, lengths) if bound >= 0 else np.maximum(lengths + bound, 0)


def joined_texts(columns: Given) -> Column:
    """Return texts one behind the other, of which some are the same in all rows.

    Raises:
        NotColumnar: one of the columns holds something else.
    """
    is_ascii, parts = True, []
    _check_size(sum(map(_size, columns)))
    for each in columns:
        if isinstance(each, Strings):
            is_ascii = is_ascii and each.is_ascii
            parts.append(each.values)
        elif isinstance(each, ConstantColumn):
            is_ascii = _encoded(each.value).isascii() and is_ascii
            parts.append(pa.scalar(each.value, pa.string()))
        else:
            raise NotColumnar("a text beside something else")
    return Strings(pc.binary_join_element_wise(*parts, pa.scalar("", pa.string())), is_ascii=is_ascii)


def _size(column: Column) -> int:
    """Return how many bytes the texts of a column have, or one that stands in all rows in all of them."""
    if isinstance(column, Strings):
        return column.nbytes()
    return len(_encoded(column.value)) * column.size if isinstance(column, ConstantColumn) else 0


def texts_of_ints(column: Ints) -> Strings:
    """Return `str` of each int."""
    return Strings(pa.array(column.values).cast(pa.string()), is_ascii=True)


def _split(texts: Strings, separator: Any = None) -> StringLists:
    if separator is None:
        return words_of(texts)
    if not _encoded(separator):
        raise NotColumnar("an empty separator")
    found = pc.split_pattern(texts.values, separator)
    ends = found.offsets.to_numpy()[1:]
    return StringLists(Strings(found.flatten(), is_ascii=texts.is_ascii), lambda: ends, len(texts))


def index_of_lists(lists: StringLists, place: Any) -> Strings:
    """Return the member at one place of each list.

    Raises:
        NotColumnar: a list has none there.
    """
    if type(place) is not int:
        raise NotColumnar("an index that is no int")
    lengths = lists.lengths()
    # One list that is too short raises an IndexError in Python, so its block is left to Python.
    if lists.size and not -int(lengths.min()) <= place < int(lengths.min()):
        raise NotColumnar("an index that is out of range")
    return lists.members.taken((lists.starts() if place >= 0 else lists.ends()) + place)


def _begins(match: Callable[..., Any]) -> Callable[[Strings, Any], Bools]:
    def apply(texts: Strings, pattern: Any) -> Bools:
        # Called for its checks alone: it refuses what is no string, or has a surrogate.
        _encoded(pattern)
        return _bools(match(texts.values, pattern))

    return apply


def _bools(array: Any) -> Bools:
    return Bools(array.to_numpy(zero_copy_only=False))


def contained_in_texts(pattern: Column, texts: Strings) -> Bools:
    """Say for each text whether a text that is the same for all is in it.

    Raises:
        NotColumnar: it is not the same for all, or no text.
    """
    value = _constant(pattern)
    _encoded(value)
    return _bools(pc.match_substring(texts.values, value))


def texts_among(texts: Strings, among: Column) -> Bools:
    """Say for each text whether it is among the members of a tuple or a frozenset.

    Raises:
        NotColumnar: it is none.
    """
    values = _constant(among)
    if type(values) not in (tuple, frozenset):
        raise NotColumnar("a container that is no tuple")
    wanted = [each for each in values if isinstance(each, str)]
    for each in wanted:
        _encoded(each)
    return _bools(pc.is_in(texts.values, pa.array(wanted, pa.string())))


def compared_texts(operator: str, left: Column, right: Column) -> Bools:
    """Compare texts: the bytes of UTF-8 have the order of the characters.

    Raises:
        NotColumnar: one of the columns holds something else.
    """
    return _bools(_COMPARISONS[operator](*(_operand(each) for each in (left, right))))


def _operand(column: Column) -> Any:
    if isinstance(column, Strings):
        return column.values
    value = _constant(column)
    _encoded(value)
    return pa.scalar(value, pa.string())


_COMPARISONS: dict[str, Callable[..., Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def length_of_texts(texts: Strings) -> Ints:
    """Return how many characters each text has."""
    if texts.is_ascii:
        lengths = np.diff(offsets_and_bytes(texts.values)[0]).astype(np.int64)
    else:
        lengths = pc.utf8_length(texts.values).to_numpy().astype(np.int64)
    return Ints(lengths, 0, int(lengths.max(initial=0)))


def merged_texts(chosen: Any, first: Column, second: Column) -> Strings:
    """Return a column that has the values of `first` in the chosen rows, in order, and those of `second` in the others.

    Raises:
        NotColumnar: one of them holds something else than texts.
    """
    _check_size(_size(first) + _size(second))
    parts = [_spread(each) for each in (first, second)]
    places = np.where(chosen, np.cumsum(chosen) - 1, len(parts[0]) + np.cumsum(~chosen) - 1)
    together = pa.concat_arrays([each.values for each in parts])
    return Strings(together, is_ascii=all(each.is_ascii for each in parts)).taken(places)


def _spread(column: Column) -> Strings:
    if isinstance(column, Strings):
        return column
    value = _constant(column)
    is_ascii = _encoded(value).isascii()
    return Strings(pa.repeat(pa.scalar(value, pa.string()), size_of_column(column)), is_ascii=is_ascii)


METHODS: dict[str, Callable[..., Column]] = {
    "endswith": _begins(pc.ends_with),
    "lower": _changed(bytes.lower, str.lower),
    "lstrip": _stripped(pc.ascii_ltrim, str.lstrip),
    "replace": _replaced,
    "rstrip": _stripped(pc.ascii_rtrim, str.rstrip),
    "split": _split,
    "startswith": _begins(pc.starts_with),
    "strip": _stripped(pc.ascii_trim, str.strip),
    "upper": _changed(bytes.upper, str.upper),
}
"""The functions of `capabilities.STRING_METHODS`, all but `findall`, whose pattern comes before the texts."""
