"""`Expression`: what a pure function gives, as a tree of values.

An expression says what Python would do, operator by operator and in Python's order; it does not say on which types. It
can be pickled, holds no code of the user's, and two of them are equal if they say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Literal, TypeAlias

__all__ = [
    "Applied",
    "Argument",
    "Attribute",
    "Built",
    "Called",
    "Choice",
    "Constant",
    "Expression",
    "ForTuples",
    "Formatted",
    "Indexed",
    "Let",
    "Local",
    "Method",
    "Operator",
    "Text",
    "Together",
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


@dataclass(frozen=True, slots=True)
class Expression:
    """What a pure function gives."""

    def parts(self) -> tuple[Expression, ...]:
        """Return the expressions that this one is made of, in the order in which Python may evaluate them."""
        held = (getattr(self, each.name) for each in fields(self))
        values = (value if type(value) is tuple else (value,) for value in held)
        return tuple(each for each in chain.from_iterable(values) if isinstance(each, Expression))

    def walk(self) -> Iterator[Expression]:
        """Give this expression and all inside of it, parts after what they are parts of."""
        waiting: list[Expression] = [self]
        while waiting:
            each = waiting.pop()
            yield each
            waiting.extend(reversed(each.parts()))

    def extent(self) -> tuple[int, int]:
        """Return how many expressions there are inside, with this one, and in how many levels."""
        size, levels = 0, 0
        level: tuple[Expression, ...] = (self,)
        while level:
            size, levels = size + len(level), levels + 1
            level = tuple(chain.from_iterable(each.parts() for each in level))
        return size, levels


@dataclass(frozen=True, slots=True)
class Argument(Expression):
    """An argument of the function, by its place from 0."""

    place: int


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A value that is the same for all items: an exact int, float, bool, str, bytes, None, or a tuple of such.

    What `in` looks into may be a frozenset of them; what `re` works with is a compiled pattern.

    Two are equal if their values are and have one type: `1` is not `1.0`, nor `0.0` `-0.0`.
    """

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and _told(self.value) == _told(other.value)

    def __hash__(self) -> int:
        return hash(_told(self.value))


def _told(value: Any) -> tuple[Any, ...]:
    if type(value) is tuple:
        return tuple, *map(_told, value)
    if type(value) is frozenset:
        return frozenset, frozenset(map(_told, value))
    if type(value) is re.Pattern:
        return re.Pattern, *_told(value.pattern), value.flags
    return type(value), repr(value)


@dataclass(frozen=True, slots=True)
class Applied(Expression):
    """An operator on its operands; those of `and` and `or` are evaluated as far as Python does."""

    operator: Operator
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice(Expression):
    """`chosen if condition else otherwise`; one of the two is evaluated."""

    condition: Expression
    chosen: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Indexed(Expression):
    """`of[index]`."""

    of: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Attribute(Expression):
    """`of.name`."""

    of: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Called(Expression):
    """A function of `dstream.expressions.known_functions` on its arguments, by its name there.

    Builtins: `abs`, `len`, ...; functions of modules: `math.sqrt`; methods of `str` that were called by way of their
    class, which take no other type: `str.lower`. `slice` also is what stands between brackets: `[start:stop:step]`.
    """

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Method(Expression):
    """`of.name(*arguments)`, a method of a builtin type, most of them of `str`, that changes nothing."""

    of: Expression
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Together(Expression):
    """A tuple of its members."""

    members: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Built(Expression):
    """An object of a dataclass or named tuple whose constructor sets its fields and does nothing else.

    Attributes:
        kind: the class.
        names: of the fields that it is given, in the order in which `values` are evaluated. Others have what they
            have by default in the class, as a worker imports it.
    """

    kind: type
    names: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Formatted(Expression):
    """What stands between braces of an f-string.

    Attributes:
        conversion: `"s"`, `"r"`, `"a"` or nothing.
        spec: what follows the colon, which is the same for all items.
    """

    of: Expression
    conversion: str
    spec: str


@dataclass(frozen=True, slots=True)
class Text(Expression):
    """An f-string: its `Formatted` members and the texts between them, which are constants."""

    members: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Local(Expression):
    """What the `Let` around it with the same number gave a name."""

    number: int


@dataclass(frozen=True, slots=True)
class Let(Expression):
    """`within`, where each `Local` of this number is what `value` gave, which is evaluated once and before."""

    value: Expression
    number: int
    within: Expression


@dataclass(frozen=True, slots=True)
class ForTuples(Expression):
    """`within` for an item that is a tuple of `size` members, no object of a class of its own, or an `Entry` of two.

    It stands outside of all others. The function itself is called with any other item.
    """

    size: int
    within: Expression
