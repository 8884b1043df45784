"""Operators, methods and calls with strings, lists of strings, or rows with parts among their operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dstream.expressions.effects import KNOWN
from dstream.operators.columns.arithmetic import by_python, comparisons, contained, made
from dstream.operators.columns.built_rows import RowsWithParts, got_part, has_part, tuples_of_lists
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.encoded_calls import as_plain, by_distinct
from dstream.operators.columns.strings import StringLists, Strings
from dstream.operators.columns.values import Bools, Column, ConstantColumn, Ints, NotColumnar, Tuples

__all__ = [
    "applied_to_texts",
    "contained_among",
    "length_of",
    "member_of_lists",
    "method_of",
    "number_of_texts",
    "slice_of",
    "text_of",
    "text_together",
]


def _on_texts(apply: Callable[[Any], Column]) -> Column:
    """Evaluate the functions of strings to a column.

    Raises:
        NotColumnar: they withhold it, or the texts become too long for Arrow.
    """
    # Here, since Arrow's functions take 30 ms to load, and numbers need none of them.
    import pyarrow as pa

    from dstream.operators.columns import string_methods as text_functions

    try:
        return apply(text_functions)
    except pa.ArrowException as error:
        raise NotColumnar(f"Arrow raises {type(error).__name__}") from None


def applied_to_texts(sign: str, operands: list[Column]) -> Column:
    """Return the results of an operator with a column of strings among its operands."""
    if sign in comparisons:
        return _on_texts(lambda texts: texts.compared_texts(sign, *operands))
    if sign != "+":
        raise NotColumnar(f"texts have no {sign}")
    return text_together(operands)


def contained_among(column: Column, among: Column) -> Column:
    """Return for each row whether a value is among others, or a string in another one."""
    among = tuples_of_lists(among)
    if isinstance(column, Encoded) and isinstance(among, ConstantColumn):
        return by_distinct(lambda value, values: value in values, [column, among])
    if isinstance(among, RowsWithParts):
        return Bools(np.full(among.size, has_part(among, column)))
    if isinstance(among, Strings):
        return _on_texts(lambda texts: texts.contained_in_texts(column, among))
    if isinstance(column, Strings):
        return _on_texts(lambda texts: texts.texts_among(column, among))
    return contained(column, among)


def text_together(columns: list[Column]) -> Column:
    """Return texts one behind the other."""
    values = [each.value for each in columns if isinstance(each, ConstantColumn)]
    if len(values) == len(columns):
        return by_python(lambda *parts: "".join(parts), columns)
    return _on_texts(lambda texts: texts.joined_texts(columns))


def text_of(column: Column) -> Column:
    """Return `str` of each value."""
    if isinstance(column, Strings):
        return column
    if isinstance(column, ConstantColumn):
        return by_python(str, [column])
    if isinstance(column, Encoded):
        return by_distinct(str, [column])
    if not isinstance(column, Ints):
        raise NotColumnar("digits that only Python finds")
    return _on_texts(lambda texts: texts.texts_of_ints(column))


def slice_of(of: Column, bounds: list[Column]) -> Column:
    """Return `of[start:stop:step]` of texts."""
    values = [each.value for each in bounds if isinstance(each, ConstantColumn)]
    if not isinstance(of, Strings) or len(values) < len(bounds):
        raise NotColumnar("a slice of something else than texts, or bounds that are not the same for all rows")
    return _on_texts(lambda texts: texts.sliced_texts(of, *values))


def method_of(name: str, columns: list[Column], keywords: tuple[str, ...] = ()) -> Column:
    """Return the results of a method of an object with its arguments, of which the last ones have names."""
    of, *arguments = columns = list(map(as_plain, columns))
    if all(isinstance(each, ConstantColumn) for each in columns):
        raise NotColumnar("a method of what is the same for all rows")
    if name == "get" and isinstance(of, RowsWithParts):
        return got_part(of, arguments)
    if isinstance(of, Encoded):
        return by_distinct(partial(_method_called, name, keywords), columns)
    if keywords:
        raise NotColumnar("a method of something else than dates with a keyword")
    return _on_texts(lambda texts: texts.method_of_texts(name, of, arguments))


def _method_called(name: str, keywords: tuple[str, ...], of: Any, *arguments: Any) -> Any:
    by_place = len(arguments) - len(keywords)
    return getattr(of, name)(*arguments[:by_place], **dict(zip(keywords, arguments[by_place:], strict=True)))


def member_of_lists(lists: StringLists, index: Column) -> Column:
    """Return the member of each list at one place."""
    if not isinstance(index, ConstantColumn):
        raise NotColumnar("an index that is not the same for all rows")
    return _on_texts(lambda texts: texts.index_of_lists(lists, index.value))


def length_of(of: Column) -> Column:
    """Return `len` of each value."""
    if isinstance(of, Strings):
        return _on_texts(lambda texts: texts.length_of_texts(of))
    of = tuples_of_lists(of)
    if isinstance(of, RowsWithParts) and not of.has_other_parts and of.access == {"key"}:
        return ConstantColumn(len(of.names), of.size)
    if isinstance(of, StringLists):
        lengths = of.lengths()
        return Ints(lengths, 0, int(lengths.max(initial=0)))
    if not isinstance(of, Tuples):
        raise NotColumnar("the length of what is no tuple")
    return ConstantColumn(len(of.members), of.size)


def number_of_texts(function: str, of: Strings) -> Column:
    """Parse each string as an `int` or a `float` in Python: other parsers accept more, and less."""
    texts = of.tolist()
    return made(lambda: list(map(KNOWN[function], texts)))
