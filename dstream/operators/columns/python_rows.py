"""Evaluation of an expression by Python, row by row, between columns.

What no column can give exactly is what Python gives for each row. The rest of a step, and the steps around it, stay in
columns. Of strings and ints that repeat, Python is asked once for each distinct value.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.base.records import record, remembered
from dstream.expressions.effects import ChangedInPlace
from dstream.expressions.resolution import is_plain_enumeration
from dstream.expressions.tree import (
    Applied,
    Argument,
    Built,
    Called,
    Choice,
    Comprehension,
    Display,
    Expression,
    Formatted,
    Let,
    Local,
    Method,
    Routine,
    Text,
    is_leaf,
    rewritten,
)
from dstream.operators.columns.built_rows import has_plain_operators
from dstream.operators.columns.capabilities import is_part
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.encoded_calls import encoded_results
from dstream.operators.columns.entries import check_identities
from dstream.operators.columns.strings import StringLists, Strings, numbers_of_array
from dstream.operators.columns.values import (
    Bools,
    Column,
    ConstantColumn,
    Floats,
    Ints,
    NotColumnar,
    Objects,
    PythonRaises,
    Tuples,
    column_of,
    items_of,
    rows_at,
    size_of_column,
)
from dstream.operators.rows.forms import Form
from dstream.operators.rows.syntax import FUNCTIONS, form_of, syntax_of, with_syntax

__all__ = ["PythonRaises", "are_scalars", "has_nan", "root_of_path", "rows_by_python"]


def rows_by_python(expression: Expression, leaf_of: Callable[[Expression], Column | None]) -> Column:
    """Return what Python gives for each row.

    Args:
        expression: what is evaluated.
        leaf_of: returns the column of a part of it that is known; None for other parts.

    Raises:
        PythonRaises: it does for one of the rows.
        NotColumnar: a part has objects whose operators may have side effects, or the results may take much memory.
    """
    split, columns = _split(expression, leaf_of)
    if not columns or not all(map(_is_harmless, columns)) or _may_warn(expression):
        raise NotColumnar("objects whose operators may have side effects")
    if not all(map(has_plain_operators, _classes_built(expression))):
        raise NotColumnar("an object of a class with code of its own")
    if not _takes_values(split.inner):
        check_identities(columns)
    _check_containers(columns)
    try:
        form, constants = _form_of(split.inner)
        loop = _loop(form, tuple(range(_FIRST_LEAF, _FIRST_LEAF + len(columns))))
    except (SyntaxError, RecursionError, ValueError) as problem:
        raise NotColumnar(f"syntax that Python does not take: {problem}") from None
    run = functools.partial(_evaluated, loop, constants, _may_grow(expression))
    is_plain = not _makes_objects(split.inner)
    if len(columns) == 1 and is_plain and (found := _of_distinct(run, columns[0])) is not None:
        return found
    if all(isinstance(part, Argument) for part, is_column in split.asked if is_column):
        raise NotColumnar("items that a loop evaluates as fast")
    return _column(run([items_of(each) for each in columns]), is_plain=is_plain)


_FIRST_LEAF = 1_000_000
"""Numbers of variables from here on are those of known columns."""


@record(eq=False)
class _Split:
    """An expression, taken apart into parts that are columns and what Python evaluates of them.

    Attributes:
        inner: what Python evaluates, with a variable for each column.
        asked: the parts of which it was asked whether there is a column, in order, and whether there is.
    """

    inner: Expression
    asked: list[tuple[Expression, bool]]

    def columns(self, leaf_of: Callable[[Expression], Column | None]) -> list[Column] | None:
        """Return the columns of other rows; None if it is other parts that have one."""
        found = []
        for part, is_column in self.asked:
            if ((column := leaf_of(part)) is not None) is not is_column:
                return None
            if column is not None:
                found.append(column)
        return found


def _split(expression: Expression, leaf_of: Callable[[Expression], Column | None]) -> tuple[_Split, list[Column]]:
    """Take an expression apart, most often as for the block before."""
    before = _splits(expression)
    for split in before:
        if (columns := split.columns(leaf_of)) is not None:
            return split, columns
    split, columns = _new_split(expression, leaf_of)
    before[:] = [split]
    return split, columns


@remembered
def _splits(expression: Expression) -> list[_Split]:
    return []


def _new_split(expression: Expression, leaf_of: Callable[[Expression], Column | None]) -> tuple[_Split, list[Column]]:
    # Equal parts are one, so that a row has one object for both: a list, or a NaN, is in a tuple that has it.
    leaves: dict[Expression, tuple[Local, Column]] = {}
    asked: list[tuple[Expression, bool]] = []

    def as_leaf(part: Expression) -> Expression | None:
        if part not in leaves:
            column = leaf_of(part)
            asked.append((part, column is not None))
            if column is None:
                return None
            leaves[part] = Local(_FIRST_LEAF + len(leaves)), column
        return leaves[part][0]

    # `Formatted`, the content of braces, is only valid inside a `Text`.
    inner = rewritten(Text((expression,)) if isinstance(expression, Formatted) else expression, as_leaf)
    return _Split(inner, asked), [column for _, column in leaves.values()]


_form_of = remembered(form_of)


def root_of_path(part: Expression) -> Expression:
    """Return that of which an expression is a part, by attributes, and by keys and places that are constants."""
    while is_part(part):
        part = part.of  # type: ignore[attr-defined]
    return part


def _is_harmless(column: Column) -> bool:
    """Return whether the values of a column are of builtin types, which have no code of a user's."""
    if isinstance(column, Tuples):
        return all(map(_is_harmless, column.members))
    if isinstance(column, Objects):
        return column.is_plain
    return isinstance(column, Ints | Floats | Bools | Strings | StringLists | Encoded | ConstantColumn)


@remembered
def _makes_objects(expression: Expression) -> bool:
    return any(kind not in (dict, list) for kind in _classes_built(expression))


@remembered
def _takes_values(expression: Expression) -> bool:
    return all(map(_is_of_values, expression.walk()))


def _is_of_values(part: Expression) -> bool:
    """Return whether a part takes numbers and strings by their values, whichever objects they are."""
    if isinstance(part, Applied):
        return part.operator not in ("in", "not in")
    return is_leaf(part) or isinstance(part, Choice | Let | Text | Formatted)


def _check_containers(columns: Sequence[Column]) -> None:
    """Check that no NaN is in a container and in another column, too: Python may have one object in both.

    Comparisons of containers, and `in`, find the same NaN; each column has one of its own.

    Raises:
        NotColumnar: there may be one.
    """
    if len(columns) == 1:
        return
    has_containers = any(isinstance(each, Objects) and not are_scalars(each.values) for each in columns)
    if has_containers and sum(map(has_nan, columns)) > 1:
        raise NotColumnar("a NaN that may be in a container, too")


def has_nan(column: Column) -> bool:
    """Return whether a column has a NaN, or objects that may be or contain one."""
    if isinstance(column, Floats):
        return bool(np.isnan(column.values).any())
    if isinstance(column, Tuples):
        return any(map(has_nan, column.members))
    if isinstance(column, ConstantColumn):
        return _may_have_nan(column.value)
    return isinstance(column, Objects) and any(map(_may_have_nan, column.values))


def _may_have_nan(value: Any) -> bool:
    """Return whether a value is a NaN, or has one, or may have one."""
    kind = type(value)
    if kind is float:
        return bool(value != value)
    if kind is dict:
        return any(map(_may_have_nan, (*value, *value.values())))
    return any(map(_may_have_nan, value)) if kind in _CONTAINERS else kind not in _SHARED


_CONTAINERS = (list, tuple, set, frozenset)
_WITH_MEMBERS = frozenset({*_CONTAINERS, dict})


@remembered
def _may_warn(expression: Expression) -> bool:
    # Python 3.12 warns of an inverted bool, at the line of the user.
    return any(isinstance(each, Applied) and each.operator == "invert" for each in expression.walk())


@remembered
def _classes_built(expression: Expression) -> tuple[type, ...]:
    return tuple(each.kind for each in expression.walk() if isinstance(each, Built))


Run = Callable[[list[list[Any]]], list[Any]]


def _of_distinct(run: Run, column: Column) -> Column | None:
    """Return what Python gives for each distinct value, in the rows that have it; None if there are many."""
    if (coded := _coded(column)) is None:
        return None
    distinct, codes = coded
    found = _column(run([distinct]), is_plain=True)
    if isinstance(found, Objects):
        with contextlib.suppress(NotColumnar):
            return encoded_results(found.values, np.asarray(codes, np.int64))
    if not isinstance(found, Objects):
        return rows_at(found, codes)
    # Each row has a list or a dictionary of its own, and a NaN that is no other one.
    if not all(kind in _SHARED or is_plain_enumeration(kind) for kind in set(map(type, found.values))):
        return None
    return Objects([found.values[code] for code in codes.tolist()], is_plain=True)


def are_scalars(values: Sequence[Any]) -> bool:
    """Return whether values contain no others."""
    return set(map(type, values)) <= _SHARED | {float}


_SHARED = frozenset({int, bool, str, bytes, type(None)})


def _column(values: list[Any], *, is_plain: bool) -> Column:
    kinds = set(map(type, values))
    # One string in many rows takes memory once; in a column it would take it in each of them.
    if kinds in _OF_COLUMNS and (kinds != {str} or sum(map(len, values)) <= _MOST_MADE // 4):
        try:
            return column_of(values)
        except NotColumnar:
            pass
    return Objects(values, is_plain)


_OF_COLUMNS = ({int}, {float}, {bool}, {str})


def _coded(column: Column) -> tuple[list[Any], NDArray[np.intp]] | None:
    """Return the distinct values of a column and the number of that of each row; None if they are not few."""
    if isinstance(column, Encoded):
        used = column.compact()
        return used.objects, used.codes
    size = size_of_column(column)
    if size < _FEWEST_ROWS:
        return None
    if isinstance(column, Ints):
        return _coded_ints(column) if 0 <= column.greatest - column.least < size // _REPEATED else None
    return _coded_strings(column) if isinstance(column, Strings) else None


_FEWEST_ROWS = 256
_REPEATED = 4
"""With this number of rows for each value, the search for distinct ones is worth its 15 ns for each row."""
_SAMPLE = 512


def _coded_ints(column: Ints) -> tuple[list[Any], NDArray[np.intp]]:
    places = column.values - column.least
    is_there = np.bincount(places, minlength=1) > 0
    return (np.flatnonzero(is_there) + column.least).tolist(), (np.cumsum(is_there) - 1)[places]


def _coded_strings(column: Strings) -> tuple[list[Any], NDArray[np.intp]] | None:
    if not _is_repeated(column):
        return None
    array = column.values
    encoded = array.dictionary_encode()
    if len(encoded.dictionary) > len(array) // _REPEATED:
        return None
    return encoded.dictionary.to_pylist(), numbers_of_array(encoded.indices)


def _is_repeated(column: Strings) -> bool:
    """Return whether the first strings are seldom different; joined ones stay so."""
    if column.is_joined:
        sample = (column.joined or b"")[:_SAMPLED_BYTES].split(b"\n", _SAMPLE)[:_SAMPLE]
        return len(set(sample)) <= len(sample) // 2
    first = column.values.slice(0, _SAMPLE)
    return len(first.dictionary_encode().dictionary) <= len(first) // 2


_SAMPLED_BYTES = 2**16


def _evaluated(loop: Any, constants: list[Any], may_grow: bool, lists: list[list[Any]]) -> list[Any]:
    try:
        return _in_portions(loop, constants, lists) if may_grow else loop(lists, constants)
    except NotColumnar:
        raise
    except ChangedInPlace:
        raise NotColumnar("a value that an operator changes in place") from None
    except Exception as error:
        raise PythonRaises(f"Python raises {type(error).__name__}") from None


def _in_portions(loop: Any, constants: list[Any], lists: list[list[Any]]) -> list[Any]:
    """Evaluate some rows at a time, and look how large their results are: a loop makes one after another."""
    found: list[Any] = []
    size, rows = 0, 16
    while len(found) < len(lists[0]):
        made = loop([each[len(found) : len(found) + rows] for each in lists], constants)
        size += _size_of_all(made)
        found += made
        if size > _MOST_MADE:
            raise NotColumnar("results that take much memory together")
        rows = min(1024, max(1, _MOST_MADE * len(found) // max(size, 1)))
    return found


def _size_of_all(values: list[Any]) -> int:
    """Return the bytes of values and of their members, a level at a time by loops in C; of much it ends early.

    A sample is not enough: one member of a thousand may take more than all others.
    """
    size = 0
    while values and size <= _MOST_MADE:
        size += sum(map(sys.getsizeof, values))
        values = [] if _WITH_MEMBERS.isdisjoint(map(type, values)) else _members(values)
    return size


def _members(values: list[Any]) -> list[Any]:
    dicts = [each for each in values if type(each) is dict]
    others = [each for each in values if type(each) in _CONTAINERS]
    return list(chain.from_iterable([*others, *dicts, *map(dict.values, dicts)]))


_MOST_MADE = 2**27


@remembered
def _may_grow(expression: Expression) -> bool:
    """Return whether results may be much larger than what they are made of."""
    return any(map(_is_growing, expression.walk()))


def _is_growing(part: Expression) -> bool:
    match part:
        case Applied(sign, _):
            return sign in ("+", "*", "**", "<<", "%")
        case Method(_, name, _):
            return name not in _NOT_GROWING
        case Called(function, _):
            return function in _GROWING or "." in function
        case Formatted(_, _, spec):
            return spec != ""
    return isinstance(part, Comprehension | Display | Routine)


_GROWING = ("bytes", "dict", "format", "frozenset", "list", "pow", "range", "set", "sorted", "sum", "tuple")

_NOT_GROWING = frozenset(
    {
        *("casefold", "count", "endswith", "find", "get", "group", "groups", "index", "lower", "lstrip", "match"),
        *(
            "fullmatch",
            "search",
            "findall",
            "partition",
            "rpartition",
            "removeprefix",
            "removesuffix",
            "rfind",
            "rindex",
        ),
        *("rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper", "capitalize"),
        *("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric"),
        *("isprintable", "isspace", "istitle", "isupper", "isoformat", "weekday", "isoweekday", "date", "time"),
    }
)


@functools.lru_cache(maxsize=512)
def _loop(form: Form, leaves: Sequence[int]) -> Callable[[list[list[Any]], list[Any]], list[Any]]:
    """Compile a loop; `exec` sees generated names only, never a user's text."""
    constants = [f"c{number}" for number in range(form.constants)]
    names = ", ".join(f"l{number}" for number in leaves)
    unpacked = f"[{', '.join(constants)}] = constants" if constants else "pass"
    rows = "lists[0]" if len(leaves) == 1 else "zip(*lists)"
    source = f"def loop(lists, constants):\n {unpacked}\n return [value() for {names} in {rows}]"
    tree = with_syntax(source, {"value": (syntax_of(form, "", ["", *constants]), False)})
    namespace: dict[str, Any] = {"__name__": __name__, **FUNCTIONS}
    exec(compile(tree, "<dstream rows>", "exec"), namespace)
    loop: Callable[..., list[Any]] = namespace["loop"]
    return loop
