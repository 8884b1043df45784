"""When Python evaluates what in an expression: where a variable may stand for what was assigned to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from dstream.expressions.expression import Applied, Argument, Choice, Constant, Expression, Let, Local, Method

__all__ = ["asks_for_truth", "is_leaf", "one_behind_another", "replaced", "stands_first", "substituted"]


def is_leaf(expression: Expression) -> bool:
    """Say whether an expression is there without any evaluation."""
    return isinstance(expression, Argument | Constant | Local)


def asks_for_truth(expression: Expression) -> bool:
    """Say whether there is an `and` or an `or` inside, or a comparison of three.

    Where the truth of its result is asked, Python would ask its operands once: a variable that has the result, or a
    function that returns it, lets it ask once more.
    """
    return any(isinstance(each, Applied) and each.operator in ("and", "or") for each in expression.walk())


def stands_first(local: Local, expression: Expression) -> bool:
    """Say whether `local` is looked at in any case, and before anything else happens."""
    while expression != local:
        inner = next((each for each in _evaluated_first(expression) if each == local or not is_leaf(each)), None)
        if inner is None:
            return False
        expression = inner
    return True


def _evaluated_first(expression: Expression) -> tuple[Expression, ...]:
    """Return parts that are evaluated in any case, one after another, before anything is done with them."""
    is_shortened = isinstance(expression, Applied) and expression.operator in ("and", "or")
    if is_shortened or isinstance(expression, Choice | Method | Let):
        return expression.parts()[:1]
    return expression.parts()


def replaced(local: Local, value: Expression, expression: Expression) -> Expression:
    """Return `expression` with `value` in the place of `local`."""
    if expression == local:
        return value
    if not any(each == local for each in expression.walk()):
        return expression
    changed = {
        each.name: _within(getattr(expression, each.name), local, value) for each in dataclasses.fields(expression)
    }
    return dataclasses.replace(expression, **changed)


def substituted(expression: Expression, values: Mapping[int, Expression]) -> Expression:
    """Return `expression` with other values in the place of arguments, which are there without any evaluation.

    What stands in it twice as one object, which is evaluated once, does so in the result.
    """
    made: dict[int, Expression] = {}

    def changed(held: Any) -> Any:
        if type(held) is tuple:
            return tuple(map(changed, held))
        return inner(held) if isinstance(held, Expression) else held

    def inner(each: Expression) -> Expression:
        if isinstance(each, Argument):
            return values.get(each.place, each)
        if isinstance(each, Constant):
            return each
        if id(each) not in made:
            names = [field.name for field in dataclasses.fields(each)]
            made[id(each)] = dataclasses.replace(each, **{name: changed(getattr(each, name)) for name in names})
        return made[id(each)]

    return inner(expression)


def one_behind_another(first: Expression, then: Expression) -> Expression:
    """Return what `then` gives for what `first` gives, which is evaluated once."""
    if isinstance(then, Argument):
        return first
    number = 1 + max((each.number for each in then.walk() if isinstance(each, Let)), default=0)
    return Let(first, number, substituted(then, {0: Local(number)}))


def _within(held: Any, local: Local, value: Expression) -> Any:
    if isinstance(held, Expression):
        return replaced(local, value, held)
    if type(held) is tuple and any(isinstance(each, Expression) for each in held):
        return tuple(replaced(local, value, each) for each in held)
    return held
