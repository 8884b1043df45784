"""Joins: two streams whose items meet by their keys.

A join first computes the side that may be small, routed by its keys, and keeps it. If its bytes are few, they come to
the driver and travel with the other side's stage, where nothing moves. If not, one shuffle brings both sides together:
in each partition the side that is held comes first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dstream.engine.compiler.called_functions import called_by
from dstream.engine.compiler.compiling import Compiling, Facts, compile_node
from dstream.engine.graph import output_ports
from dstream.engine.graph.decided import Decided, Gives, one_by_one, only_if
from dstream.engine.graph.decisions import Ask, Done, Move, Outcome, Report, Several
from dstream.engine.graph.vertices import Input, Items, Rows, Taken, Vertex, piped
from dstream.engine.kernels.hash_join import Matching
from dstream.engine.kernels.join_sides import Side, sides_of
from dstream.engine.kernels.join_tasks import cogroup_batches, join_batches, join_with
from dstream.engine.kernels.membership import Membership
from dstream.engine.kernels.nearest import Nearest, nearest_batches
from dstream.engine.worker.readers import read_buckets
from dstream.engine.worker.routing import RouteSide
from dstream.engine.worker.rows import ITEMS, WATERMARKS
from dstream.errors import UnsupportedError
from dstream.plan.core import Core
from dstream.plan.core_of_pairs import AsOf, CoGroup, Join, SemiJoin

__all__ = ["may_be_small"]

IsLeft = bool
"""A side is named by whether it is the left one."""


@compile_node.register
def _(node: Join, inputs: Sequence[Items], compiling: Compiling) -> Items:
    left, right = inputs
    candidates = tuple(may_be_small(node, compiling.is_bounded))
    return (compiling.decide(Meet(node, left, right, compiling.facts, candidates, compiling.is_bounded(node))),)


@compile_node.register
def _(node: SemiJoin, inputs: Sequence[Items], compiling: Compiling) -> Items:
    left, right = inputs
    return (compiling.decide(Meet(node, left, right, compiling.facts, (False,), compiling.is_bounded(node))),)


@compile_node.register(CoGroup)
@compile_node.register(AsOf)
def _(node: CoGroup | AsOf, inputs: Sequence[Items], compiling: Compiling) -> Items:
    left, right = inputs
    return (compiling.decide(Meet(node, left, right, compiling.facts, (), True)),)


def may_be_small(node: Join, is_bounded: Callable[[Core], bool]) -> list[IsLeft]:
    """Return which sides may travel to the other one, in the order in which they are looked at."""
    candidates = {"inner": [False, True], "left": [False], "right": [True], "full": []}[node.how]
    return [is_left for is_left in candidates if is_bounded(node.left if is_left else node.right)]


@dataclass(frozen=True, eq=False)
class Meet:
    """Two sides on their way to each other.

    Attributes:
        candidates: the sides whose sizes are still to be looked at.
        counts: both sides end.
        targets: to how many partitions items go if both sides move.
        partitions: in how many each side stands.
        kept: the sides that were computed.
        sizes: how many bytes the items of these are.
        beside: which of them have rows beside their items, which what reads the side hands on.
    """

    node: Join | SemiJoin | CoGroup | AsOf
    left: Items
    right: Items
    facts: Facts
    candidates: tuple[IsLeft, ...]
    counts: bool
    targets: int = 0
    partitions: tuple[int, int] = (0, 0)
    kept: Mapping[IsLeft, Vertex] = field(default_factory=dict)
    sizes: Mapping[IsLeft, int] = field(default_factory=dict)
    beside: frozenset[IsLeft] = frozenset()
    is_coming: bool = False

    @property
    def inputs(self) -> tuple[Items, ...]:
        return self.left, self.right

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[Several, ...]) -> Move:
        left, right = (number or 0 for number in partitions)
        targets = self.facts.targets(left + right if self.counts else 1)
        begun = replace(self, left=inputs[0], right=inputs[1], targets=targets, partitions=(left, right))
        return begun._look_at_next() if self.facts.largest_small_side >= 0 else begun._all_move()

    def _look_at_next(self) -> Move:
        if not self.candidates:
            return self._all_move()
        is_left = self.candidates[0]
        vertex = self._routed(is_left, is_kept=True)
        looking = replace(self, kept={**self.kept, is_left: vertex})
        purpose = f"the {_name(is_left)} side is computed, and measured"
        return Ask(looking, vertex, "bytes", output_ports.EVERYTHING, self.node.step, purpose, outcomes=self._sizes())

    def _sizes(self) -> tuple[Outcome, ...]:
        """Return how large the side may be that is looked at; `peek` steps may have seen something of a small one."""
        largest, name = self.facts.largest_small_side, _name(self.candidates[0])
        is_last = len(self.candidates) == 1
        small = f"if it is at most {_bytes(largest)}"
        large = f"if no side is at most {_bytes(largest)}" if is_last else f"if the {name} side is larger"
        return (
            Outcome(((ITEMS, 0),), small),
            Outcome(((ITEMS, 0), (ITEMS + 1, 1)), small),
            Outcome(((ITEMS, largest + 1),), large),
        )

    def next(self, report: Report) -> Move:
        is_left, *others = self.candidates
        if self.is_coming:
            return self._travelling(is_left, tuple(bytes(row.payload) for row in report.rows))
        size = sum(size for channel, size in report.rows if channel == ITEMS)
        known = replace(self, sizes={**self.sizes, is_left: size})
        if any(channel > ITEMS or channel == WATERMARKS for channel, _ in report.rows):
            known = replace(known, beside=self.beside | {is_left})
        if size <= self.facts.largest_small_side:
            purpose = f"the {_name(is_left)} side comes to this process"
            coming = replace(known, is_coming=True)
            return Ask(coming, report.vertex, "rows", output_ports.ITEMS, self.node.step, purpose)
        return replace(known, candidates=tuple(others))._look_at_next()

    def _travelling(self, is_left: IsLeft, payloads: tuple[bytes, ...]) -> Move:
        """Let a side that came to the driver travel from there to each task of the other one."""
        other = not is_left
        passing: Items = (self._kept(other),) if other in self.kept else self._items(other)
        side = None if other in self.kept else self._side(other)
        matching = self._matching(is_left)
        join = functools.partial(join_with, payloads, matching, self._side(is_left).step, side)
        note = f"each task has the whole {_name(is_left)} side"
        decided = () if side is None else self._keys_of(other)
        met = piped(passing, self.node, join, note, decided, self._gives(), beside=(self.kept[is_left],))
        return Done((*self._beside(is_left), *met))

    def _kept(self, is_left: IsLeft) -> Rows:
        why = f"the {_name(is_left)} side stays where it is"
        return Rows((Taken(self.kept[is_left]),), None, read_buckets, is_ordered=False, why=why)

    def _beside(self, is_left: IsLeft) -> Iterator[Input]:
        """Give an input without items that hands on what came beside those of a side that is not read again."""
        if is_left in self.beside:
            yield Rows((Taken(self.kept[is_left], output_ports.BESIDE_AND_WATERMARKS),), None)

    def _all_move(self) -> Move:
        """Let both sides meet by key, the one that is held before the other one in each partition."""
        node = self.node
        if not self.counts:
            raise UnsupportedError(
                f"the Spark engine joins an infinite stream only with one of at most "
                f"{self.facts.largest_small_side:,} bytes: {node.label()}; limit() it before"
            )
        holds_left, does, meet = self._meeting()
        first = self.kept.get(holds_left) or self._routed(holds_left)
        behind = self.partitions[0 if holds_left else 1]
        second = self.kept.get(not holds_left) or self._routed(not holds_left, first=behind)
        together = (Taken(first), Taken(second, behind=self.targets))
        met = Rows(together, self.targets, read_buckets, is_ordered=False, why=_MEET, notes=self._notes())
        return Done(piped((met,), node, functools.partial(meet, self.targets), does, gives=self._gives()))

    def _gives(self) -> Gives:
        """Return in what the results stand: entries are made one by one; a side of which some stay may stay so."""
        if not isinstance(self.node, SemiJoin):
            return one_by_one("an operation on two streams gives items one by one")
        if not self.facts.reads_functions or not all(side.has_keys_in_columns for side in sides_of(self.node)):
            return one_by_one()
        return only_if("all keys are of one type, int or str")

    def _meeting(self) -> tuple[bool, str, Callable[..., Any]]:
        """Return whether the left side comes first where both meet, what happens there in words, and what does it."""
        node, step = self.node, self.node.step
        match node:
            case CoGroup():
                return True, "lists the items of each key", functools.partial(cogroup_batches, step)
            case AsOf():
                return (
                    True,
                    "sorts both sides and goes along them",
                    functools.partial(nearest_batches, Nearest.of(node)),
                )
        holds_left = isinstance(node, Join) and node.how == "right"
        if len(self.sizes) == 2:
            holds_left = self.sizes[True] < self.sizes[False]
        join = functools.partial(join_batches, self._matching(holds_left), step)
        return holds_left, "one side is held, the other one passes by", join

    def _matching(self, holds_left: IsLeft) -> Matching | Membership:
        if isinstance(self.node, SemiJoin):
            return Membership(not self.node.is_anti)
        assert isinstance(self.node, Join), "the others have sides that only meet"
        return Matching.of(self.node.how, holds_left)

    def _notes(self) -> tuple[str, ...]:
        if not isinstance(self.node, Join | SemiJoin):
            return ()
        names = " or ".join(_name(is_left) for is_left in self.kept)
        largest = _bytes(self.facts.largest_small_side)
        small = f"if the {names} side is at most {largest}, it travels to the tasks of the other one, and nothing moves"
        return (f"{small}; a hot key is split then", _HOT_KEY) if names else (_HOT_KEY,)

    def _routed(self, is_left: IsLeft, *, is_kept: bool = False, first: int = 0) -> Vertex:
        in_columns = self.facts.reads_functions and isinstance(self.node, Join | SemiJoin)
        sink = RouteSide(self._side(is_left), self.targets, in_columns)
        does = f"sends the items of the {_name(is_left)} side to the place of their key"
        return Vertex(self._items(is_left), sink, self.node.step, is_kept, first, does, decided=self._keys_of(is_left))

    def _keys_of(self, is_left: IsLeft) -> Sequence[Decided]:
        """Return what was decided of the functions that take the items of a side."""
        return [each for each in called_by(self.node, self.facts) if each.name.startswith(_name(is_left))]

    def _items(self, is_left: IsLeft) -> Items:
        return self.left if is_left else self.right

    def _side(self, is_left: IsLeft) -> Side:
        left, right = sides_of(self.node)
        return left if is_left else right


_MEET = "equal keys of both sides meet in one place"
_HOT_KEY = "else all items of a hot key come to one task, which holds one side of it, on disk past the memory bound"


def _name(is_left: IsLeft) -> str:
    return "left" if is_left else "right"


def _bytes(size: int) -> str:
    return f"{size >> 20} MB" if size >= 2**20 else f"{size:,} bytes"
