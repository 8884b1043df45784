"""What the compiler has decided about functions of the user's, and in what the items stand that these get.

Nothing here runs: the compiler leaves it beside the operations of a graph, and the drawing of a plan says it in words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from dstream.expressions.function_reading import Unread

__all__ = ["ONE_BY_ONE", "Decided", "Gives", "Stand", "one_by_one", "only_if", "together"]


@dataclass(frozen=True, slots=True)
class Decided:
    """How tasks evaluate a function.

    Attributes:
        name: which function of its call it is, such as `summing(fn)`; empty: it is the only one.
        unread: why it is called for each item, if its expression is not known.
        obstacle: why it does not run over columns, wherever the items stand, in words that follow "since"; empty if it
            runs there as soon as the items stand in columns.
        is_inlined: elsewhere its expression stands in the loop of the task.
        written: how the function is called in words.
        conditions: what has to be true of the data for it to run over columns, in words that follow "if".
    """

    name: str = ""
    unread: Unread | None = None
    obstacle: str = ""
    is_inlined: bool = False
    written: str = ""
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stand:
    """In what the items stand that an operation gets.

    Attributes:
        obstacle: why they come one by one, in words that follow "since"; empty: they stand in columns.
        conditions: what only the data can say: they stand in columns if all of that is true.
    """

    obstacle: str = ""
    conditions: tuple[str, ...] = ()


ONE_BY_ONE = Stand("the items before it come one by one")


def together(stands: Iterable[Stand]) -> Stand:
    """Return in what items stand that come in several ways."""
    found = list(stands)
    obstacle = next((each.obstacle for each in found if each.obstacle), "")
    if obstacle:
        return Stand(obstacle)
    return Stand("", tuple(dict.fromkeys(chain.from_iterable(each.conditions for each in found))))


@dataclass(frozen=True, slots=True)
class Gives:
    """In what the results of an operation stand.

    Attributes:
        obstacle: as of a `Stand`; empty: they stand in columns if the items do of which they are made.
        conditions: as of a `Stand`.
    """

    obstacle: str = ""
    conditions: tuple[str, ...] = ()

    def of(self, items: Stand) -> Stand:
        """Return in what the results stand that are made of such items."""
        return together((items, Stand(self.obstacle, self.conditions)))


def only_if(condition: str) -> Gives:
    """Return that results stand in columns if items do, and if the data are so."""
    return Gives(conditions=(condition,))


def one_by_one(obstacle: str = ONE_BY_ONE.obstacle) -> Gives:
    """Return that results come one by one."""
    return Gives(obstacle)
