"""Generated functions that build items from values of the expected types, single or by column.

The decoder of a class is the definition of how a record is read (`dstream.schema.decoders`). It checks each field in a
loop, which costs three times as much as the constructor. So a function is generated for each class, compiled once and
cached. It converts values that fit; otherwise, or after an exception, the decoder decides. The source contains only
generated names, numbers, and the names of parameters, which are identifiers. Docs: decision 38.

Most of the remaining cost is the loop around such a function and the checks of each value. For many rows a column is
checked once, and `map` calls the conversions and the constructor. Rows that do not fit are left to the caller, which
builds the items one by one.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import keyword
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from dstream.schema.decoders import (
    Decoder,
    Fixed,
    ItemDecoder,
    Made,
    ModelDecoder,
    OptionalDecoder,
    UnionDecoder,
    fitting,
)
from dstream.schema.record_decoders import Parsed, Spelled, missing_columns
from dstream.values.fields import is_typed_dict

__all__ = ["maker_of_many", "maker_of_many_rows", "maker_of_objects", "maker_of_rows", "takes_in_order"]


def maker_of_objects(form: ItemDecoder) -> Callable[[Any], Any]:
    """Return a function that makes the item of a dictionary, as `form.made` does."""
    # Without fields, an item that is no dictionary would not be detected.
    if isinstance(form, ModelDecoder) or not form.fields:
        return form.made
    forms = {name: each for name, _, each, _ in form.fields}
    taking = [f"a{index} = value[a{index}_name]" for index in range(len(forms))]
    return _compiled(form.kind, forms, taking, form.made, empty_is_none=False)


def maker_of_rows(
    form: ItemDecoder, names: Sequence[str], *, empty_is_none: bool = False
) -> Callable[[Sequence[Any]], Any]:
    """Return a function that makes the item of the values of these columns, one for each name.

    Fields without a column are missing, and other columns are ignored.

    Args:
        form: the decoder of the item.
        names: the names of the columns.
        empty_is_none: the values are strings, and an empty string is None.
    """

    def made(row: Sequence[Any]) -> Any:
        values = [value or None for value in row] if empty_is_none else row
        return form.made(dict(zip(names, values, strict=True)))

    if isinstance(form, ModelDecoder) or missing_columns(form, names):
        return made
    forms = {name: each for name, _, each, _ in form.fields if name in names}
    places = {name: f"a{index}" for index, name in enumerate(forms)}
    taking = [f"[{', '.join(places.get(name, '_') for name in names)}] = value"]
    return _compiled(form.kind, forms, taking, made, empty_is_none=empty_is_none)


def _compiled(
    kind: Any, forms: Mapping[str, Decoder], taking: list[str], slowly: Callable[[Any], Any], *, empty_is_none: bool
) -> Callable[[Any], Any]:
    """Write and compile a function.

    Args:
        kind: the class of the item.
        forms: the decoders of the present fields, by their names.
        taking: the lines that assign the value of field `i` to `a<i>`.
        slowly: decodes what does not fit.
        empty_is_none: an empty string is None.
    """
    # With the name of this module: otherwise its frames would count as frames of a function of the user's.
    known: dict[str, Any] = {"__name__": __name__, "kind": kind, "slowly": slowly}
    made = [_expression(form, f"a{index}", known, empty_is_none) for index, form in enumerate(forms.values())]
    known.update((f"a{index}_name", name) for index, name in enumerate(forms))
    making = _making(kind, forms, made, empty_is_none)
    if making is None:
        return slowly
    body = [f"        {line}" for line in (*taking, *making)]
    lines = ["def make(value):", "    try:", *body, "    except Exception:", "        return slowly(value)"]
    return types.FunctionType(_code("\n".join(lines)), known)


@functools.lru_cache(maxsize=256)
def _code(source: str) -> types.CodeType:
    module = compile(source, "<a function that makes items of records>", "exec")
    return next(each for each in module.co_consts if isinstance(each, types.CodeType))


def _expression(form: Decoder, value: str, known: dict[str, Any], empty_is_none: bool) -> str:
    """Return code that makes the value of a field, or raises if it does not fit; its names are added to `known`."""
    if isinstance(form, OptionalDecoder):
        return _of_one(form.form, value, known, empty_is_none)
    if isinstance(form, UnionDecoder) and form.present is not None:
        is_none = f"not {value}" if empty_is_none else f"{value} is None"
        return f"None if {is_none} else {_of_one(form.present, value, known, empty_is_none)}"
    return _of_one(form, value, known, empty_is_none)


def _of_one(form: Decoder, value: str, known: dict[str, Any], empty_is_none: bool) -> str:
    made, own = f"{value}_made", fitting(form)
    if empty_is_none and not isinstance(form, Parsed | Spelled):
        known[made] = form.made
        return f"{made}({value} or None)"
    match form:
        case Parsed() if own is str and empty_is_none:
            known[made] = form.made
            return f"({value} or {made}(None))"
        case Parsed(kind=kind) if kind is int:
            known[made] = form.parse
            return f"(int({value}) if {value}.isdecimal() else {made}({value}))"
        case Parsed(kind=kind) if kind is float:
            known[made] = form.parse
            is_tight = f"'_' not in {value} and {value}.strip() == {value}"
            number = f"{value}_number"  # The slow path decodes overflows.
            return f"({number} if {is_tight} and -1e999 < ({number} := float({value})) < 1e999 else {made}({value}))"
        case Parsed() if own is None:
            known[made] = form.parse
            return f"{made}({value})"
        case Made(accepted=(only,)) if only is str:
            known[made], own = form.make, form.kind
        case Fixed(values=values) | Spelled(fixed=Fixed(values=values)) if all(type(each) is str for each, _ in values):
            known[made] = dict(values)
            return f"{made}[{value}]"
        case _:
            known[made] = form.made
    if own is None:
        return f"{made}({value})"
    known[f"{value}_own"] = own
    return f"({value} if type({value}) is {value}_own else {made}({value}))"


def _making(kind: Any, forms: Mapping[str, Decoder], made: list[str], empty_is_none: bool) -> list[str] | None:
    """Return the lines that make the item of the values of its fields; None if these cannot be written as arguments."""
    if not any(isinstance(form, OptionalDecoder) for form in forms.values()):
        call = _call(kind, list(forms), made)
        return None if call is None else [f"return {call}"]
    setting = [
        f"{_if_there(form, f'a{index}', empty_is_none)}found[a{index}_name] = {each}"
        for index, (form, each) in enumerate(zip(forms.values(), made, strict=True))
    ]
    return ["found = {}", *setting, "return found"]


def _if_there(form: Decoder, value: str, empty_is_none: bool) -> str:
    if not isinstance(form, OptionalDecoder):
        return ""
    return f"if {value}: " if empty_is_none else f"if {value} is not None: "


def _call(kind: Any, names: list[str], made: list[str]) -> str | None:
    """Return the call of the kind; None if its fields cannot be written as arguments."""
    if is_typed_dict(kind):
        return "{" + ", ".join(f"a{index}_name: {each}" for index, each in enumerate(made)) + "}"
    if takes_in_order(kind, names):
        return f"kind({', '.join(made)})"
    if all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
        return f"kind({', '.join(f'{name}={each}' for name, each in zip(names, made, strict=True))})"
    return None


def takes_in_order(kind: Any, names: list[str]) -> bool:
    """Return whether a kind is called with the values of these fields, one after another."""
    try:
        parameters = list(inspect.signature(kind).parameters.values())[: len(names)]
    # Some classes in C have no signature.
    except (ValueError, TypeError):
        return False
    return [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD] == names


Convert: TypeAlias = Callable[[Sequence[str]], Iterable[Any]]
"""Function that returns a value for each string of a column, or raises if one does not fit."""


def maker_of_many_rows(
    form: ItemDecoder, names: Sequence[str], make: Callable[[Sequence[str]], Any]
) -> Callable[[Sequence[Sequence[str]]], list[Any]]:
    """Return a function that makes the items of the first rows, up to a row that does not fit directly.

    An empty string is None.

    Args:
        form: the decoder of the items.
        names: the names of the columns.
        make: makes the item of one row, if columns cannot be used.
    """
    if isinstance(form, ModelDecoder) or missing_columns(form, names):
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
    """Return a function that calls `make` for each value, up to a value for which it raises."""

    def made(values: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        with contextlib.suppress(Exception):
            found.extend(map(make, values))  # Results before an exception remain in the list.
        return found

    return made


def _convert(form: Decoder) -> Convert:
    if isinstance(form, UnionDecoder) and form.present is not None:
        return _or_none(form.present)
    if not isinstance(form, Parsed):
        return lambda column: map(form.made, [text or None for text in column])
    if form.kind is str:
        return _texts
    if form.kind is int or form.kind is float:
        return _numbers(form.kind)
    return lambda column: map(form.parse, column)


def _or_none(form: Decoder) -> Convert:
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
    """Refuse numbers that only Python reads, underscores and spaces around them, as the forms do."""

    def converted(column: Sequence[str]) -> Iterable[Any]:
        joined = "".join(column)
        # One check of the joined strings costs less than one check each.
        if "_" in joined or "".join(joined.split()) != joined:
            raise ValueError("an underscore or a space")
        return map(kind, column) if kind is int else _finite(list(map(float, column)))

    return converted


def _finite(numbers: list[float]) -> list[float]:
    """Refuse infinity, as which float() reads numbers that are too large for it."""
    # A finite sum has no infinite term, so that the list is rarely searched.
    if not math.isfinite(sum(numbers)) and (math.inf in numbers or -math.inf in numbers):
        raise ValueError("an infinity, or a number that is too large")
    return numbers
