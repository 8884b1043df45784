"""Evaluation of an `Expression` on columns, with the values, types and order of Python."""

from __future__ import annotations

import enum
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.base.records import record
from dstream.expressions import (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Changed,
    Choice,
    Constant,
    Expression,
    Formatted,
    ForTuples,
    Indexed,
    Let,
    Local,
    Method,
    Text,
    Together,
)
from dstream.expressions.effects import IN_PLACE, KNOWN, may_keep, may_share
from dstream.expressions.tree import is_leaf
from dstream.operators.columns.arithmetic import (
    OPERATORS,
    by_python,
    compared,
    comparisons,
    extreme,
    float_operators,
    float_unaries,
    floats,
    int_operators,
    int_unaries,
    is_none,
    made,
    merged_columns,
    quotient_of_ints,
    truth,
)
from dstream.operators.columns.arrow_rows import attribute_of, member_of
from dstream.operators.columns.built_rows import RowsWithParts, built_rows, changed_rows, dicts_of_rows, tuples_of_lists
from dstream.operators.columns.capabilities import CALLED, EACH_BY_PYTHON, OF_TIMES, are_constants, is_left_to_python
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.encoded_calls import as_plain, by_distinct
from dstream.operators.columns.entries import Entries, check_identities, class_of, entries_of, with_parts
from dstream.operators.columns.python_rows import PythonRaises, are_scalars, has_nan, root_of_path, rows_by_python
from dstream.operators.columns.string_operators import (
    applied_to_texts,
    contained_among,
    length_of,
    member_of_lists,
    method_of,
    number_of_texts,
    slice_of,
    text_of,
    text_together,
)
from dstream.operators.columns.strings import StringLists, Strings
from dstream.operators.columns.values import (
    Bools,
    Column,
    ConstantColumn,
    Floats,
    Ints,
    NotColumnar,
    Objects,
    Tuples,
    items_of,
    numbers,
    rows_of,
    size_of_column,
    whole,
)
from dstream.operators.rows.blocks import LazyRows

__all__ = ["evaluated"]


_BELOW_2_TO_63 = 2.0**63


def evaluated(expression: Expression, columns: Sequence[Column]) -> Column:
    """Return the results of the expression for each row of its arguments, which have one length.

    Raises:
        NotColumnar: it cannot be said that Python gives the same for all of these rows, or Python would raise.
    """
    if any(isinstance(each, LazyRows) and not each.is_evaluated for each in columns):
        raise NotColumnar("functions get items that are not made")
    if isinstance(expression, ForTuples):
        return evaluated(expression.within, (with_parts(columns[0], expression.size), *columns[1:]))
    # Floats that overflow become infinite in Python too, without a warning.
    with np.errstate(all="ignore"):
        size = size_of_column(columns[0])
        found = _value(expression, _Bindings(tuple(columns), {}, size, may_share(expression), may_keep(expression)))
    assert size_of_column(found) == size, "there is a result for each row"
    return found


@record
class _Bindings:
    """Rows, and the values that have names in them.

    Attributes:
        arguments: of the function.
        named: what each `Let` gave a name, by its number.
        size: how many rows there are.
        may_share: one object may be twice in a result.
        may_keep: one object may be twice in a result, if an operator gives a container with members of its operands.
        by_python: what Python gave for parts of the expression, by their ids.
    """

    arguments: tuple[Column, ...]
    named: Mapping[int, Column]
    size: int
    may_share: bool
    may_keep: bool
    by_python: dict[int, Column] = field(default_factory=dict)

    def rows(self, chosen: NDArray[np.bool_]) -> _Bindings:
        """Return some of the rows."""
        arguments = tuple(rows_of(each, chosen) for each in self.arguments)
        named = {number: rows_of(each, chosen) for number, each in self.named.items()}
        return _Bindings(arguments, named, int(np.count_nonzero(chosen)), self.may_share, self.may_keep)


def _value(expression: Expression, given: _Bindings) -> Column:
    """Return the results of a part of an expression: in columns, or else by Python for each row."""
    if is_left_to_python(expression):
        known = _known(given, expression)
        return _by_rows(expression, given) if known is None else known
    try:
        return _in_columns(expression, given)
    except NotColumnar as problem:
        if is_leaf(expression) or isinstance(problem, PythonRaises):
            raise
        return _by_rows(expression, given, problem)


def _by_rows(expression: Expression, given: _Bindings, reason: NotColumnar | None = None) -> Column:
    try:
        found = given.by_python[id(expression)] = rows_by_python(expression, partial(_known, given))
    except NotColumnar as problem:
        raise (problem if reason is None or isinstance(problem, PythonRaises) else reason) from None
    return found


def _known(given: _Bindings, part: Expression) -> Column | None:
    """Return the column of a part that needs no evaluation; None: Python evaluates it."""
    found = given.by_python.get(id(part))
    # Python makes a container with a NaN once more, so that it contains the same object as the members beside it.
    if found is not None and not (isinstance(found, Objects) and has_nan(found)):
        return found
    root = root_of_path(part)
    # A variable without a column is one inside of the part that Python evaluates.
    if not isinstance(root, Argument) and not (isinstance(root, Local) and root.number in given.named):
        return None
    try:
        found = _in_columns(part, given)
    except NotColumnar:
        if is_leaf(part):
            raise
        return None
    if isinstance(found, StringLists) and given.may_share:
        raise NotColumnar("a list that may be in a tuple twice")
    return None if isinstance(found, LazyRows) and not is_leaf(part) else found


def _in_columns(expression: Expression, given: _Bindings) -> Column:
    match expression:
        case Argument(place):
            return given.arguments[place]
        case Constant(value):
            return ConstantColumn(value, given.size)
        case Applied("and" | "or" as word, operands):
            return _as_far_as_needed(word, operands, given)
        case Applied(sign, (Called("type", (of,)), Constant(kinds))):
            return _is_of_type(_value(of, given), sign, kinds)
        case Applied(sign, operands):
            return _applied(sign, [_value(each, given) for each in operands])
        case Choice(condition, chosen, otherwise):
            return _chosen(truth(_value(condition, given)), chosen, otherwise, given)
        case Attribute(Constant(enum.Enum() as member), ("name" | "value") as name):
            return ConstantColumn(getattr(member, name), given.size)
        case Attribute(of, name):
            return attribute_of(_value(of, given), name)
        case Indexed(of, Called("slice", (_, _, _) as bounds)):
            return slice_of(_value(of, given), [_value(each, given) for each in bounds])
        case Indexed(Constant(dict() | list() as container), key) if not isinstance(key, Constant):
            return _looked_up(Indexed(Constant(container), Local(0)), key, given)
        case Method(Constant(dict() | list() | set()) as container, name, (key, *others)) if are_constants(others):
            return _looked_up(Method(container, name, (Local(0), *others)), key, given)
        case Indexed(of, index):
            return _indexed(_value(of, given), _value(index, given))
        case Together(members):
            return _together(tuple(_value(each, given) for each in members), given)
        case Built(kind, names, values):
            return built_rows(kind, names, _apart([_value(each, given) for each in values], given), given.size)
        case Changed(of, kind, names, values):
            rows, *columns = _apart([_value(each, given) for each in (of, *values)], given)
            return changed_rows(rows, kind, names, columns)
        case Method(of, "_replace", values, names):
            rows, *columns = _apart([_value(each, given) for each in (of, *values)], given)
            return changed_rows(rows, "named tuple", names, columns)
        case Called("dstream.Entry", (pair,)):
            return entries_of(_value(pair, given))
        case Called("dataclasses.asdict", (of,)):
            return dicts_of_rows(_value(of, given))
        case Called("dstream.is_of", (of, Constant(kind))):
            return ConstantColumn(class_of(_value(of, given)) is kind, given.size)
        case Called("isinstance", (of, Constant(kinds))):
            return ConstantColumn(issubclass(_kind_of(_value(of, given)), kinds), given.size)
        case Called(function, arguments) if function in _IN_PLACE:
            return _in_place(_IN_PLACE[function], [_value(each, given) for each in arguments])
        case Called(function, arguments):
            return _called(function, [_value(each, given) for each in arguments])
        case Method(of, name, arguments, keywords):
            return method_of(name, [_value(each, given) for each in (of, *arguments)], keywords)
        case Text(members):
            return text_together([_value(each, given) for each in members])
        case Formatted(of, "" | "s", ""):
            return text_of(_value(of, given))
        case Let(value, number, within):
            named = {**given.named, number: _value(value, given)}
            return _value(within, replace(given, named=named))
        case Local(number):
            return given.named[number]
    raise NotColumnar(f"{type(expression).__name__} is left to Python")


_IN_PLACE: dict[str, str] = {f"operator.{name}": sign for sign, name in IN_PLACE.items()}


def _in_place(sign: str, operands: list[Column]) -> Column:
    """Return what `+=` gives: of numbers and strings, which cannot be changed, the same as `+`."""
    if not all(isinstance(each, Ints | Floats | Bools | Strings | Encoded | ConstantColumn) for each in operands):
        raise NotColumnar("an operator that may change an object")
    return _applied(sign, operands)


def _is_of_type(of: Column, sign: str, kinds: Any) -> Column:
    kind, wanted = _kind_of(of), kinds if isinstance(kinds, tuple) else (kinds,)
    return ConstantColumn(any(kind is each for each in wanted) is (sign in ("is", "==", "in")), size_of_column(of))


def _kind_of(of: Column) -> type:
    kind = next((kind for column, kind in _KINDS if isinstance(of, column)), None)
    if kind is None:
        raise NotColumnar("values of several types")
    return kind


_KINDS: tuple[tuple[type, type], ...] = ((Ints, int), (Floats, float), (Bools, bool), (Strings, str))


def _looked_up(expression: Expression, key: Expression, given: _Bindings) -> Column:
    """Return what Python finds in a captured container by a key, which is local 0."""
    keys = _value(key, given)
    if isinstance(keys, LazyRows):
        raise NotColumnar("objects as keys")
    return rows_by_python(expression, lambda part: keys if part == Local(0) else None)


def _together(members: tuple[Column, ...], given: _Bindings) -> Column:
    values = [each.value for each in members if isinstance(each, ConstantColumn)]
    if len(values) == len(members):
        return ConstantColumn(tuple(values), given.size)
    return Tuples(tuple(_apart(members, given)), given.size)


def _apart(members: Sequence[Column], given: _Bindings) -> Sequence[Column]:
    """Return the members of a new object, if no object may be there twice."""
    if given.may_keep and any(isinstance(each, Objects) and not are_scalars(each.values) for each in members):
        raise NotColumnar("objects that may contain other members of the tuple")
    if given.may_share:
        check_identities(members)
    return members


def _as_far_as_needed(word: str, operands: Sequence[Expression], given: _Bindings) -> Column:
    """Evaluate each operand in those rows alone in which Python does."""
    first, *others = operands
    found = _value(first, given)
    if not others:
        return found
    is_true = truth(found)
    decided = ~is_true if word == "and" else is_true
    # What no row needs is not evaluated: it may fail, or be no column.
    if decided.all():
        return found
    if not decided.any():
        return _as_far_as_needed(word, others, given)
    rest = _as_far_as_needed(word, others, given.rows(~decided))
    return merged_columns(decided, rows_of(found, decided), rest)


def _chosen(condition: Any, chosen: Expression, otherwise: Expression, given: _Bindings) -> Column:
    if not condition.any():
        return _value(otherwise, given)
    if condition.all():
        return _value(chosen, given)
    # Each side sees its own rows alone: in the others Python does not evaluate it, and it may fail.
    first = _value(chosen, given.rows(condition))
    return merged_columns(condition, first, _value(otherwise, given.rows(~condition)))


def _applied(sign: str, operands: list[Column]) -> Column:
    if all(isinstance(each, ConstantColumn) for each in operands) and not _warns(sign, operands[0]):
        return by_python(OPERATORS[sign], operands)
    if sign == "not":
        return Bools(~truth(operands[0]))
    if sign in ("is", "is not"):
        return is_none(*operands, is_wanted=sign == "is")
    if sign in ("in", "not in"):
        found = truth(contained_among(*operands))
        return Bools(found if sign == "in" else ~found)
    operands = list(map(as_plain, operands))
    if any(isinstance(each, Encoded) for each in operands) and sign != "invert":
        return by_distinct(OPERATORS[sign], operands)
    if any(isinstance(each, Strings) for each in operands):
        return applied_to_texts(sign, operands)
    if sign in comparisons:
        return compared(sign, *operands)
    if len(operands) == 1:
        return _unary(sign, numbers(operands[0]))
    return _arithmetic(sign, *map(numbers, operands))


def _warns(sign: str, operand: Column) -> bool:
    """Return whether it is a bool that is inverted: Python 3.12 warns of it, at the line of the user."""
    return sign == "invert" and isinstance(operand, ConstantColumn) and type(operand.value) is bool


def _arithmetic(sign: str, left: Ints | Floats | Bools, right: Ints | Floats | Bools) -> Column:
    if isinstance(left, Floats) or isinstance(right, Floats):
        if sign == "**":
            return _powers(left, right)
        if sign not in float_operators:
            raise NotColumnar(f"floats have no {sign}")
        return float_operators[sign](floats(left), floats(right))
    if sign in _OF_BOOLS and isinstance(left, Bools) and isinstance(right, Bools):
        return Bools(_OF_BOOLS[sign](left.values, right.values))
    if sign == "/":
        return quotient_of_ints(whole(left), whole(right))
    return int_operators[sign](whole(left), whole(right))


_OF_BOOLS: dict[str, Callable[[Any, Any], Any]] = {"&": np.logical_and, "|": np.logical_or, "^": np.logical_xor}


def _powers(left: Ints | Floats | Bools, right: Ints | Floats | Bools) -> Column:
    """Raise floats to a power in Python: other libraries return other digits."""
    bases, exponents = (each.tolist() for each in np.broadcast_arrays(left.values, right.values))
    return made(lambda: list(map(operator.pow, bases, exponents)))


def _unary(sign: str, of: Ints | Floats | Bools) -> Column:
    if isinstance(of, Floats):
        if sign not in float_unaries:
            raise NotColumnar(f"floats have no {sign}")
        return float_unaries[sign](of)
    if sign == "invert" and isinstance(of, Bools):
        # `~True` is -2 in Python, where NumPy inverts to False.
        raise NotColumnar("a bool inverted")
    return int_unaries[sign](whole(of))


def _indexed(of: Column, index: Column) -> Column:
    if isinstance(of, ConstantColumn) and isinstance(index, ConstantColumn):
        return by_python(operator.getitem, [of, index])
    if isinstance(of, RowsWithParts) and isinstance(index, ConstantColumn):
        return member_of(of, index.value)
    if isinstance(of, StringLists):
        return member_of_lists(of, index)
    if not isinstance(of, Tuples | Entries) or not isinstance(index, ConstantColumn) or type(index.value) is not int:
        raise NotColumnar("an index of something else than a tuple")
    if not -len(of.members) <= index.value < len(of.members):
        raise NotColumnar("an index that is out of range")
    return of.members[index.value]


def _called(function: str, arguments: list[Column]) -> Column:
    if function not in CALLED or not arguments:
        raise NotColumnar(f"{function} is left to Python")
    if all(isinstance(each, ConstantColumn) for each in arguments):
        return by_python(KNOWN[function], arguments)
    arguments = list(map(as_plain, arguments))
    if function in OF_TIMES or any(isinstance(each, Encoded) for each in arguments):
        return by_distinct(KNOWN[function], arguments)
    if function.startswith("str."):
        if not isinstance(arguments[0], Strings):
            raise NotColumnar("a method of str on something else")
        return method_of(function.removeprefix("str."), arguments)
    if function in ("min", "max"):
        of_constants = _of_constants(function, members := _compared_ones(arguments))
        return extreme(function, members) if of_constants is None else of_constants
    if function in EACH_BY_PYTHON or (function == "round" and len(arguments) == 2):
        # NumPy (2.4) rounds 2.675 to 2.68; Python rounds the exact value, to 2.67.
        rows = list(map(items_of, map(_number_or_same, arguments)))
        return made(lambda: list(map(KNOWN[function], *rows)))
    if len(arguments) != 1:
        raise NotColumnar(f"{function} of {len(arguments)} arguments")
    if function == "str":
        return text_of(arguments[0])
    if function == "len":
        return length_of(arguments[0])
    if function == "bool":
        return Bools(truth(arguments[0]))
    if isinstance(arguments[0], Strings) and function in ("int", "float"):
        return number_of_texts(function, arguments[0])
    if function == "sum":
        return _sum(arguments[0])
    return _of_number(function, numbers(arguments[0]))


def _sum(column: Column) -> Column:
    """Add up the members of tuples, from the first one on.

    Raises:
        NotColumnar: they are none, or Python's own sum of floats is compensated.
    """
    column = tuples_of_lists(column)
    if not isinstance(column, Tuples) or sys.version_info >= (3, 12):
        raise NotColumnar("a sum that Python adds up")
    if (of_constants := _of_constants("sum", column.members)) is not None:
        return of_constants
    # From 0 on, as `sum` begins: 0 + -0.0 is 0.0.
    found: Column = numbers(ConstantColumn(0, column.size))
    for member in column.members:
        found = _arithmetic("+", numbers(found), numbers(member))
    return ConstantColumn(0, column.size) if not column.members else found


def _of_constants(function: str, members: Sequence[Column]) -> Column | None:
    """Return what a function gives for members that are the same in all rows; None if one differs, or there are none.

    As numbers they would have one value in place of one for each row.
    """
    if not members or not all(isinstance(each, ConstantColumn) for each in members):
        return None
    return by_python(lambda *values: KNOWN[function](values), list(members))


def _number_or_same(column: Column) -> Column:
    return column if isinstance(column, ConstantColumn) else numbers(column)


def _compared_ones(arguments: list[Column]) -> tuple[Column, ...]:
    """Return the arguments of `min`, or the members of its one argument."""
    if len(arguments) > 1:
        return tuple(arguments)
    among = tuples_of_lists(arguments[0]) if arguments else None
    if not isinstance(among, Tuples):
        raise NotColumnar("the least of what is no tuple")
    return among.members


def _of_number(function: str, of: Ints | Floats | Bools) -> Column:
    if function == "abs":
        return float_unaries["abs"](of) if isinstance(of, Floats) else int_unaries["abs"](whole(of))
    if function == "float":
        return floats(of)
    if function == "math.sqrt":
        return _root(floats(of))
    if not isinstance(of, Floats):
        return whole(of)
    # `rint` rounds half to even, as Python's `round` does.
    return _ints_of(np.trunc(of.values) if function == "int" else np.rint(of.values))


def _root(of: Floats) -> Floats:
    if np.any(of.values < 0):
        raise NotColumnar("the root of a negative number")
    return Floats(np.sqrt(of.values))


def _ints_of(values: Any) -> Ints:
    """Return floats without a fraction as ints."""
    if not np.size(values):
        return Ints(values.astype(np.int64), 0, 0)
    least, greatest = float(np.min(values)), float(np.max(values))  # Both are NaN if any is.
    if not -_BELOW_2_TO_63 <= least <= greatest < _BELOW_2_TO_63:
        raise NotColumnar("an int of more than 64 bits, or of an infinity or NaN")
    return Ints(values.astype(np.int64), int(least), int(greatest))
