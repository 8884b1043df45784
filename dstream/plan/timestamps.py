"""`timed`: the rewriting of a plan of unbounded items, which are represented as pairs `(timestamp, item)`.

From the operation that assigns timestamps on, or from the first one over epochs, items are pairs. The user's functions
do not see this: steps unpack the item of a pair, and pair the result with its timestamp. Upstream of it, and on the
right side of a hash join, items are unchanged.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar, cast

from dstream.base.records import record
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.failures.attribution import failed_on
from dstream.keys import canonical
from dstream.plan.operations.calls import Filter, FlatMap
from dstream.plan.operations.elementwise import CallResults, Chain, UsingBatches
from dstream.plan.operations.ends import Several, Write
from dstream.plan.operations.pairs import HashJoin
from dstream.plan.operations.streams import Concat, Fork, Hint, Node, Read, Spread
from dstream.plan.operations.unbounded import AssignTimestamps, OverEpochs
from dstream.plan.steps import NO_CALL, Op, PairFunction, Step, unchanged
from dstream.plan.walk import fold, topological
from dstream.spi import Split, StreamSource
from dstream.spi.runtime import OpenedLater
from dstream.spi.sink import Collections
from dstream.values.time import MOST_INSTANT, Late, Timed, instant
from dstream.values.user_functions import shown_function

__all__ = [
    "BatchOfPairs",
    "InstantOf",
    "KeyOfPair",
    "StreamRead",
    "in_time",
    "is_in_time",
    "joined_again",
    "late_ones",
    "late_ones_of",
    "timed",
]


class InstantOf:
    """A function that returns the milliseconds since 1970 of an item's timestamp, also of a datetime with a zone."""

    __slots__ = ("__qualname__", "fn")
    around: ClassVar[PairFunction] = "instant"

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn
        self.__qualname__ = shown_function(fn)

    def __call__(self, item: Any) -> int:
        """Return the timestamp of one item.

        Raises:
            TypeError: the result of the function is no timestamp.
            ValueError: it is a datetime without a time zone, or too far away.
        """
        found = self.fn(item)
        # The common case, without a further check.
        return found if type(found) is int and -MOST_INSTANT < found < MOST_INSTANT else instant(found)


def is_in_time(item: Any) -> bool:
    """Return whether an item is a result."""
    return type(item) is not Late


def late_ones(item: Any) -> tuple[Any, ...]:
    """Return the item that arrived too late, unchanged, in a tuple; an empty one for a result."""
    return (item.item,) if type(item) is Late else ()


def in_time(upstream: Node) -> Filter:
    """Return the results of an operation that lets late items go on."""
    return Filter(upstream, is_in_time, step=NO_CALL)


def late_ones_of(upstream: Node) -> FlatMap:
    """Return the operation that emits the late items of `upstream`, unchanged."""
    return FlatMap(upstream, late_ones, step=NO_CALL)


@record
class StreamRead:
    """The source of a stage that never ends.

    Attributes:
        source: a `StreamSource`, or what becomes one when a context opens it.
    """

    source: Any

    ordered = True
    bounded = True
    """Each epoch reads ranges that end."""
    in_caller = False

    @property
    def has_columns(self) -> bool:
        """Whether items can be read in columns."""
        return bool(getattr(self.source, "has_columns", False))

    @property
    def stream(self) -> StreamSource[Any]:
        """Return the source, once it is open."""
        assert isinstance(self.source, StreamSource), "a context opens the plan before a job runs"
        return self.source

    def opened(self, context: Collections) -> StreamRead:
        """Return a copy of the operation with a source that is open."""
        return StreamRead(self.source.opened(context)) if isinstance(self.source, OpenedLater) else self

    def splits(self, parallelism: int) -> Iterable[Split[Any]]:
        """Refuse: the loop of a job replaces this source with the ranges of an epoch.

        Raises:
            IllegalStateError: always.
        """
        return _refuse()

    def __repr__(self) -> str:
        return str(getattr(self.source, "label", self.source))


def _refuse() -> NoReturn:
    raise IllegalStateError("items without an end are read by jobs, range by range")


@record
class KeyOfPair:
    """The key function of a hash join.

    Attributes:
        key: returns the key of an item.
    """

    key: Callable[[Any], Any]

    def __call__(self, pair: Timed) -> Any:
        """Return the key of the item, canonical; an error names the item and not the pair."""
        try:
            return canonical(self.key(pair[1]))
        except Exception as error:
            failed_on(error, pair[1])
            raise


@record
class BatchOfPairs:
    """The function of a step that calls a service for several items at a time.

    Attributes:
        fn: takes (service, items); returns their results.
    """

    fn: Callable[[Any, list[Any]], Iterable[Any]]

    def __call__(self, service: Any, pairs: Sequence[Timed]) -> Iterator[Timed]:
        """Yield the results, each with the timestamp of its item."""
        results = self.fn(service, [item for _, item in pairs])
        return zip((timestamp for timestamp, _ in pairs), results, strict=True)


def joined_again(joined: tuple[Timed, Any]) -> Timed:
    """Return a pair and its match as the pair of the item and its match."""
    (timestamp, item), match = joined
    return timestamp, (item, match)


C = TypeVar("C", bound=Node)


def timed(root: C) -> C:
    """Return a copy of the plan with timestamps added to the items; without an operation over epochs, the same plan.

    Items are not moved: a watermark cannot pass a step that spreads them, so `rebalance()` and
    `set_local_parallelism(n)` have no effect on unbounded items in such a plan.

    Raises:
        UnsupportedError: an operation on unbounded items needs all of them.
    """
    has_epochs = any(each.is_of_epoch for each in topological(root))
    return cast(C, fold(root, lifted).core) if has_epochs else root


@record
class Flow:
    """The replacement of an operation.

    Attributes:
        core: the operation instead of it.
        is_endless: its items have no end.
        is_timed: its items are pairs.
    """

    core: Node
    is_endless: bool = False
    is_timed: bool = False


@functools.singledispatch
def lifted(node: Node, inputs: Sequence[Flow]) -> Flow:
    """Return the replacement of `node`, whose inputs became `inputs`; operations over unbounded data are not supported.

    Raises:
        UnsupportedError: an input has no end.
    """
    if any(each.is_endless for each in inputs):
        index = f" at {node.step.where}" if node.step.where else ""
        raise UnsupportedError(
            f"{node.step.label}{index} needs all items, and these have no end: window(...) makes ends, and keeps what "
            "is done inside of each window"
        )
    return _like(node, inputs)


def _like(node: Node, inputs: Sequence[Flow]) -> Flow:
    """Return a copy of the operation, whose items are endless or timed if its inputs' items are."""
    core = node.reading([each.core for each in inputs])
    return Flow(core, any(each.is_endless for each in inputs), any(each.is_timed for each in inputs))


@lifted.register
def _(node: Read, inputs: Sequence[Flow]) -> Flow:
    return Flow(node, is_endless=isinstance(node.source, StreamRead))


@lifted.register(Fork)
@lifted.register(Hint)
@lifted.register(Several)
def _(node: Node, inputs: Sequence[Flow]) -> Flow:
    return _like(node, inputs)


@lifted.register
def _(node: Spread, inputs: Sequence[Flow]) -> Flow:
    return inputs[0] if inputs[0].is_endless else _like(node, inputs)


@lifted.register
def _(node: Chain, inputs: Sequence[Flow]) -> Flow:
    (before,) = inputs
    if not before.is_timed:
        return _like(node, inputs)
    ops = (_unpair(node.step), *node.ops, _pair(node.step))
    return dataclasses.replace(before, core=_then(before.core, ops, node.step))


@lifted.register
def _(node: CallResults, inputs: Sequence[Flow]) -> Flow:
    (before,) = inputs
    if before.is_endless and node.calling.is_shared:
        index = f" at {node.step.where}" if node.step.where else ""
        raise UnsupportedError(
            f"{node.step.label}{index}: tasks share a rate or a cache by moving items, which watermarks cannot pass; "
            "leave rate= and cache= out where windows or states follow"
        )
    return dataclasses.replace(before, core=dataclasses.replace(node, upstream=before.core, is_timed=before.is_timed))


@lifted.register
def _(node: UsingBatches, inputs: Sequence[Flow]) -> Flow:
    (before,) = inputs
    if not before.is_timed:
        return _like(node, inputs)
    return dataclasses.replace(before, core=node.with_inputs([before.core], fn=BatchOfPairs(node.fn)))


@lifted.register
def _(node: Concat, inputs: Sequence[Flow]) -> Flow:
    if not any(each.is_timed for each in inputs):
        return _like(node, inputs)
    # If one part has timestamps, all need pairs: what reads them takes items of one form.
    return _like(node, [_paired(each, node.step) for each in inputs])


@lifted.register
def _(node: HashJoin, inputs: Sequence[Flow]) -> Flow:
    left, right = inputs
    if right.is_endless:
        index = f" at {node.step.where}" if node.step.where else ""
        raise UnsupportedError(f"the right side of {node.step.label}{index} must end: every task holds all of it")
    if not left.is_timed:
        return dataclasses.replace(_like(node, inputs), is_endless=left.is_endless)
    assert node.left_key is not None, "a hash join has two keys"
    join = dataclasses.replace(node, left=left.core, right=right.core, left_key=KeyOfPair(node.left_key))
    return dataclasses.replace(left, core=_then(join, (Op("map", joined_again, None, _unseen(node.step)),), node.step))


@lifted.register
def _(node: AssignTimestamps, inputs: Sequence[Flow]) -> Flow:
    return dataclasses.replace(_over([_paired(each, node.step) for each in inputs], node), is_timed=True)


@lifted.register
def _(node: OverEpochs, inputs: Sequence[Flow]) -> Flow:
    return _over([_paired(each, node.step) for each in inputs], node)


def _over(inputs: Sequence[Flow], node: Node) -> Flow:
    """Return an operation whose items are endless, even if its inputs are not: a bounded source is run as a stream."""
    return dataclasses.replace(_like(node, inputs), is_endless=True, is_timed=True)


@lifted.register
def _(node: Write, inputs: Sequence[Flow]) -> Flow:
    (before,) = inputs
    return _like(node, [_unpaired(before, node.step)])


def _paired(flow: Flow, step: Step) -> Flow:
    """Return the items in pairs; those that had no timestamp have None for it."""
    if flow.is_timed:
        return flow
    return dataclasses.replace(flow, core=_then(flow.core, (_pair(step),), step), is_timed=True)


def _unpaired(flow: Flow, step: Step) -> Flow:
    """Return the items without their timestamps; a chain that ends in pairs makes none then."""
    if not flow.is_timed:
        return flow
    return dataclasses.replace(flow, core=_items_alone(flow.core, step), is_timed=False)


def _items_alone(core: Node, step: Step) -> Node:
    # To make pairs and take them apart again would cost two steps for each item.
    if isinstance(core, Chain) and core.ops[-1].action == "pair":
        return dataclasses.replace(core, ops=core.ops[:-1])
    return _then(core, (_unpair(step),), step)


def _then(upstream: Node, ops: tuple[Op, ...], step: Step) -> Node:
    """Return a chain downstream of `upstream`; an existing chain at its end is extended instead."""
    if isinstance(upstream, Chain):
        return _then(upstream.upstream, (*upstream.ops, *ops), step)
    named = next((op.step for op in reversed(ops) if op.step.label), _unseen(step))
    return Chain(upstream, ops, step=named)


def _unpair(step: Step) -> Op:
    return Op("unpair", unchanged, None, _unseen(step))


def _pair(step: Step) -> Op:
    return Op("pair", unchanged, None, _unseen(step))


def _unseen(step: Step) -> Step:
    """Return a step that no picture shows."""
    return dataclasses.replace(step, label="")
