"""`Expression`: the result of a pure function as a tree, and the order of its evaluation.

An expression describes the work of Python, operator by operator and in Python's order, without the types. It can be
pickled, contains no code of the user's, and two of them are equal if they describe the same.
"""

from __future__ import annotations

import enum
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Literal, TypeAlias

from dstream.base.records import Remembering, record, remembered

__all__ = [
    "Applied",
    "Argument",
    "Attribute",
    "Built",
    "Called",
    "Changed",
    "Choice",
    "Comprehension",
    "Constant",
    "Display",
    "Expression",
    "ForTuples",
    "Formatted",
    "Function",
    "Indexed",
    "Keyword",
    "Let",
    "Local",
    "Loop",
    "Method",
    "Operator",
    "Routine",
    "Spread",
    "Statement",
    "Text",
    "Together",
    "Tried",
    "is_leaf",
    "numbers_bound",
    "one_behind_another",
    "replaced",
    "rewritten",
    "substituted",
    "with_parts",
]


Operator: TypeAlias = Literal[
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "neg",
    "pos",
    "invert",
    "not",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "in",
    "not in",
    "is",
    "is not",
    "and",
    "or",
]
"""`neg`, `pos`, `invert` and `not` have one operand, `and` and `or` two or more, all others two.

`a < b < c` is `and` of two comparisons, of which the second has the very object `b` of the first, evaluated once. What
`is` and `is not` compare with is the constant None.
"""


@record
class Expression(Remembering):
    """The result of a pure function."""

    @remembered
    def parts(self) -> tuple[Expression, ...]:
        """Return the expressions that this one is made of, in the order in which Python may evaluate them."""
        held = (getattr(self, name) for name in _names_of(self))
        values = (value if type(value) is tuple else (value,) for value in held)
        return tuple(each for each in chain.from_iterable(values) if isinstance(each, Expression))

    def walk(self) -> Iterator[Expression]:
        """Return this expression and all inside of it, each behind those that contain it."""
        waiting: list[Expression] = [self]
        while waiting:
            each = waiting.pop()
            yield each
            # Reversed, since a stack returns its last element first.
            waiting.extend(reversed(each.parts()))

    def extent(self) -> tuple[int, int]:
        """Return how many expressions there are inside, with this one, and in how many levels."""
        size, levels = 0, 0
        # Level by level: a recursion would fail on the expressions that this is to find.
        level: tuple[Expression, ...] = (self,)
        while level:
            size, levels = size + len(level), levels + 1
            level = tuple(chain.from_iterable(each.parts() for each in level))
        return size, levels


def _names_of(expression: Expression) -> tuple[str, ...]:
    return expression.__match_args__


@record
class Argument(Expression):
    """An argument of the function, by its place from 0."""

    place: int


@record
class Constant(Expression):
    """A value that is the same for all items: an exact int, float, bool, str, bytes, None, or a tuple of such.

    The container of `in` may be a frozenset of them; the pattern of `re` is compiled. A captured list, dict or set of
    them occurs only where it is looked into, so that it is no part of a result.

    Two are equal if their values are and have one type: `1` is not `1.0`, nor `0.0` `-0.0`.
    """

    value: Any

    def __eq__(self, other: object) -> bool:
        # Not by `==` of the values: 1, 1.0 and True are equal, as 0.0 and -0.0 are.
        return isinstance(other, Constant) and _typed(self.value) == _typed(other.value)

    @remembered
    def __hash__(self) -> int:
        return hash(_typed(self.value))


def _typed(value: Any) -> tuple[Any, ...]:
    if type(value) is tuple:
        return tuple, *map(_typed, value)
    if type(value) is frozenset:
        return frozenset, frozenset(map(_typed, value))
    if type(value) is re.Pattern:
        return re.Pattern, *_typed(value.pattern), value.flags
    if type(value) in (dict, list, set) or isinstance(value, type | enum.Enum):
        return type(value), id(value)
    return type(value), repr(value)


@record
class Applied(Expression):
    """An operator on its operands; those of `and` and `or` are evaluated as far as Python does."""

    operator: Operator
    operands: tuple[Expression, ...]


@record
class Choice(Expression):
    """`chosen if condition else otherwise`; one of the two is evaluated."""

    condition: Expression
    chosen: Expression
    otherwise: Expression


@record
class Indexed(Expression):
    """`of[index]`."""

    of: Expression
    index: Expression


@record
class Attribute(Expression):
    """`of.name`."""

    of: Expression
    name: str


@record
class Called(Expression):
    """A function of `dstream.expressions.effects` on its arguments, by its name.

    Builtins: `abs`, `len`, ...; functions of modules: `math.sqrt`; methods of `str` that were called by way of their
    class, which take no other type: `str.lower`. `slice` also is the expression between brackets: `[start:stop:step]`.
    """

    function: str
    arguments: tuple[Expression, ...]


@record
class Method(Expression):
    """`of.name(*arguments)`, a method of a builtin type, most of them of `str`, that changes nothing.

    Attributes:
        keywords: the names of the last arguments.
    """

    of: Expression
    name: str
    arguments: tuple[Expression, ...]
    keywords: tuple[str, ...] = ()


@record
class Together(Expression):
    """A tuple of its members."""

    members: tuple[Expression, ...]


@record
class Built(Expression):
    """A new dict or list, or an object of a dataclass or named tuple whose constructor sets fields and does no more.

    Attributes:
        kind: the class.
        names: of the fields that have arguments, in the order in which `values` are evaluated. Others have the
            defaults of the class, as a worker imports it. Of a dict they are the keys, of a list there are none.
    """

    kind: type
    names: tuple[str, ...]
    values: tuple[Expression, ...]


@record
class Changed(Expression):
    """A copy of an object with other values in some fields, or further ones.

    Attributes:
        kind: `"dict"`: `{**of, name: value}`; `"dataclass"`: `dataclasses.replace(of, name=value)`.
        names: of the fields, in the order in which `values` are evaluated, after `of`.
    """

    of: Expression
    kind: Literal["dict", "dataclass"]
    names: tuple[str, ...]
    values: tuple[Expression, ...]


@record
class Formatted(Expression):
    """The content of the braces of an f-string.

    Attributes:
        conversion: `"s"`, `"r"`, `"a"` or nothing.
        spec: the format behind the colon, which is the same for all items.
    """

    of: Expression
    conversion: str
    spec: str


@record
class Text(Expression):
    """An f-string: its `Formatted` members and the strings between them, which are constants."""

    members: tuple[Expression, ...]


@record
class Local(Expression):
    """The value that the `Let` around it with the same number has named."""

    number: int


@record
class Let(Expression):
    """`within`, where each `Local` of this number is the result of `value`, which is evaluated once and before."""

    value: Expression
    number: int
    within: Expression


@record
class Loop(Expression):
    """`for ... in of if ...`, a part of a `Comprehension`.

    Attributes:
        numbers: of the variables.
        is_unpacked: members of `of` are taken apart for the variables; otherwise there is one.
        conditions: those on each member, in order.
    """

    of: Expression
    numbers: tuple[int, ...]
    is_unpacked: bool
    conditions: tuple[Expression, ...]


@record
class Comprehension(Expression):
    """A comprehension, or a generator expression in the place of an argument that is used up at once.

    Attributes:
        kind: `"list"`, `"set"`, `"dict"` or `"generator"`.
        members: the result of each round; of a dict key and value.
    """

    kind: Literal["list", "set", "dict", "generator"]
    loops: tuple[Loop, ...]
    members: tuple[Expression, ...]


@record
class Function(Expression):
    """A function that a builtin calls, as `key=` of `sorted`: `within` for the `Local` of this number."""

    number: int
    within: Expression


@record
class Keyword(Expression):
    """An argument of a `Called` by its name; it is behind those by position."""

    name: str
    value: Expression


@record
class Spread(Expression):
    """`*of` in a display of a list, a set or a tuple, `**of` in one of a dict."""

    of: Expression


@record
class Display(Expression):
    """A new container of members, some of which may be a `Spread`; of a dict a key and its value follow each other."""

    kind: Literal["dict", "list", "set", "tuple"]
    members: tuple[Expression, ...]


@record
class Tried(Expression):
    """`within`, where the `Local` of this number is the result of `value`; `otherwise` if that raises.

    Attributes:
        kinds: of exceptions, those of each handler.
        otherwise: the result of each handler.
    """

    value: Expression
    number: int
    within: Expression
    kinds: tuple[tuple[type[Exception], ...], ...]
    otherwise: tuple[Expression, ...]


@record
class Statement(Expression):
    """A statement of a `Routine`, which has no value of its own.

    Attributes:
        kind: `"block"` of others, `"assign"`, `"unpack"`, `"store"` in a container, `"change"` what it contains by an
            operator, `"do"` what an expression says, `"return"`, `"if"`, `"for"`, `"break"`, `"continue"`, `"try"`,
            `"handler"`, `"raise"` again, `"match"`, `"case"`.
        inner: its expressions and statements, in order.
        numbers: of the variables that it assigns.
        text: the operator of a change, the pattern of a case, `"unpacked"` of a loop that takes its members apart.
    """

    kind: str
    inner: tuple[Expression, ...] = ()
    numbers: tuple[int, ...] = ()
    text: str = ""


@record
class Routine(Expression):
    """The value that a block of statements returns; its variables are those of no other expression."""

    block: Statement


@record
class ForTuples(Expression):
    """`within` for an item that is a tuple of `size` members, no object of a class of its own, or an `Entry` of two.

    It is outside of all others. The function itself is called with any other item.
    """

    size: int
    within: Expression


def is_leaf(expression: Expression) -> bool:
    """Return whether an expression has its value without any evaluation."""
    return isinstance(expression, Argument | Constant | Local)


def replaced(local: Local, value: Expression, expression: Expression) -> Expression:
    """Return `expression` with `value` in the place of `local`."""
    return rewritten(expression, lambda each: value if each == local else None)


def substituted(expression: Expression, values: Mapping[int, Expression]) -> Expression:
    """Return `expression` with other values in the place of arguments, which need no evaluation."""
    return rewritten(expression, lambda each: values.get(each.place) if isinstance(each, Argument) else None)


def rewritten(expression: Expression, other: Callable[[Expression], Expression | None]) -> Expression:
    """Return `expression` with others in the place of some of its parts; `other` returns None for those that remain.

    A part that it contains twice as one object, which is evaluated once, is one object in the result, too.
    """
    made: dict[int, Expression] = {}

    def inner(each: Expression) -> Expression:
        # By identity, so that an operand that two comparisons share is one object in the result, too.
        if id(each) not in made:
            found = other(each)
            made[id(each)] = with_parts(each, inner) if found is None else found
        return made[id(each)]

    return inner(expression)


def with_parts(expression: Expression, part: Callable[[Expression], Expression]) -> Expression:
    """Return `expression` with the result of `part` for each of its parts, in order; the same object if all remain."""
    if is_leaf(expression):
        return expression

    def changed(held: Any) -> Any:
        if type(held) is tuple:
            found = tuple(map(changed, held))
            return held if all(map(operator.is_, held, found)) else found
        return part(held) if isinstance(held, Expression) else held

    values = tuple(getattr(expression, name) for name in _names_of(expression))
    found = changed(values)
    return expression if found is values else type(expression)(*found)


def one_behind_another(first: Expression, then: Expression) -> Expression:
    """Return the result of `then` for that of `first`, which is evaluated once."""
    if isinstance(then, Argument):
        return first
    if isinstance(first, ForTuples):  # Such a condition on the item is around all that is evaluated.
        return ForTuples(first.size, one_behind_another(first.within, then))
    # Numbers of `then` are taken; those of `first` are used before, outside of its reach.
    number = 1 + max(numbers_bound(then), default=0)
    return Let(first, number, substituted(then, {0: Local(number)}))


def numbers_bound(expression: Expression) -> Iterator[int]:
    """Yield the numbers of the variables that have their values inside of an expression."""
    for each in expression.walk():
        if isinstance(each, Let | Function | Tried):
            yield each.number
        elif isinstance(each, Loop | Statement):
            yield from each.numbers
