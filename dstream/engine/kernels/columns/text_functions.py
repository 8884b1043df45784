"""What methods and operators of `str` give for columns of texts, exactly as Python does, or not at all."""

# pyarrow makes its functions when it is loaded, which checkers do not see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute

from dstream.engine.kernels.columns.column_texts import Lists, Texts, array_of, offsets_and_bytes
from dstream.engine.kernels.columns.column_values import Bools, Column, Ints, Same, Withheld, size_of_column
from dstream.engine.kernels.columns.text_runs import BLANKS, found_by_pattern, has_other_blanks, words_of

__all__ = [
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
    """Return what a method gives for each text, or what `findall` of a pattern does.

    Raises:
        Withheld: it cannot be said for these texts and arguments.
    """
    if name == "findall" and isinstance(of, Same) and len(arguments) == 1 and isinstance(arguments[0], Texts):
        if type(of.value) is not re.Pattern:
            raise Withheld("what is no pattern")
        return found_by_pattern(of.value, arguments[0])
    if not isinstance(of, Texts) or name not in _METHODS:
        raise Withheld(f"{name} of something else than texts")
    return _METHODS[name](of, *(_constant(each) for each in arguments))


def _constant(column: Column) -> Any:
    if not isinstance(column, Same):
        raise Withheld("an argument that is not the same for all texts")
    return column.value


def _encoded(text: Any) -> bytes:
    """Return a text that stands in all rows as bytes.

    Raises:
        Withheld: it is no exact text, or has a surrogate.
    """
    if type(text) is not str:
        raise Withheld("an argument that is no text")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Withheld("a surrogate") from None


def _check_size(size: int) -> None:
    """Look whether texts of so many bytes may be made at once.

    Python makes one text after another, and may let go of each. Arrow's places have 32 bits, which wrap where a text
    is repeated or replaced (pyarrow 26).

    Raises:
        Withheld: they are too large.
    """
    if size > _MOST_MADE:
        raise Withheld("texts that take much memory together")


_MOST_MADE = 2**27


def _only_ascii(texts: Texts) -> None:
    if not texts.is_ascii:
        raise Withheld("a text beyond ASCII")


# --------------------------------------------------------------------------------------------------- texts from texts


def _changed(change: Callable[[bytes], bytes]) -> Callable[[Texts], Texts]:
    """Return what changes each byte into one other byte."""

    def apply(texts: Texts) -> Texts:
        _only_ascii(texts)
        if texts.is_joined and texts.joined is not None:
            return Texts(None, is_ascii=True, joined=change(texts.joined))
        offsets, data = offsets_and_bytes(texts.values)
        return Texts(array_of(offsets, change(data.tobytes())), is_ascii=True)

    return apply


def _stripped(trim: Callable[..., Any]) -> Callable[..., Texts]:
    def apply(texts: Texts, characters: Any = None) -> Texts:
        if characters is None:
            characters = BLANKS
            if not texts.is_ascii and has_other_blanks(texts):
                raise Withheld("a blank beyond ASCII")
        elif not _encoded(characters).isascii():
            raise Withheld("characters beyond ASCII")
        return Texts(trim(texts.values, characters), is_ascii=texts.is_ascii) if characters else texts

    return apply


def _replaced(texts: Texts, old: Any, new: Any) -> Texts:
    before, after = _encoded(old), _encoded(new)
    if not before:
        raise Withheld("a replacement between all characters")
    _check_replaced(texts, before, after)
    is_ascii = texts.is_ascii and after.isascii()
    if texts.is_joined and texts.joined is not None and b"\n" not in before + after:
        return Texts(None, is_ascii=is_ascii, joined=texts.joined.replace(before, after))
    return Texts(pc.replace_substring(texts.values, old, new), is_ascii=is_ascii)


def _check_replaced(texts: Texts, before: bytes, after: bytes) -> None:
    size, more = texts.nbytes(), len(after) - len(before)
    if size + size // len(before) * max(more, 0) > _MOST_MADE:
        data: Any = texts.joined if texts.is_joined else offsets_and_bytes(texts.values)[1].tobytes()
        _check_size(size + data.count(before) * max(more, 0))


def sliced_texts(texts: Texts, start: Any, stop: Any, step: Any) -> Texts:
    """Return `text[start:stop:step]`, whose bounds are the same for all texts.

    Raises:
        Withheld: the step is not 1, or a bound is no int of 32 bits.
    """
    if step is not None and (type(step) is not int or step != 1):
        raise Withheld("a step between characters")
    for bound in (start, stop):
        if bound is not None and (type(bound) is not int or abs(bound) >= _MOST_CHARACTERS):
            raise Withheld("a bound that is no int")
    values = texts.values
    if texts.is_ascii and texts.nbytes() <= _MOST_SLICED:
        return Texts(_slices_of_bytes(values, start, stop), is_ascii=True)
    # Of an end before the start Arrow (26) makes an empty text, as Python does.
    return Texts(pc.utf8_slice_codeunits(values, start or 0, stop), is_ascii=texts.is_ascii)


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
    # Each byte that stays comes from so many places behind where it goes.
    places = np.repeat(offsets[:-1] + first - found[:-1], kept) + np.arange(found[-1])
    return array_of(found, data[places])


def _bounded(bound: int, lengths: Any) -> Any:
    return np.minimum(bound, lengths) if bound >= 0 else np.maximum(lengths + bound, 0)


def joined_texts(columns: Given) -> Column:
    """Return texts one behind the other, of which some are the same in all rows.

    Raises:
        Withheld: one of the columns holds something else.
    """
    is_ascii, parts = True, []
    _check_size(sum(map(_size, columns)))
    for each in columns:
        if isinstance(each, Texts):
            is_ascii = is_ascii and each.is_ascii
            parts.append(each.values)
        elif isinstance(each, Same):
            is_ascii = _encoded(each.value).isascii() and is_ascii
            parts.append(pa.scalar(each.value, pa.string()))
        else:
            raise Withheld("a text beside something else")
    return Texts(pc.binary_join_element_wise(*parts, pa.scalar("", pa.string())), is_ascii=is_ascii)


def _size(column: Column) -> int:
    """Return how many bytes the texts of a column have, or one that stands in all rows in all of them."""
    if isinstance(column, Texts):
        return column.nbytes()
    return len(_encoded(column.value)) * column.size if isinstance(column, Same) else 0


def texts_of_ints(column: Ints) -> Texts:
    """Return `str` of each int."""
    return Texts(pa.array(column.values).cast(pa.string()), is_ascii=True)


# --------------------------------------------------------------------------------------------------- lists from texts


def _split(texts: Texts, separator: Any = None) -> Lists:
    if separator is None:
        return words_of(texts)
    if not _encoded(separator):
        raise Withheld("an empty separator")
    found = pc.split_pattern(texts.values, separator)
    ends = found.offsets.to_numpy()[1:]
    return Lists(Texts(found.flatten(), is_ascii=texts.is_ascii), lambda: ends, len(texts))


def index_of_lists(lists: Lists, place: Any) -> Texts:
    """Return the member at one place of each list.

    Raises:
        Withheld: a list has none there.
    """
    if type(place) is not int:
        raise Withheld("an index that is no int")
    lengths = lists.lengths()
    if lists.size and not -int(lengths.min()) <= place < int(lengths.min()):
        raise Withheld("an index that is out of range")
    return lists.members.taken((lists.starts() if place >= 0 else lists.ends()) + place)


# ------------------------------------------------------------------------------------------------ numbers from texts


def _begins(match: Callable[..., Any]) -> Callable[[Texts, Any], Bools]:
    def apply(texts: Texts, pattern: Any) -> Bools:
        _encoded(pattern)
        return _bools(match(texts.values, pattern))

    return apply


def _bools(array: Any) -> Bools:
    return Bools(array.to_numpy(zero_copy_only=False))


def contained_in_texts(pattern: Column, texts: Texts) -> Bools:
    """Say for each text whether a text that is the same for all is in it.

    Raises:
        Withheld: it is not the same for all, or no text.
    """
    value = _constant(pattern)
    _encoded(value)
    return _bools(pc.match_substring(texts.values, value))


def texts_among(texts: Texts, among: Column) -> Bools:
    """Say for each text whether it is among the members of a tuple or a frozenset.

    Raises:
        Withheld: it is none.
    """
    values = _constant(among)
    if type(values) not in (tuple, frozenset):
        raise Withheld("a container that is no tuple")
    wanted = [each for each in values if isinstance(each, str)]
    for each in wanted:
        _encoded(each)
    return _bools(pc.is_in(texts.values, pa.array(wanted, pa.string())))


def compared_texts(operator: str, left: Column, right: Column) -> Bools:
    """Compare texts: the bytes of UTF-8 have the order of the characters.

    Raises:
        Withheld: one of the columns holds something else.
    """
    return _bools(_COMPARISONS[operator](*(_operand(each) for each in (left, right))))


def _operand(column: Column) -> Any:
    if isinstance(column, Texts):
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


def length_of_texts(texts: Texts) -> Ints:
    """Return how many characters each text has."""
    if texts.is_ascii:
        lengths = np.diff(offsets_and_bytes(texts.values)[0]).astype(np.int64)
    else:
        lengths = pc.utf8_length(texts.values).to_numpy().astype(np.int64)
    return Ints(lengths, 0, int(lengths.max(initial=0)))


def merged_texts(chosen: Any, first: Column, second: Column) -> Texts:
    """Return a column that has the values of `first` in the chosen rows, in order, and those of `second` in the others.

    Raises:
        Withheld: one of them holds something else than texts.
    """
    _check_size(_size(first) + _size(second))
    parts = [_spread(each) for each in (first, second)]
    places = np.where(chosen, np.cumsum(chosen) - 1, len(parts[0]) + np.cumsum(~chosen) - 1)
    together = pa.concat_arrays([each.values for each in parts])
    return Texts(together, is_ascii=all(each.is_ascii for each in parts)).taken(places)


def _spread(column: Column) -> Texts:
    if isinstance(column, Texts):
        return column
    value = _constant(column)
    is_ascii = _encoded(value).isascii()
    return Texts(pa.repeat(pa.scalar(value, pa.string()), size_of_column(column)), is_ascii=is_ascii)


_METHODS: dict[str, Callable[..., Column]] = {
    "endswith": _begins(pc.ends_with),
    "lower": _changed(bytes.lower),
    "lstrip": _stripped(pc.ascii_ltrim),
    "replace": _replaced,
    "rstrip": _stripped(pc.ascii_rtrim),
    "split": _split,
    "startswith": _begins(pc.starts_with),
    "strip": _stripped(pc.ascii_trim),
    "upper": _changed(bytes.upper),
}
