"""Items of many rows of texts at once, converted column by column, as far as they fit.

`sources.quick_makers` writes a function that makes one item. Most of what is left of its cost is the loop around it and
the checks of each value. Where many rows are at hand, one check serves a column, and `map` calls the conversions and
the constructor. Whatever does not fit is left to the caller, who makes it one by one. Docs: decision 38.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from sources.forms import Form, FormOfItem, Modelled, OneOf, Scalar
from sources.quick_makers import takes_in_order
from sources.text_forms import Parsed

__all__ = ["maker_of_many", "maker_of_many_rows"]

Convert: TypeAlias = Callable[[Sequence[str]], Iterable[Any]]
"""Gives a value for each text of a column, or raises if one does not fit."""


def maker_of_many_rows(
    form: FormOfItem, names: Sequence[str], make: Callable[[Sequence[str]], Any]
) -> Callable[[Sequence[Sequence[str]]], list[Any]]:
    """Return a function that makes the items of the first of some rows, up to one that does not fit at once.

    An empty text stands for None.

    Args:
        form: that of the items.
        names: those of the columns.
        make: makes the item of one row, where columns do not help.
    """
    if isinstance(form, Modelled) or any(is_required and name not in names for name, _, _, is_required in form.fields):
        return maker_of_many(make)
    forms = {name: each for name, _, each, _ in form.fields if name in names}
    if not forms or not takes_in_order(form.kind, list(forms)):
        return maker_of_many(make)
    kind, count = form.kind, len(names)
    converted = [(names.index(name), _convert(each)) for name, each in forms.items()]

    def made(rows: Sequence[Sequence[str]]) -> list[Any]:
        found: list[Any] = []
        with contextlib.suppress(Exception):
            columns = list(zip(*rows, strict=True))
            if len(columns) == count:
                found.extend(map(kind, *[convert(columns[place]) for place, convert in converted]))
        return found

    return made


def maker_of_many(make: Callable[[Any], Any]) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a function that calls `make` for each of some values, up to one for which it raises."""

    def made(values: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        with contextlib.suppress(Exception):
            found.extend(map(make, values))  # What was made before an exception stays in the list.
        return found

    return made


def _convert(form: Form) -> Convert:
    if isinstance(form, OneOf) and len(form.forms) == 2 and form.forms[1] == Scalar(type(None)):
        return _or_none(form.forms[0])
    if not isinstance(form, Parsed):
        return lambda column: map(form.made, [text or None for text in column])
    if form.kind is str:
        return _texts
    if form.kind is int or form.kind is float:
        return _numbers(form.kind)
    return lambda column: map(form.parse, column)


def _or_none(form: Form) -> Convert:
    if isinstance(form, Parsed) and form.kind is str:
        return lambda column: [text or None for text in column] if "" in column else column
    convert = _convert(form)

    def converted(column: Sequence[str]) -> Iterable[Any]:
        if "" not in column:
            return convert(column)
        values = iter(convert([text for text in column if text]))
        return (next(values) if text else None for text in column)

    return converted


def _texts(column: Sequence[str]) -> Sequence[str]:
    if "" in column:
        raise ValueError("an empty field is None")
    return column


def _numbers(kind: type) -> Convert:
    """Refuse what only Python reads as a number, underscores and spaces around it, as the forms do."""

    def converted(column: Sequence[str]) -> Iterable[Any]:
        joined = "".join(column)
        if "_" in joined or "".join(joined.split()) != joined:
            raise ValueError("an underscore or a space")
        return map(kind, column) if kind is int else _finite(list(map(float, column)))

    return converted


def _finite(numbers: list[float]) -> list[float]:
    """Refuse infinity, as which float() reads what is too large for it."""
    if not math.isfinite(sum(numbers)) and (math.inf in numbers or -math.inf in numbers):
        raise ValueError("an infinity, or a number that is too large")
    return numbers
