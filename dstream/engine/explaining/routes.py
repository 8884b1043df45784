"""`Route`: how tasks evaluate a function, and why in that way: what the compiler has decided, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dstream.engine.graph.decided import Decided, Stand
from dstream.expressions.function_reading import Unread

__all__ = ["Route", "route_of", "routes_of"]


@dataclass(frozen=True, slots=True)
class Route:
    """How tasks evaluate a function.

    Attributes:
        name: `"columns"`, also with what has to be true of the data, `"inlined"`, or `"Python: "` with what the
            function does that keeps it there.
        why: sentences: the reason, and what to write instead where that is easy.
    """

    name: str
    why: str


def route_of(decided: Decided, stand: Stand) -> Route:
    """Return how tasks evaluate a function.

    Args:
        decided: what the compiler has decided.
        stand: in what the items stand that it gets.
    """
    if decided.unread is not None:
        return Route(f"Python: {decided.unread.reason}", _why_called(decided.unread))
    obstacle = decided.obstacle or stand.obstacle
    if not obstacle:
        conditions = " and ".join(dict.fromkeys((*stand.conditions, *decided.conditions)))
        return Route(f"columns if {conditions}" if conditions else "columns", _COLUMNS)
    if decided.is_inlined:
        return Route("inlined", f"Python evaluates it in the loop of the task, since {obstacle}.")
    if decided.name:
        return Route(f"Python: {obstacle}", f"The function is called for each item, since {obstacle}.")
    name = decided.written
    return Route(f"Python: calls {name}", f"{name} is written in C, and called for each item, since {obstacle}.")


_COLUMNS = "It is evaluated for many items at a time, where that gives the same."


def routes_of(all_decided: Iterable[Decided | None], stand: Stand) -> Route:
    """Return the routes of all functions of a call as one, behind their names."""
    functions: dict[Route, list[str]] = {}
    for each in all_decided:
        if each is not None:
            functions.setdefault(route_of(each, stand), []).append(each.name)
    names = "; ".join(f"{', '.join(dict.fromkeys(of_route))}: {route.name}" for route, of_route in functions.items())
    return Route(names, " ".join(dict.fromkeys(route.why for route in functions)))


def _why_called(unread: Unread) -> str:
    place = f" at {unread.where}" if unread.where else ""
    advice = f" Instead: {unread.advice}." if unread.advice else ""
    return f"The function is called for each item, since it {unread.reason}{place}.{advice}"
