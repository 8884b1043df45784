"""Evaluating what texts have besides other values: operators, methods, slices, lengths. Arrow is loaded for a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dstream.engine.kernels.columns.column_comparing import comparisons, contained
from dstream.engine.kernels.columns.column_texts import Lists, Texts
from dstream.engine.kernels.columns.column_values import Column, Ints, Same, Tuples, Withheld
from dstream.engine.kernels.columns.values_by_python import by_python, made
from dstream.expressions.known_functions import KNOWN

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
    """Let the functions of texts give a column.

    Raises:
        Withheld: they withhold it, or the texts become too long for Arrow.
    """
    import pyarrow as pa

    from dstream.engine.kernels.columns import text_functions

    try:
        return apply(text_functions)
    except pa.ArrowException as error:
        raise Withheld(f"Arrow raises {type(error).__name__}") from None


def applied_to_texts(sign: str, operands: list[Column]) -> Column:
    """Return what an operator gives, of whose operands one is a column of texts."""
    if sign in comparisons:
        return _on_texts(lambda texts: texts.compared_texts(sign, *operands))
    if sign != "+":
        raise Withheld(f"texts have no {sign}")
    return text_together(operands)


def contained_among(column: Column, among: Column) -> Column:
    """Say for each row whether a value is among others, or a text in another one."""
    if isinstance(among, Texts):
        return _on_texts(lambda texts: texts.contained_in_texts(column, among))
    if isinstance(column, Texts):
        return _on_texts(lambda texts: texts.texts_among(column, among))
    return contained(column, among)


def text_together(columns: list[Column]) -> Column:
    """Return texts one behind the other."""
    values = [each.value for each in columns if isinstance(each, Same)]
    if len(values) == len(columns):
        return by_python(lambda *parts: "".join(parts), columns)
    return _on_texts(lambda texts: texts.joined_texts(columns))


def text_of(column: Column) -> Column:
    """Return `str` of each value."""
    if isinstance(column, Texts):
        return column
    if isinstance(column, Same):
        return by_python(str, [column])
    if not isinstance(column, Ints):
        raise Withheld("digits that only Python finds")
    return _on_texts(lambda texts: texts.texts_of_ints(column))


def slice_of(of: Column, bounds: list[Column]) -> Column:
    """Return `of[start:stop:step]` of texts."""
    values = [each.value for each in bounds if isinstance(each, Same)]
    if not isinstance(of, Texts) or len(values) < len(bounds):
        raise Withheld("a slice of something else than texts, or bounds that are not the same for all rows")
    return _on_texts(lambda texts: texts.sliced_texts(of, *values))


def method_of(name: str, columns: list[Column]) -> Column:
    """Return what a method gives, of an object and arguments."""
    of, *arguments = columns
    if all(isinstance(each, Same) for each in columns):
        raise Withheld("a method of what is the same for all rows")
    return _on_texts(lambda texts: texts.method_of_texts(name, of, arguments))


def member_of_lists(lists: Lists, index: Column) -> Column:
    """Return the member of each list at one place."""
    if not isinstance(index, Same):
        raise Withheld("an index that is not the same for all rows")
    return _on_texts(lambda texts: texts.index_of_lists(lists, index.value))


def length_of(of: Column) -> Column:
    """Return `len` of each value."""
    if isinstance(of, Texts):
        return _on_texts(lambda texts: texts.length_of_texts(of))
    if isinstance(of, Lists):
        lengths = of.lengths()
        return Ints(lengths, 0, int(lengths.max(initial=0)))
    if not isinstance(of, Tuples):
        raise Withheld("the length of what is no tuple")
    return Same(len(of.members), of.size)


def number_of_texts(function: str, of: Texts) -> Column:
    """Let Python read each text as an `int` or a `float`: others read more, and less."""
    texts = of.tolist()
    return made(lambda: list(map(KNOWN[function], texts)))
