"""Whether what an expression gives may hold one object twice."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from dstream.expressions.expression import (
    Applied,
    Argument,
    Attribute,
    Called,
    Choice,
    Constant,
    Expression,
    Indexed,
    Let,
    Local,
    Together,
)

__all__ = ["may_share"]

_Known = Mapping[int, Sequence[Expression]]
"""What the value of each variable may hold that was there before."""


@functools.lru_cache(maxsize=512)
def may_share(expression: Expression) -> bool:
    """Say whether an object, or one that is a part of it, may stand twice in what an expression gives.

    What operators and functions make is new; arguments, their parts, and what variables were given are not.

    Example:
        >>> item, price = Argument(0), Attribute(Argument(0), "price")
        >>> may_share(Together((price, item))), may_share(Together((price, Applied("*", (price, price)))))
        (True, False)
    """
    seen: set[Expression] = set()
    seen_with_wholes: set[Expression] = set()
    ways: dict[Expression, object] = {}
    for each in _held(expression, {}):
        wholes = set(_wholes(each))
        if each in seen_with_wholes or not seen.isdisjoint(wholes):
            return True
        for part in wholes:
            if isinstance(part, Attribute | Indexed) and ways.setdefault(part.of, _way(part)) != _way(part):
                return True
        seen.add(each)
        seen_with_wholes |= wholes
    return False


def _held(each: Expression, known: _Known) -> Iterator[Expression]:
    """Give the arguments and variables, and the parts of these, that may stand in a result as they are."""
    match each:
        case Argument():
            yield each
        case Local(number):
            yield each
            yield from known[number]
        case Attribute(of, _) | Indexed(of, _):
            yield each
            match _root(of):
                case Local(number):
                    yield from known[number]
                case root if not isinstance(root, Argument):
                    yield from _held(root, known)
        case Together(held) | Called("dstream.Entry" | "float" | "max" | "min", held):
            for one in held:
                yield from _held(one, known)
        case Applied("and" | "or" | "pos", held):
            for one in held:
                yield from _held(one, known)
        case Choice(_, chosen, otherwise):
            yield from _held(chosen, known)
            yield from _held(otherwise, known)
        case Let(value, number, within):
            yield from _held(within, {**known, number: tuple(_held(value, known))})


def _way(part: Attribute | Indexed) -> object:
    """Return in what way a part is reached: in one way, another name is another part; `x.key` may be `x[0]`."""
    if isinstance(part, Attribute):
        return Attribute
    if not isinstance(part.index, Constant):
        return part.index
    return type(part.index.value) is int and part.index.value < 0


def _wholes(each: Expression) -> Iterator[Expression]:
    """Give an expression, and those that it is a part of."""
    yield each
    while isinstance(each, Attribute | Indexed):
        each = each.of
        yield each


def _root(each: Expression) -> Expression:
    *_, root = _wholes(each)
    return root
