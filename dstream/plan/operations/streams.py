"""Operations on one stream: sources, order, length, caches, and settings of a run.

Each has its `Step`, which alone has what is only shown. `elementwise` contains the operations on single items, `keyed`
those by key, `pairs` those on two streams, `unbounded` those of streams without an end, `ends` the ends of plans.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar, cast, dataclass_transform

from dstream.plan.steps import Delivery, EarlyCheck, Guard, KeyInColumns, Step
from dstream.spi.source import Source
from dstream.values.functions import shown_function

__all__ = [
    "Cache",
    "CacheIdentity",
    "Concat",
    "Configure",
    "DropWhile",
    "Fork",
    "Hint",
    "ItemsOfTable",
    "Limit",
    "Node",
    "OrderPreserving",
    "Parallel",
    "Read",
    "ReadCache",
    "SeveralInputs",
    "Skip",
    "Sorted",
    "Spread",
    "Table",
    "TakeWhile",
    "Top",
    "Unary",
    "Union",
    "Unordered",
    "node",
]


C = TypeVar("C", bound=type)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def node(cls: C) -> C:
    """Make `cls` a value that compares by identity: an operation of a plan.

    Type checkers refuse to change it. What would refuse that at run time, `frozen=True`, costs 10 ms of every import of
    dstream: it makes each class three times as slowly, and each object at half the speed (CPython 3.11).
    """
    made: Any = dataclasses.dataclass(slots=True, eq=False, repr=False)(cls)
    return cast(C, made)


@node
class Node:
    """One operation: its functions, its values and the operations that it reads from.

    A method of a stream makes one of what the user wrote. `rewrite` returns the plan of operations that engines run:
    the same classes, in which some calls have become one operation, and steps have numbers.

    Attributes:
        step: the user's call that it stands for: by it it names itself in pictures, and when it fails.
    """

    # By keyword, since subclasses add fields without defaults.
    step: Step = dataclasses.field(default=Step(), kw_only=True)

    def inputs(self) -> tuple[Node, ...]:
        """Return the operations that this one reads from, in order."""
        return ()

    def with_inputs(self, inputs: Sequence[Node], **changes: Any) -> Self:
        """Return the same operation on others, one for each of `inputs()`, with other values of some fields."""
        return dataclasses.replace(self, **changes) if changes else self

    def label(self) -> str:
        """Return the call as the user wrote it, such as `.map(parse)`; of several in one, all of them."""
        return self._call() if self.step.is_unnamed else self.step.label

    def named_label(self) -> str:
        """Return the call with the name of its stage, if the user gave it one: `.map(parse) as 'parsed'`."""
        return self.label() if self.step.stage is None else f"{self.label()} as {self.step.stage!r}"

    def _call(self) -> str:
        """Return the call of an operation whose step has no label."""
        name = "".join("_" + c.lower() if c.isupper() else c for c in type(self).__name__).lstrip("_")
        return f".{name}({', '.join(self._arguments())})"

    def _arguments(self) -> Iterable[str]:
        return ()

    def __repr__(self) -> str:
        return f"<{self.label()}>"


@node
class Unary(Node):
    """An operation on the items of one stream."""

    upstream: Node

    def inputs(self) -> tuple[Node, ...]:
        return (self.upstream,)

    def with_inputs(self, inputs: Sequence[Node], **changes: Any) -> Self:
        (upstream,) = inputs
        return dataclasses.replace(self, upstream=upstream, **changes)


@node
class OrderPreserving(Unary):
    """One whose items have an order, and an end, if those before have one; `properties` knows those that differ."""


@node
class SeveralInputs(Node):
    """An operation on the items of any number of streams.

    Attributes:
        upstreams: one for each input, in order.
    """

    upstreams: tuple[Node, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.upstreams

    def with_inputs(self, inputs: Sequence[Node], **changes: Any) -> Self:
        return dataclasses.replace(self, upstreams=tuple(inputs), **changes)


@node
class Read(Node):
    """The items of a source.

    Attributes:
        delivery: takes the dead letters of its bad records, if the source itself says where they go.
        guards: what happens to its bad records; `rewrite` collects them.
        parts: into about how many splits the source is divided; None: the engine decides.
    """

    source: Source[Any]
    delivery: Delivery | None = None
    guards: tuple[Guard, ...] = ()
    parts: int | None = None

    def _call(self) -> str:
        return "read"


@node
class Table(Node):
    """The rows of a table of the engine's own kind, such as a Spark DataFrame that the user has.

    Attributes:
        table: the user's table.
        made: makes items of its rows; None for the engine's own rows.
    """

    table: Any
    made: ItemsOfTable | None = None

    def _call(self) -> str:
        return f"from_df({type(self.table).__name__})"


class ItemsOfTable(Protocol):
    """Makes items of the rows of a table, in workers."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that are read."""
        ...

    def made(self, batches: Iterable[Sequence[Sequence[Any]]]) -> Iterator[Any]:
        """Give the items.

        Args:
            batches: the values of each column, of some rows after another: structs and maps are dictionaries.
        """
        ...


@node
class ReadCache(Node):
    """The items that an engine kept of a `Cache`, in its own terms. Only `recalled` makes it."""

    items: Any
    is_ordered: bool


@node
class Concat(Node):
    """The items of each part, one part after another."""

    parts: tuple[Node, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def with_inputs(self, inputs: Sequence[Node], **changes: Any) -> Self:
        return dataclasses.replace(self, parts=tuple(inputs), **changes)

    def label(self) -> str:
        # Not that of the step: concats in each other are one in the end.
        return f"concat of {len(self.parts)}"


@node
class Union(Concat):
    """The items of all parts, in any order."""

    def label(self) -> str:
        return Node.label(self)

    def _arguments(self) -> Iterable[str]:
        return ("...",)


@node
class Hint(OrderPreserving):
    """The same items; the engine is told something of them, or of the run."""


@node
class Unordered(Hint):
    """The same items, released from their encounter order."""


@node
class Parallel(Hint):
    """The last of these in a plan says in how many partitions it runs; None leaves it to the data and the cores."""

    partitions: int | None

    def _call(self) -> str:
        return ".sequential()" if self.partitions == 1 else f".parallel({self.partitions or ''})"


@node
class Configure(Hint):
    """The engine runs with these settings."""

    settings: Mapping[str, str]

    def _arguments(self) -> Iterable[str]:
        return (str(dict(self.settings)),)


class CacheIdentity:
    """The identity of a `cache()`: equal to itself alone. A copy of it, or its unpickled form, is another one."""

    __slots__ = ("__weakref__",)


@node
class Cache(OrderPreserving):
    """The same items, computed once and kept for the plans that read them later.

    It is a value as any other. What is kept of it belongs to the context that computed it
    (`dstream.operators.rows.caches`).

    Attributes:
        identity: under which the items are kept. A rewritten plan has it too.
    """

    identity: CacheIdentity = dataclasses.field(default_factory=CacheIdentity)

    def __copy__(self) -> Self:
        return dataclasses.replace(self, identity=CacheIdentity())


@node
class Fork(Cache):
    """The same items for several operations of one plan: computed once in a run, and of no use to another one.

    Pipelines put one behind each stage that several stages read; a stream that is used twice runs twice.
    """

    def _call(self) -> str:
        return ""


@node
class Limit(OrderPreserving):
    """The first `count` items."""

    count: int

    def _arguments(self) -> Iterable[str]:
        return (str(self.count),)


@node
class Skip(OrderPreserving):
    """The items after the first `count`."""

    count: int

    def _arguments(self) -> Iterable[str]:
        return (str(self.count),)


@node
class _Prefix(OrderPreserving):
    """One that looks for the longest prefix whose items satisfy a predicate."""

    predicate: Callable[[Any], object]

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.predicate),)


@node
class TakeWhile(_Prefix):
    """The longest prefix whose items satisfy a predicate, which is trusted to end it."""


@node
class DropWhile(_Prefix):
    """The items behind the longest prefix whose items satisfy a predicate."""


@node
class Sorted(OrderPreserving):
    """The items in the order of their keys; equal keys keep their order.

    Attributes:
        looks: refuse the first item of each task, in the name of what takes the items later; `rewrite` finds them.
    """

    key: Callable[[Any], Any] | None = None
    reverse: bool = False
    looks: tuple[EarlyCheck, ...] = ()

    def _arguments(self) -> Iterable[str]:
        if self.key is not None:
            yield f"key={shown_function(self.key)}"
        if self.reverse:
            yield "reverse=True"


@node
class Top(OrderPreserving):
    """The first `count` items in the order of their keys: `sorted().limit(count)`.

    Attributes:
        is_one_call: its step is the whole of it; otherwise that of the sort.
        columns: how keys may stand in columns; None: not at all.
    """

    count: int
    key: Callable[[Any], Any] | None
    reverse: bool
    is_one_call: bool
    columns: KeyInColumns | None = None

    def label(self) -> str:
        return self.step.label if self.is_one_call else f"{self.step.label}.limit({self.count})"


@node
class Spread(OrderPreserving):
    """The same items in `count` partitions of about equal size; None: as many as the cores suggest."""

    count: int | None = None

    def _call(self) -> str:
        return f".rebalance({'' if self.count is None else self.count})"
