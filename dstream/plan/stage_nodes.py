"""Nodes of pipeline stages, services, and pairs of streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from dstream.plan.keyed_nodes import Pairing
from dstream.plan.nodes import FlatMap, Node
from dstream.plan.operations.pairs import Direction, ZipMode
from dstream.plan.operations.streams import node
from dstream.spi.collector import AggregateOperation, Collector
from dstream.spi.runtime import OpenedLater, Service
from dstream.values.functions import shown_function

__all__ = [
    "Action",
    "Aggregate",
    "AsOf",
    "Cross",
    "Flattened",
    "HashJoin",
    "SemiJoin",
    "Spread",
    "Stateful",
    "Tally",
    "UsingBatches",
    "WithService",
    "Zip",
]


Action = Literal["map", "filter", "flat_map"]
"""What becomes of the result of a function: it takes the item's place, decides whether it stays, or holds several."""


@node
class Aggregate(Node):
    """What an operation makes of the items of its inputs: one result for all of them, or one for each key.

    Attributes:
        upstreams: one for each input of the operation.
        operation: has as many inputs.
        reductions: what reduces the items of each input: with keys, keyed collectors.
        is_keyed: there is a result for each key, in place of one for all items, also for none.
        to: makes what goes on of a key and its result; None: an `Entry`. Without keys, the result goes on as it is.
        name: the method that the user called.
        given: what the user gave to it, in short.
    """

    upstreams: tuple[Node, ...]
    operation: AggregateOperation[Any, Any, Any]
    reductions: tuple[Collector[Any, Any, Any], ...]
    is_keyed: bool
    to: Callable[[Any, Any], Any] | None = None
    name: str = "aggregate"
    given: str | None = None

    def inputs(self) -> tuple[Node, ...]:
        return self.upstreams

    def label(self) -> str:
        return f".{self.name}({repr(self.operation) if self.given is None else self.given})"


@node
class Flattened(FlatMap):
    """The items of the lists that the aggregate before has made, which is the step that pictures show."""

    def label(self) -> str:
        return ""


@node
class Stateful(Node):
    """What a function makes of each item and of a state that earlier items left: one state, or one for each key.

    Items pass in encounter order if they have one. Results stand where their items stood.

    Attributes:
        create: makes the state, which `fn` changes in place.
        fn: takes (state, item), with a key (state, key, item).
        action: what becomes of its result.
        key: gives the key of an item; None: one state for all items.
    """

    upstream: Node
    create: Callable[[], Any]
    fn: Callable[..., Any]
    action: Action
    key: Callable[[Any], Any] | None = None
    name: str = "map_stateful"
    given: str | None = None

    def label(self) -> str:
        shown = f"{shown_function(self.create)}, {shown_function(self.fn)}" if self.given is None else self.given
        return f".{self.name}({shown})"


@node
class HashJoin(Pairing):
    """Each item of `left` with each item of `right` that has its key, as pairs; the right side travels to every task.

    Items of `left` keep their order, and matches have that of `right`. Both keys are functions.

    Attributes:
        projecting: what of a right item is in the pair; None: all of it.
        is_inner: items that match nothing are left out; otherwise they come once, with None.
        broadcast_limit: how many bytes the right side may have; None: what the context says.
        refresh_every: a job without an end reads the right side again after so many seconds; None: never.
    """

    projecting: Callable[[Any], Any] | None = None
    is_inner: bool = False
    broadcast_limit: int | None = None
    refresh_every: float | None = None

    def call(self, other: str) -> str:
        name = "inner_hash_join" if self.is_inner else "hash_join"
        return f".{name}({', '.join([other, *self._on()])})"


@node
class WithService(Node):
    """What a function makes of each item with the help of a service, which tasks make where they are.

    Attributes:
        service: what gives it; or what does, once a context is there.
        fn: takes (service, item).
        action: what becomes of its result.
    """

    upstream: Node
    service: Service[Any] | OpenedLater
    fn: Callable[[Any, Any], Any]
    action: Action
    name: str = "map_using"

    def _arguments(self) -> Iterable[str]:
        return (repr(self.service), shown_function(self.fn))

    def label(self) -> str:
        return f".{self.name}({', '.join(self._arguments())})"


@node
class Spread(Node):
    """The same items in `count` partitions of about equal size, in their encounter order if they have one.

    Attributes:
        count: how many; None: as many as the cores suggest.
    """

    upstream: Node
    count: int | None = None
    name: str = "rebalance"

    def label(self) -> str:
        return f".{self.name}({'' if self.count is None else self.count})"


@node
class Tally(Node):
    """The same items, which are counted where they are.

    Attributes:
        take: is called in the caller's process with how many a task has let pass, once for each task.
    """

    upstream: Node
    take: Callable[[int], object]

    def label(self) -> str:
        return ""


@node
class UsingBatches(Node):
    """What a function makes of some items at a time with the help of a service: results in the order of the items.

    The first time it gets one item, then twice as many each time, up to `size`.

    Attributes:
        service: what gives it; or what does, once a context is there.
        fn: takes (service, items); gives their results.
        size: how many items it takes at most.
        given: what the user gave to the method, in short.
    """

    upstream: Node
    service: Service[Any] | OpenedLater
    fn: Callable[[Any, list[Any]], Iterable[Any]]
    size: int = 256
    name: str = "map_using_batches"
    given: str | None = None

    def label(self) -> str:
        shown = f"{self.service!r}, {shown_function(self.fn)}" if self.given is None else self.given
        return f".{self.name}({shown})"


@node
class Zip(Pairing):
    """The items of two streams at equal places.

    Attributes:
        how: up to which end.
        fill: stands for what the shorter one lacks.
    """

    how: ZipMode = "shortest"
    fill: Any = None

    def call(self, other: str) -> str:
        match self.how:
            case "strict":
                return f".zip({other}, strict=True)"
            case "longest":
                return f".zip_longest({other}{'' if self.fill is None else ', ' + repr(self.fill)})"
            case "interleaved":
                return f".interleave({other})"
        return f".zip({other})"


@node
class SemiJoin(Pairing):
    """The left items whose keys the right side has, or has not.

    Attributes:
        is_anti: those whose keys it does not have.
        name: the method that the user called.
        shows_keys: the user gave the key functions.
    """

    is_anti: bool = False
    name: str = "semi_join"
    shows_keys: bool = False

    def call(self, other: str) -> str:
        return f".{self.name}({', '.join([other, *(self._on() if self.shows_keys else ())])})"


@node
class Cross(HashJoin):
    """Each item of `left` with each one of `right`: a hash join by a key that all of them have."""

    def call(self, other: str) -> str:
        return f".cross({other})"


@node
class AsOf(Pairing):
    """Each left item with the nearest right one in a direction, or None; both keys are those of `by`, if there is one.

    Attributes:
        left_on: gives the place of an item of `left`.
        right_on: the same for `right`.
        has_by: the user gave `by`.
    """

    left_on: Callable[[Any], Any] = abs
    right_on: Callable[[Any], Any] = abs
    direction: Direction = "backward"
    tolerance: Any = None
    has_by: bool = False

    def call(self, other: str) -> str:
        given = [other, _shown("on", self.left_on, self.right_on)]
        given += [_shown("by", self.left_key, self.right_key)] if self.has_by else []
        given += [f"direction={self.direction!r}"] if self.direction != "backward" else []
        given += [f"tolerance={self.tolerance!r}"] if self.tolerance is not None else []
        return f".asof_join({', '.join(given)})"


def _shown(name: str, left: Any, right: Any) -> str:
    shown = shown_function(left)
    return f"{name}={shown}" if left is right else f"{name}=({shown}, {shown_function(right)})"
