"""Zips: two streams whose items meet by their places.

A first job leaves the items of both sides where they are, and tells how many each partition has. Then the places are
cut into stretches, one for each target, and the items of both sides go to the stretch of their place. An endless side
is read in one task, as far as the other one goes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from dstream.engine.compiler.compiling import Compiling, Facts, compile_node
from dstream.engine.graph import output_ports
from dstream.engine.graph.decisions import Ask, Done, Move, Report, Several
from dstream.engine.graph.vertices import Items, Rows, Splits, Taken, Vertex, in_one_task, piped
from dstream.engine.kernels.core_operations import Task, some
from dstream.engine.kernels.zipping import SideBySide, zipped_batches
from dstream.engine.worker.readers import ReadPlaces, read_buckets
from dstream.engine.worker.routing import RouteByPlaceAmongAll
from dstream.engine.worker.sinks import WriteItems
from dstream.errors import UnsupportedError
from dstream.plan.core_of_pairs import Zip

__all__ = ["Stretches"]


@compile_node.register
def _(node: Zip, inputs: Sequence[Items], compiling: Compiling) -> Items:
    left, right = inputs
    ends = (compiling.is_bounded(node.left), compiling.is_bounded(node.right))
    if not any(ends) or not compiling.is_bounded(node):
        raise UnsupportedError(
            f"the Spark engine does not run {node.label()} of an endless stream where the result has no end: "
            "limit(n) right behind it, or limit() the endless side before"
        )
    left, right = (each if is_end else _endless(node, each) for each, is_end in zip((left, right), ends, strict=True))
    return (compiling.decide(Stretches(node, left, right, compiling.facts, ends)),)


def _endless(node: Zip, items: Items) -> Items:
    if all(isinstance(each, Splits) for each in items):
        return in_one_task(items)
    raise UnsupportedError(
        f"the Spark engine does not run {node.label()} on an infinite stream that follows one with a shuffle "
        "(sorted, distinct); limit() it before"
    )


@dataclass(frozen=True, eq=False)
class Stretches:
    """Two sides on their way to each other.

    Attributes:
        ends: which of the sides end.
        partitions: in how many each side stands.
    """

    node: Zip
    left: Items
    right: Items
    facts: Facts
    ends: tuple[bool, bool]
    partitions: tuple[int, int] = (0, 0)

    counts = True

    @property
    def inputs(self) -> tuple[Items, ...]:
        return self.left, self.right

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[Several, ...]) -> Move:
        left, right = (number or 0 for number in partitions)
        begun = replace(self, left=inputs[0], right=inputs[1], partitions=(left, right))
        if all(self.ends) and (self.facts.is_sequential or left == right == 1):
            return begun._in_one_task()
        return begun._ask()

    def _in_one_task(self) -> Move:
        step = self.node.step
        first = Vertex(self.left, WriteItems(), step)
        second = Vertex(self.right, WriteItems(), step)
        return self._met((Taken(first), Taken(second, behind=1)), 1, 0, "both sides come to one task")

    def _ask(self) -> Move:
        sides = (self.left if self.ends[0] else ()) + (self.right if self.ends[1] else ())
        kept = Vertex(sides, WriteItems(), self.node.step, is_kept=True)
        purpose = f"how many items each partition {'of both sides ' if all(self.ends) else ''}has"
        return Ask(self, kept, "places", output_ports.ITEMS, self.node.step, purpose)

    def next(self, report: Report) -> Move:
        left, right = self.partitions
        counted = [left if self.ends[0] else 0, right if self.ends[1] else 0]
        found = [0] * sum(counted)
        for source, _, _, size in report.rows:
            found[source] += size
        lefts, rights = found[: counted[0]], found[counted[0] :]
        totals = [sum(side) for side, is_end in zip((lefts, rights), self.ends, strict=True) if is_end]
        wanted = max(totals) if self.node.how in ("longest", "interleaved") else min(totals)
        targets = 1 if self.facts.is_sequential else self.facts.targets(max(counted))
        # One more than wanted of the longer side shows that it is longer.
        most = wanted + (self.node.how == "strict")
        sides = (self.left, lefts, 0), (self.right, rights, counted[0])
        placed = [
            self._places_kept(report.vertex, first, sizes, most) if is_end else _places(items, most)
            for is_end, (items, sizes, first) in zip(self.ends, sides, strict=True)
        ]
        route = RouteByPlaceAmongAll(wanted, targets)
        first, second = (Taken(Vertex(items, route, self.node.step)) for items in placed)
        taken = (first, replace(second, behind=targets))
        return self._met(taken, targets, wanted, "items of both sides go to the stretch of their place")

    def _places_kept(self, kept: Vertex, first: int, sizes: Sequence[int], most: int) -> Items:
        """Return the items of a side, which are there, with their places."""
        port = output_ports.ITEMS.of_sources(first, first + len(sizes))
        reader = ReadPlaces(first, tuple(accumulate(sizes, initial=0)), most)
        return (Rows((Taken(kept, port),), None, reader, why=_STAY),)

    def _met(self, taken: tuple[Taken, ...], targets: int, wanted: int, why: str) -> Done:
        met = Rows(taken, targets, read_buckets, why=why)
        does = functools.partial(zipped_batches, SideBySide.of(self.node), targets, wanted)
        return Done(piped((met,), self.node, does, "puts both sides together; the left one is held"))


_STAY = "the items stay where they are; this process learns how many each partition has"


def _places(items: Items, most: int) -> Items:
    """Return the items of a side without an end, which one task reads as far as wanted, with their places."""
    return piped(items, None, functools.partial(_numbered, most))


def _numbered(most: int, items: Iterator[Any], task: Task) -> Iterator[tuple[int, Any]]:
    return enumerate(some(items, 0, most))
