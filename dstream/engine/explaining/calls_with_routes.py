"""The calls of the user that stand in a stage, with the routes of their functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dstream.engine.explaining.routes import Route, route_of, routes_of
from dstream.engine.explaining.stands import Way, stands_of_steps
from dstream.engine.graph.decided import ONE_BY_ONE, Decided
from dstream.engine.graph.vertices import Applied, Vertex
from dstream.engine.worker.sinks import WriteEach
from dstream.plan.core import Called, Chain, Read
from dstream.plan.core_of_services import Served
from dstream.plan.stages import Call
from dstream.plan.steps import Guard, Op, Step
from dstream.spi.service import Service

__all__ = ["call_of_vertex", "calls_of", "calls_on_branches"]

_IN_THIS_PROCESS = "runs in this process, after the job, on what passed here"
_TREATMENTS = {
    "ignored": "leaves out the items that the step before fails on",
    "resolved": "replaces the items that the step before fails on",
    "sent": "sends away the items that the step before fails on; this process commits them at the end",
}


def calls_of(applied: Applied, ways: Sequence[Way] = ()) -> Iterator[Call]:
    """Give the calls of the user that stand behind one operation; some belong to the call of another one.

    Args:
        applied: the operation.
        ways: in which its items come.
    """
    return (call for call in _calls_of(applied, ways) if call.label)


def _calls_of(applied: Applied, ways: Sequence[Way]) -> Iterator[Call]:
    node, note = applied.node, applied.note
    match node:
        case None:
            return
        case Chain(ops=ops):
            routes = _routes_of_steps(ops, applied.decided, ways)
            for op, route in zip(ops, routes, strict=True):
                seen = _IN_THIS_PROCESS if op.action == "peek" else _of_service(op.fn) or note
                yield _call(op.step, seen, route)
                yield from _guarded(op.guards)
        case Called(guards=guards) | Read(guards=guards):
            yield _call(node.step, note, _route(applied.decided, ways), node.label())
            yield from _guarded(guards)
        case _:
            yield _call(node.step, note, _route(applied.decided, ways), node.label())


def _call(step: Step, note: str, route: Route | None, label: str | None = None) -> Call:
    label = step.label if label is None else label
    if route is None:
        return Call(label, step.where, note)
    return Call(label, step.where, "; ".join(filter(None, (note, route.name))), route.why)


def _routes_of_steps(ops: Sequence[Op], decided: Sequence[Decided | None], ways: Sequence[Way]) -> list[Route | None]:
    """Return the route of each step, None if it has none."""
    if not decided:
        return [None] * len(ops)
    stands = zip(*(stands_of_steps(way, ops) for way in ways), strict=True)
    return [
        None if each is None else _one_of(route_of(each, stand) for stand in of_ways)
        for each, of_ways in zip(decided, stands, strict=True)
    ]


def _one_of(routes: Iterable[Route]) -> Route:
    """Return one route for all ways in which items come."""
    found = list(dict.fromkeys(routes))
    names, reasons = dict.fromkeys(each.name for each in found), dict.fromkeys(each.why for each in found)
    among = ["It depends on where the items come from."] if len(names) > 1 else []
    return Route(" or ".join(names), " ".join([*among, *reasons]))


def _route(decided: Sequence[Decided | None], ways: Sequence[Way]) -> Route | None:
    """Return the routes of the functions of a call that is no step; None if it has none."""
    if not decided:
        return None
    return _one_of(
        routes_of(decided, ONE_BY_ONE if way.is_batch or way.listed is not None else way.stand) for way in ways
    )


def call_of_vertex(vertex: Vertex, ways: Sequence[Way]) -> Call | None:
    """Return the call that the output of a vertex stands for, if there is something to say of it."""
    route = _route(vertex.decided, ways)
    return _call(vertex.step, vertex.does, route) if vertex.does or route is not None else None


def calls_on_branches(output: WriteEach, decided: Sequence[Decided | None]) -> list[Call]:
    """Return the calls between a fork and its ends whose functions have a route; the notes have all calls."""
    steps = [op.step for branch in output.branches for op in branch.ops]
    return [
        _call(step, "", route_of(each, ONE_BY_ONE))
        for step, each in zip(steps, decided, strict=bool(decided))
        if each is not None
    ]


def _of_service(fn: object) -> str:
    """Say how often a service is made, if a step needs one."""
    match fn:
        case Served(service=Service(shared=is_shared)):
            return "its service is made once " + ("for the run in each process" if is_shared else "in each task")
        case Served():
            return "its service is opened when the plan runs for a context"
    return ""


def _guarded(guards: Iterable[Guard]) -> Iterator[Call]:
    for each in guards:
        if each.step.label:
            yield Call(each.step.label, each.step.where, _TREATMENTS[each.treatment])
