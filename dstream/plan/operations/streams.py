"""`Node`, the base class of operations, and operations on one stream: sources, caches, and settings of a run.

Each has a `Step`, which contains all that is only displayed. `sort_limit` contains the operations on order and length,
`elementwise` those on single items, `keyed` those by key, `pairs` those on two streams, `unbounded` those of streams
without an end, `ends` the ends of plans.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self, TypeVar, dataclass_transform

from dstream.base.records import with_fields
from dstream.errors import UnsupportedError
from dstream.failures import is_our_name
from dstream.plan.steps import Delivery, Guard, Step, no_key, resolving, unchanged
from dstream.spi.source import Source, input_size
from dstream.values.entries import Entry, entry_key, entry_value, key_of, value_of

__all__ = [
    "Cache",
    "CacheIdentity",
    "Concat",
    "Configure",
    "Fork",
    "Hint",
    "ItemsOfTable",
    "Node",
    "OrderPreserving",
    "Parallel",
    "Read",
    "ReadCache",
    "SeveralInputs",
    "Spread",
    "Table",
    "Unary",
    "Union",
    "Unordered",
    "always",
    "as_inputs",
    "never",
    "node",
]


C = TypeVar("C", bound=type)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def node(cls: C) -> C:
    """Make `cls` a value that compares by identity: an operation of a plan.

    Type checkers refuse to change it. What would refuse that at run time, `frozen=True`, costs 10 ms of every import of
    dstream: it makes each class three times as slowly, and each object at half the speed (CPython 3.11).
    """
    made: C = with_fields(cls, slots=True)
    return made


def always(self: Node, inputs: Sequence[bool]) -> bool:
    """Return True: the items have the property, whether or not the inputs have it."""
    return True


def never(self: Node, inputs: Sequence[bool]) -> bool:
    """Return False: the items do not have it."""
    return False


def as_inputs(self: Node, inputs: Sequence[bool]) -> bool:
    """Return whether all inputs have the property."""
    return all(inputs)


@node
class Node:
    """One operation: its functions, its values and the operations that it reads from.

    A method of a stream makes a node for the user's call. `rewrite` returns the plan of operations that engines run:
    the same classes, in which some calls have become one operation, and steps have numbers.

    Its methods answer for one operation, `dstream.plan.properties` for a plan. There is no default for order and end: a
    new operation would lose them without an error.

    Attributes:
        step: the user's call that it represents: its name in pictures and in failures.
        needs_all: why items without an end are refused: they cannot be `sorted`, for example; empty: they are taken.
        is_of_epoch: only a job over unbounded data has it.
    """

    needs_all: ClassVar[str] = ""
    is_of_epoch: ClassVar[bool] = False

    # By keyword, since subclasses add fields without defaults.
    step: Step = dataclasses.field(default=Step(), kw_only=True)

    def inputs(self) -> tuple[Node, ...]:
        """Return the operations that this one reads from, in order."""
        return ()

    def with_inputs(self, inputs: Sequence[Node], **changes: Any) -> Self:
        """Return a copy of the operation on other inputs, one for each of `inputs()`, with changed fields."""
        return dataclasses.replace(self, **changes) if changes else self

    def reading(self, inputs: Sequence[Node], **changes: Any) -> Self:
        """Return `with_inputs(...)`, or the operation itself if nothing differs, as it is identified by its `id`."""
        is_same = not changes and all(new is old for new, old in zip(inputs, self.inputs(), strict=True))
        return self if is_same else self.with_inputs(inputs, **changes)

    def streamed_inputs(self) -> tuple[Node, ...]:
        """Return the inputs whose items are streamed: all but `broadcast_inputs`."""
        return self.inputs()

    def broadcast_inputs(self) -> tuple[Node, ...]:
        """Return the operations of which each task has all items."""
        return ()

    def has_order(self, inputs: Sequence[bool]) -> bool:
        """Return whether its items have an encounter order that must be preserved, from whether its inputs have one.

        Raises:
            UnsupportedError: the operation does not define it.
        """
        raise UnsupportedError(f"nobody knows whether the items of {self.label()} are in order")

    def has_end(self, inputs: Sequence[bool]) -> bool:
        """Return whether its items end, from whether its inputs do.

        Raises:
            UnsupportedError: the operation does not define it.
        """
        raise UnsupportedError(f"nobody knows whether the items of {self.label()} end")

    def has_timestamps(self, inputs: Sequence[bool]) -> bool:
        """Return whether its items have timestamps in a job, from whether its inputs do."""
        return bool(inputs) and all(inputs)

    def refusal(self, ends: Sequence[bool]) -> str:
        """Return why it is refused as one of its inputs has no end, as `needs_all`; empty: it is not."""
        return self.needs_all

    def item_count(self, counts: Sequence[int]) -> int | None:
        """Return the number of its items from the numbers of its inputs; None: unknown before it runs."""
        return None

    def all_guards(self) -> Iterable[Guard]:
        """Return the treatments of items that it fails on."""
        return ()

    def shipped(self) -> Iterator[tuple[Step, Any]]:
        """Yield the parts that go to the workers, such as functions and collectors, with their calls."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if callable(value) or (dataclasses.is_dataclass(value) and not isinstance(value, Node | Step)):
                yield self.step, value

    def function(self) -> Callable[..., Any] | None:
        """Return the one function of the user's that it runs on single items, or None."""
        function = self._function()
        return None if any(function is each for each in _OURS) else function

    def _function(self) -> Callable[..., Any] | None:
        """Return the one function that it runs on single items, also one of ours as a default, or None."""
        return None

    def replay(self) -> Callable[[Any], Any] | None:
        """Return the work on one item in this process, or None if it does nothing to a single one."""
        return self.function()

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


_OURS = (Entry, entry_key, entry_value, key_of, no_key, unchanged, value_of)
"""The defaults of functions that the user did not pass."""


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
    """One whose items have an order, and an end, if those before have one."""

    has_order, has_end = as_inputs, as_inputs


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
        delivery: takes the dead letters of its bad records, if the source itself names their destination.
        guards: what happens to its bad records; `rewrite` collects them.
        parts: into about how many splits the source is divided; None: the engine decides.
    """

    source: Source[Any]
    delivery: Delivery | None = None
    guards: tuple[Guard, ...] = ()
    parts: int | None = None

    def has_order(self, inputs: Sequence[bool]) -> bool:
        return self.source.ordered

    def has_end(self, inputs: Sequence[bool]) -> bool:
        return self.source.bounded

    def item_count(self, counts: Sequence[int]) -> int | None:
        size = input_size(self.source)
        return int(size.items) if size.is_exact and size.items is not None else None

    def all_guards(self) -> Iterable[Guard]:
        return self.guards

    def shipped(self) -> Iterator[tuple[Step, Any]]:
        # Only a source's splits are pickled; those of dstream's sources contain the source's functions.
        if is_our_name(type(self.source).__module__):
            yield self.step, self.source
        yield from resolving(self.guards)

    def replay(self) -> Callable[[Any], Any] | None:
        """Return the source's own replay, if it runs a function of the user's on its records."""
        replay: Callable[[Any], Any] | None = getattr(self.source, "replay", None)
        return replay

    def _call(self) -> str:
        return "read"


@node
class Table(Node):
    """The rows of a table of the engine's own kind, such as a Spark DataFrame that the user has.

    Attributes:
        table: the user's table.
        made: makes items of its rows; None for the engine's own rows.
    """

    has_order, has_end = never, always

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
        """Yield the items.

        Args:
            batches: the values of each column, for consecutive rows: structs and maps are dictionaries.
        """
        ...


@node
class ReadCache(Node):
    """The cached items of a `Cache`, in the engine's own format. Only `recalled` makes it."""

    has_end = always

    items: Any
    is_ordered: bool

    def has_order(self, inputs: Sequence[bool]) -> bool:
        return self.is_ordered


@node
class Concat(Node):
    """The items of each part, one part after another."""

    has_order, has_end = as_inputs, as_inputs

    parts: tuple[Node, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def with_inputs(self, inputs: Sequence[Node], **changes: Any) -> Self:
        return dataclasses.replace(self, parts=tuple(inputs), **changes)

    def item_count(self, counts: Sequence[int]) -> int | None:
        return sum(counts)

    def label(self) -> str:
        # Not the label of the step: nested concats become one.
        return f"concat of {len(self.parts)}"


@node
class Union(Concat):
    """The items of all parts, in any order."""

    has_order = never

    def label(self) -> str:
        return Node.label(self)

    def _arguments(self) -> Iterable[str]:
        return ("...",)


@node
class Hint(OrderPreserving):
    """The same items, with a hint for the engine about them, or about the run."""

    def item_count(self, counts: Sequence[int]) -> int | None:
        return counts[0]


@node
class Unordered(Hint):
    """The same items, released from their encounter order."""

    has_order = never


@node
class Parallel(Hint):
    """The number of partitions of the plan; the last one counts; None leaves it to the data and the cores."""

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
    """The same items, computed once and cached for later plans.

    The node itself is a plain value. The cached items belong to the context that computed them
    (`dstream.operators.rows.caches`).

    Attributes:
        identity: the key of the cached items. A rewritten plan has it too.
    """

    needs_all = "cached"

    identity: CacheIdentity = dataclasses.field(default_factory=CacheIdentity)

    def __copy__(self) -> Self:
        return dataclasses.replace(self, identity=CacheIdentity())


@node
class Fork(Cache):
    """The same items for several operations of one plan: computed once in a run, and not shared with other runs.

    Pipelines insert a fork after each stage that several stages read; a stream that is used twice runs twice.
    """

    needs_all = "read by several stages of a pipeline"

    def _call(self) -> str:
        return ""


@node
class Spread(OrderPreserving):
    """The same items in `count` partitions of about equal size; None: their number depends on the cores."""

    needs_all = "spread over partitions"

    count: int | None = None

    def _call(self) -> str:
        return f".rebalance({'' if self.count is None else self.count})"
