"""Operations on two streams by key, compiled: joins and hash joins.

A join first computes the side that may be small, routed by its keys, and stores it. If it is small, it is collected in
the driver and broadcast with the other side's stage, without a shuffle. If not, one shuffle brings both sides together:
in each partition the side that is buffered is first.

A hash join broadcasts the right side to all tasks. The left side is not moved, so its items keep their order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from dstream.base.memory import SMALL_SIDE
from dstream.base.records import record
from dstream.engine.compiler.evaluation import PartsUsed, Shape, collector_read, key_in_columns
from dstream.engine.compiler.inputs import chain_read
from dstream.engine.compiler.walk import ClusterFacts, Compiling, called_by, compile_node
from dstream.engine.physical import vertices
from dstream.engine.physical.graph import Ask, Done, Move, Outcome, PartitionCount, Report, SendToAll
from dstream.engine.physical.vertices import (
    Evaluation,
    Input,
    Items,
    OutputFormat,
    Rows,
    Taken,
    Vertex,
    one_by_one,
    only_if,
    piped,
)
from dstream.engine.tasks.process import InFunction, Payloads
from dstream.engine.tasks.readers import read_buckets
from dstream.engine.tasks.routing import JoinWithSent, LookUp, RouteSide, WriteRightSide
from dstream.engine.tasks.rows import ITEMS, WATERMARKS
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.operators.joins.hash import Matching, Membership
from dstream.operators.joins.lookup import RightSide
from dstream.operators.joins.nearest import Nearest, nearest_batches
from dstream.operators.joins.pairs import cogroup_batches, join_batches
from dstream.operators.rows.keys import Side, sides_of
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.ends import Collect, Write
from dstream.plan.operations.keyed import Aggregate
from dstream.plan.operations.pairs import AsOf, CoGroup, HashJoin, Join, SemiJoin
from dstream.plan.operations.streams import Hint, Node, Read
from dstream.plan.steps import KeyInColumns
from dstream.plan.walk import topological
from dstream.spi import Collector
from dstream.spi.columns import SourceTraits

__all__ = ["BroadcastHashJoin", "may_be_small"]


IsLeft = bool
"""A side is named by whether it is the left one."""


@compile_node.register
def _(node: Join, inputs: Sequence[Items], compiling: Compiling) -> Items:
    left, right = inputs
    candidates = tuple(may_be_small(node, compiling.is_bounded))
    return (compiling.decide(_adaptive(node, left, right, candidates, compiling)),)


@compile_node.register
def _(node: SemiJoin, inputs: Sequence[Items], compiling: Compiling) -> Items:
    left, right = inputs
    # Only the right side may be broadcast: copies of the left one would emit an item once in each task that matches it.
    return (compiling.decide(_adaptive(node, left, right, (False,), compiling)),)


def _adaptive(
    node: Join | SemiJoin, left: Items, right: Items, candidates: tuple[IsLeft, ...], compiling: Compiling
) -> AdaptiveJoin:
    keys, is_bounded = _keys_read(node, compiling), compiling.is_bounded(node)
    used = _parts_used(node, compiling)
    return AdaptiveJoin(node, left, right, compiling.facts, candidates, is_bounded, keys, used)


def _parts_used(node: Join | SemiJoin, compiling: Compiling) -> PartsUsed | None:
    """Return the parts of a join's rows that the steps after it use; None if they need all.

    Where a row may have no partner, functions get the items.
    """
    is_inner = isinstance(node, SemiJoin) or node.how == "inner"
    if compiling.facts.columns != "auto" or not is_inner:
        return None
    used, items = (PartsUsed((True,)), True) if isinstance(node, SemiJoin) else (PartsUsed((True, False)), _PAIR)
    reader: Node | None = compiling.only_reader(node)
    while isinstance(reader, Chain | Hint):
        for op in chain_read(reader, compiling)[0].ops if isinstance(reader, Chain) else ():
            items = used.behind(op, items)
        reader = compiling.only_reader(reader)
    collector = _collector_of(reader)
    known = None if collector is None else collector_read(collector, compiling.namespaces, is_verified=False)[0]
    used.collected(None if known is None else known.on_columns(), items)
    return used


_PAIR: Shape = (None, (True, False))
"""An entry of a key and the rows of both sides."""


def _collector_of(node: Node | None) -> Collector[Any, Any, Any] | None:
    """Return the collector that takes the items of an operation where they are, if one does."""
    match node:
        case Collect() | Write():
            return node.collector
        case Aggregate(reductions=(reduction,)) if node.combines:
            return reduction
    return None


_Key = tuple[KeyInColumns | None, Sequence[Evaluation]]
"""The expression of a key function, if it is read, and the decision on it."""


def _keys_read(node: Join | SemiJoin, compiling: Compiling) -> tuple[_Key, _Key]:
    """Return the evaluation of the key functions of the left and of the right side."""
    left, right = ((name, getattr(node, name)) for name in ("left_key", "right_key"))
    return _key_read(node, *left, compiling), _key_read(node, *right, compiling)


def _key_read(node: Join | SemiJoin, name: str, key: Any, compiling: Compiling) -> _Key:
    called = [each for each in called_by(node, compiling.facts) if each.name == name]
    if not called:
        return None, ()
    is_verified = compiling.facts.columns == "verify"
    found, decided = key_in_columns(key, _KEYS, compiling.namespaces, is_verified=is_verified)
    return None if found.expression is None else found, [replace(each, name=name) for each in decided]


_KEYS = "all keys are of one type, int or str"


@compile_node.register(CoGroup)
@compile_node.register(AsOf)
def _(node: CoGroup | AsOf, inputs: Sequence[Items], compiling: Compiling) -> Items:
    left, right = inputs
    return (compiling.decide(AdaptiveJoin(node, left, right, compiling.facts, (), True)),)


def may_be_small(node: Join, is_bounded: Callable[[Node], bool]) -> list[IsLeft]:
    """Return which sides may travel to the other one, in the order in which they are looked at."""
    # A side whose unmatched items are emitted cannot be broadcast: a task sees only its own part of the other side.
    candidates = {"inner": [False, True], "left": [False], "right": [True], "full": []}[node.how]
    return [is_left for is_left in candidates if is_bounded(node.left if is_left else node.right)]


@record(slots=False, eq=False)
class AdaptiveJoin:
    """A join that measures its sides: one small enough is broadcast to the other one, or both are shuffled by key.

    Attributes:
        candidates: the sides whose sizes are still to be measured.
        counts: both sides end.
        keys: the evaluation of both key functions, if columns support them; None: they are called.
        used: the parts of the rows that are used downstream; None: all.
        targets: the number of partitions if both sides are shuffled.
        partitions: the number of partitions of each side.
        kept: the sides that were computed and stored.
        sizes: the bytes of the items of these.
        beside: which of them have side rows, which the reader of the side passes on.
    """

    node: Join | SemiJoin | CoGroup | AsOf
    left: Items
    right: Items
    facts: ClusterFacts
    candidates: tuple[IsLeft, ...]
    counts: bool
    keys: tuple[_Key, _Key] | None = None
    used: PartsUsed | None = None
    targets: int = 0
    partitions: tuple[int, int] = (0, 0)
    kept: Mapping[IsLeft, Vertex] = field(default_factory=dict)
    sizes: Mapping[IsLeft, int] = field(default_factory=dict)
    beside: frozenset[IsLeft] = frozenset()
    is_coming: bool = False

    @property
    def inputs(self) -> tuple[Items, ...]:
        return self.left, self.right

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        left, right = (number or 0 for number in partitions)
        # The partitions of a side without an end are not counted: it is never shuffled.
        targets = 1 if self.facts.is_sequential else self.facts.targets(left + right if self.counts else 1)
        begun = replace(self, left=inputs[0], right=inputs[1], targets=targets, partitions=(left, right))
        # Below 0 no side travels, so none has to be measured.
        return begun._look_at_next() if self.facts.largest_small_side >= 0 else begun._all_move()

    def _look_at_next(self) -> Move:
        if not self.candidates:
            return self._all_move()
        is_left = self.candidates[0]
        vertex = self._routed(is_left, is_kept=True)
        looking = replace(self, kept={**self.kept, is_left: vertex})
        purpose = f"the {_name(is_left)} side is computed, and measured"
        return Ask(looking, vertex, "bytes", vertices.EVERYTHING, self.node.step, purpose, outcomes=self._sizes())

    def _sizes(self) -> tuple[Outcome, ...]:
        """Return how large the side may be that is looked at; `peek` steps may have seen something of a small one."""
        largest, name = self._largest(self.candidates[0]), _name(self.candidates[0])
        is_last, bound = len(self.candidates) == 1, self._bound(self.candidates[0])
        small = f"if it is {bound}"
        large = f"if no side is {bound}" if is_last else f"if the {name} side is larger"
        return (
            Outcome(((ITEMS, 0),), small),
            Outcome(((ITEMS, 0), (ITEMS + 1, 1)), small),
            Outcome(((ITEMS, largest + 1),), large),
        )

    def _largest(self, is_left: IsLeft) -> int:
        """Return how many bytes a side may have to be sent to the tasks of the other one."""
        if not self.counts:  # Without an end, the other side cannot be shuffled.
            return self.facts.largest_small_side
        return self.facts.largest_sent(self.partitions[1 if is_left else 0], self.sizes.get(not is_left))

    def _bound(self, is_left: IsLeft) -> str:
        """Return the bound of a side in words."""
        if (not is_left) not in self.sizes or self.facts.largest_small_side <= SMALL_SIDE:
            return f"at most {_bytes(self._largest(is_left))}"
        return f"at most {_bytes(SMALL_SIDE)}, or small beside the other one"

    def _sent(self) -> IsLeft | None:
        """Return which measured side is sent to the tasks of the other one, the smaller one first; None: neither."""
        by_size = sorted(self.sizes, key=self.sizes.__getitem__)
        return next((is_left for is_left in by_size if self.sizes[is_left] <= self._largest(is_left)), None)

    def next(self, report: Any) -> Move:
        if not isinstance(report, Report):
            return self._travelling(self.candidates[0], report)
        is_left, *others = self.candidates
        if self.is_coming:
            return self._distributed(tuple(bytes(row.payload) for row in report.rows))
        size = sum(size for channel, size in report.rows if channel == ITEMS)
        known = replace(self, sizes={**self.sizes, is_left: size})
        if any(channel > ITEMS or channel == WATERMARKS for channel, _ in report.rows):
            known = replace(known, beside=self.beside | {is_left})
        sent = known._sent()
        if sent is None:
            return replace(known, candidates=tuple(others))._look_at_next()
        purpose = f"the {_name(sent)} side comes to this process"
        coming = replace(known, candidates=(sent,), is_coming=True)
        return Ask(coming, known.kept[sent], "rows", vertices.ITEMS, self.node.step, purpose)

    def _distributed(self, payloads: tuple[bytes, ...]) -> Move:
        """Send a side that reached the driver to the tasks: with their function, or a large one apart from it."""
        if sum(map(len, payloads)) > SMALL_SIDE:
            return SendToAll(self, payloads)
        return self._travelling(self.candidates[0], InFunction("", payloads))

    def _travelling(self, is_left: IsLeft, sent: Payloads) -> Move:
        """Broadcast a side to each task of the other one."""
        other = not is_left
        passing: Items = (self._buffered_side(other),) if other in self.kept else self._items(other)
        side = None if other in self.kept else self._side(other)
        matching = self._matching(is_left)
        join = JoinWithSent(sent, matching, self._side(is_left).step, side)
        note = f"each task has the whole {_name(is_left)} side"
        decided = () if side is None else self._keys_of(other)
        met = piped(passing, self.node, join, note, decided, self._gives(), beside=(self.kept[is_left],))
        return Done((*self._beside(is_left), *met))

    def _buffered_side(self, is_left: IsLeft) -> Rows:
        why = f"the {_name(is_left)} side stays where it is"
        return Rows((Taken(self.kept[is_left]),), None, read_buckets, is_ordered=False, why=why)

    def _beside(self, is_left: IsLeft) -> Iterator[Input]:
        """Yield an input without items that passes on the side rows of a side that is not read again."""
        if is_left in self.beside:
            yield Rows((Taken(self.kept[is_left], vertices.BESIDE_AND_WATERMARKS),), None)

    def _all_move(self) -> Move:
        """Shuffle both sides by key, the buffered one before the other one in each partition."""
        node = self.node
        if not self.counts:
            raise UnsupportedError(
                f"the Spark engine joins an infinite stream only with one of at most "
                f"{self.facts.largest_small_side:,} bytes: {node.label()}; limit() it before"
            )
        holds_left, does, meet = self._meeting()
        # A side that was computed to be measured is not computed again.
        first = self.kept.get(holds_left) or self._routed(holds_left)
        behind = self.partitions[0 if holds_left else 1]
        second = self.kept.get(not holds_left) or self._routed(not holds_left, first=behind)
        # Its targets follow those of the first side, so that each partition reads all of the buffered side first.
        together = (Taken(first), Taken(second, behind=self.targets))
        met = Rows(together, self.targets, read_buckets, is_ordered=False, why=_MEET, notes=self._notes())
        return Done(piped((met,), node, functools.partial(meet, self.targets), does, gives=self._gives()))

    def _gives(self) -> OutputFormat:
        """Return the format of the results: entries with columns of both sides, or items of one side."""
        if not isinstance(self.node, Join | SemiJoin):
            return one_by_one("an operation on two streams gives items one by one")
        if not self.facts.reads_functions or not all(side.has_keys_in_columns for side in self._sides):
            return one_by_one()
        if isinstance(self.node, SemiJoin):
            return only_if(_KEYS)
        partners = "" if self.node.how == "inner" else ", and each item has a partner"
        values = "all values of a side are numbers, strings, tuples of these, or records"
        return only_if(f"{_KEYS}, {values}, of one type{partners}")

    def _meeting(self) -> tuple[bool, str, Callable[..., Any]]:
        """Return whether the left side is first where both meet, the work there in words, and its function."""
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
        # Both sides were measured, and the smaller one takes less memory.
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
        if not self.kept:
            return (_HOT_KEY,)
        names, bound = " or ".join(map(_name, self.kept)), self._bound(list(self.kept)[-1])
        small = f"if the {names} side is {bound}, it travels to the tasks of the other one, and nothing moves"
        return f"{small}; a hot key is split then", _HOT_KEY

    def _routed(self, is_left: IsLeft, *, is_kept: bool = False, first: int = 0) -> Vertex:
        in_columns = self.facts.reads_functions and isinstance(self.node, Join | SemiJoin)
        node = self.node.left if is_left else self.node.right
        parts = None if self.used is None else self.used.of(is_left)
        sink = RouteSide(self._side(is_left), self.targets, in_columns, parts)
        does = f"sends the items of the {_name(is_left)} side to the place of their key{_columns_sent(parts, node)}"
        return Vertex(self._items(is_left), sink, self.node.step, is_kept, first, does, decided=self._keys_of(is_left))

    def _keys_of(self, is_left: IsLeft) -> Sequence[Evaluation]:
        """Return the decisions on the functions that take the items of a side."""
        if self.keys is not None:
            return self.keys[0 if is_left else 1][1]
        return [each for each in called_by(self.node, self.facts) if each.name.startswith(_name(is_left))]

    def _items(self, is_left: IsLeft) -> Items:
        return self.left if is_left else self.right

    def _side(self, is_left: IsLeft) -> Side:
        return self._sides[0 if is_left else 1]

    @property
    def _sides(self) -> tuple[Side, Side]:
        return sides_of(self.node, (None, None) if self.keys is None else (self.keys[0][0], self.keys[1][0]))


def _columns_sent(parts: frozenset[str] | None, side: Node) -> str:
    """Return which columns of files alone are sent, in words."""
    reads = (each for each in topological(side) if isinstance(each, Read))
    is_named = parts and any(SourceTraits(each.source).maker == "parquet_rows" for each in reads)
    return f"; of rows of Parquet {', '.join(sorted(parts))} alone" if parts and is_named else ""


_MEET = "equal keys of both sides meet in one place"
_HOT_KEY = "else all items of a hot key come to one task, which holds one side of it, on disk past the memory bound"


def _name(is_left: IsLeft) -> str:
    return "left" if is_left else "right"


def _bytes(size: int) -> str:
    return f"{size >> 20} MB" if size >= 2**20 else f"{size:,} bytes"


@compile_node.register
def _(node: HashJoin, inputs: Sequence[Items], compiling: Compiling) -> Items:
    left, right = inputs
    return (
        compiling.decide(
            BroadcastHashJoin(
                node, left, right, RightSide.of(node, compiling.facts.broadcast_limit), called_by(node, compiling.facts)
            )
        ),
    )


@record(slots=False, eq=False)
class BroadcastHashJoin:
    """A hash join whose right side is computed and measured, collected in the driver, and then sent to all tasks.

    Attributes:
        go_on: what to do with what was asked for last.
        computed: writes the right side.
    """

    node: HashJoin
    left: Items
    right: Items
    side: RightSide
    decided: Sequence[Evaluation] = ()
    go_on: Callable[[BroadcastHashJoin, Any], Move] | None = None
    computed: tuple[Vertex, ...] = ()

    counts = False

    @property
    def inputs(self) -> tuple[Items, ...]:
        return self.left, self.right

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        left, right = inputs
        step, does = self.node.step, "writes what of the right side goes to every task"
        vertex = Vertex(right, WriteRightSide(self.side), step, is_kept=True, does=does)
        measured = replace(self, left=left, right=right, go_on=BroadcastHashJoin._measured)
        purpose = f"the right side is computed, and measured: at most {self.side.limit:,} bytes"
        return Ask(measured, vertex, "bytes", vertices.ITEMS, step, purpose, outcomes=(Outcome(((ITEMS, 0),)),))

    def next(self, report: Any) -> Move:
        assert self.go_on is not None, "only a decision that asked gets a report"
        return self.go_on(self, report)

    def _measured(self, report: Report) -> Move:
        with naming(self.node.step):
            # Before the rows are sent to this process, which may lack the memory for them.
            self.side.check(sum(size for _, size in report.rows))
        come = replace(self, go_on=BroadcastHashJoin._distributed)
        purpose = "the right side comes to this process"
        return Ask(come, report.vertex, "rows", vertices.ITEMS, self.node.step, purpose)

    def _distributed(self, report: Report) -> Move:
        sending = replace(self, go_on=BroadcastHashJoin._sent, computed=(report.vertex,))
        return SendToAll(sending, tuple(row.payload for row in report.rows))

    def _sent(self, sent: Payloads) -> Move:
        note = "each process has the whole right side, as a table"
        return Done(piped(self.left, self.node, LookUp(self.node, sent), note, self.decided, beside=self.computed))
