"""Methods and operators of `str` on columns of strings, exactly as in Python. Loads pyarrow.

Python itself is asked what it does with a character, once for each distinct character beyond ASCII in a column. Where
the result of one character depends on others, or has another size, Python is called for each text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute

from dstream.operators.columns.string_runs import (
    BLANKS,
    are_of_class,
    beyond_ascii,
    found_by_pattern,
    has_other_blanks,
    words_of,
)
from dstream.operators.columns.strings import (
    StringLists,
    Strings,
    array_of,
    array_of_ints,
    numbers_of_array,
    offsets_and_bytes,
    strings_of,
)
from dstream.operators.columns.values import Bools, Column, ConstantColumn, Ints, NotColumnar, size_of_column
from dstream.schema.types import array_of as array_of_values
from dstream.schema.types import scalar_of

__all__ = [
    "METHODS",
    "compared_texts",
    "contained_in_texts",
    "index_of_lists",
    "joined_texts",
    "length_of_texts",
    "merged_texts",
    "method_of_texts",
    "sliced_texts",
    "texts_among",
    "texts_of_ints",
]


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
    """Return the text of all rows as bytes.

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
    """Check whether strings of `size` bytes may be made at once.

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
    beyond = beyond_ascii(data)
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
    found = strings_of([method(each, *arguments) for each in texts.tolist()])
    if found is None:
        raise NotColumnar("texts of many bytes")
    return found


def _titled(texts: Strings) -> Strings:
    # A letter behind another one begins no word, so that strings have to be divided by newlines.
    joined = texts.joined if texts.is_ascii else None
    return _by_python(texts, str.title) if joined is None else Strings(None, is_ascii=True, joined=joined.title())


def _without(start: bool) -> Callable[[Strings, Any], Strings]:
    """Return `removeprefix` or `removesuffix`."""
    has = pc.starts_with if start else pc.ends_with

    def apply(texts: Strings, affix: Any) -> Strings:
        if not _encoded(affix):
            return texts
        values, size = texts.values, len(affix)
        shorter = sliced_texts(texts, size, None, None) if start else sliced_texts(texts, None, -size, None)
        return Strings(pc.if_else(has(values, affix), shorter.values, values), is_ascii=texts.is_ascii)

    return apply


def _consists_of(method: Callable[[str], bool]) -> Callable[[Strings], Bools]:
    """Return a method that is true of a string if it is of each of its characters."""
    of_none = method("")

    def apply(texts: Strings) -> Bools:
        found = are_of_class(texts, method)
        return Bools(found if of_none else found & texts.are_filled())

    return apply


def _counted(texts: Strings, part: Any) -> Ints:
    if not _encoded(part):
        raise NotColumnar("an empty part")
    return _ints(numbers_of_array(pc.count_substring(texts.values, part)))


def _found_at(texts: Strings, part: Any) -> Ints:
    if not _encoded(part):
        raise NotColumnar("an empty part")
    if texts.is_ascii:
        return _ints(numbers_of_array(pc.find_substring(texts.values, part)))
    return _ints([each.find(part) for each in texts.tolist()])


def _ints(numbers: Any) -> Ints:
    values = np.asarray(numbers, np.int64)
    return Ints(values, int(values.min(initial=0)), int(values.max(initial=0)))


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
"""The greatest number of bytes whose places, 24 bytes each, are few enough."""


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
            parts.append(scalar_of(each.value, pa.string()))
        else:
            raise NotColumnar("a text beside something else")
    return Strings(pc.binary_join_element_wise(*parts, scalar_of("", pa.string())), is_ascii=is_ascii)


def _size(column: Column) -> int:
    """Return how many bytes the texts of a column have, or one string in all rows has in all of them."""
    if isinstance(column, Strings):
        return column.nbytes()
    return len(_encoded(column.value)) * column.size if isinstance(column, ConstantColumn) else 0


def texts_of_ints(column: Ints) -> Strings:
    """Return `str` of each int."""
    return Strings(array_of_ints(column.values).cast(pa.string()), is_ascii=True)


def _split(texts: Strings, separator: Any = None) -> StringLists:
    if separator is None:
        return words_of(texts)
    if not _encoded(separator):
        raise NotColumnar("an empty separator")
    found = pc.split_pattern(texts.values, separator)
    ends = numbers_of_array(found.offsets)[1:]
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
    return Bools(numbers_of_array(array))


def contained_in_texts(pattern: Column, texts: Strings) -> Bools:
    """Return for each string whether a string that is the same for all is in it.

    Raises:
        NotColumnar: it is not the same for all, or no text.
    """
    value = _constant(pattern)
    _encoded(value)
    return _bools(pc.match_substring(texts.values, value))


def texts_among(texts: Strings, among: Column) -> Bools:
    """Return for each string whether it is among the members of a container.

    Raises:
        NotColumnar: it is none.
    """
    values = _constant(among)
    if type(values) not in (tuple, frozenset, list, dict, set):
        raise NotColumnar("a container that is no tuple")
    wanted = [each for each in values if isinstance(each, str)]
    for each in wanted:
        _encoded(each)
    return _bools(pc.is_in(texts.values, array_of_values(wanted, pa.string())))


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
    return scalar_of(value, pa.string())


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
        lengths = numbers_of_array(pc.utf8_length(texts.values)).astype(np.int64)
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
    return Strings(pa.repeat(scalar_of(value, pa.string()), size_of_column(column)), is_ascii=is_ascii)


METHODS: dict[str, Callable[..., Column]] = {
    **{
        name: _consists_of(getattr(str, name))
        for name in ("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isnumeric", "isprintable", "isspace")
    },
    "capitalize": lambda texts: _by_python(texts, str.capitalize),
    "casefold": _changed(bytes.lower, str.casefold),
    "count": _counted,
    "endswith": _begins(pc.ends_with),
    "find": _found_at,
    "lower": _changed(bytes.lower, str.lower),
    "lstrip": _stripped(pc.ascii_ltrim, str.lstrip),
    "removeprefix": _without(start=True),
    "removesuffix": _without(start=False),
    "replace": _replaced,
    "rstrip": _stripped(pc.ascii_rtrim, str.rstrip),
    "split": _split,
    "startswith": _begins(pc.starts_with),
    "strip": _stripped(pc.ascii_trim, str.strip),
    "swapcase": _changed(bytes.swapcase, str.swapcase),
    "title": _titled,
    "upper": _changed(bytes.upper, str.upper),
}
"""The functions of `capabilities.STRING_METHODS`, all but `findall`, whose pattern precedes the strings."""
