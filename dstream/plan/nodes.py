"""The nodes that the fluent methods make: values, immutable, one class for each operation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar, cast, dataclass_transform

from dstream.plan.steps import Step, shown_function
from dstream.plan.where import Where
from dstream.spi.gatherer import Gatherer
from dstream.spi.source import Source

__all__ = [
    "Concat",
    "Configure",
    "Distinct",
    "DropWhile",
    "Filter",
    "FlatMap",
    "Gather",
    "Limit",
    "Map",
    "MapMulti",
    "Node",
    "Parallel",
    "PartitionBy",
    "Peek",
    "Read",
    "Skip",
    "Sorted",
    "TakeWhile",
    "Union",
    "Unordered",
    "node",
    "unchanged",
]

C = TypeVar("C", bound=type)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def node(cls: C) -> C:
    """Make `cls` a frozen node that compares by identity."""
    made: Any = dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)
    return cast(C, made)


@node
class Node:
    """One operation of a plan: its functions, its values and the nodes that it reads from.

    Attributes:
        where: the place of the user's call that made it.
        step: how it names itself when it fails; `rewrite` sets it, since it needs the whole plan.
    """

    where: Where | None = dataclasses.field(default=None, kw_only=True)
    step: Step | None = dataclasses.field(default=None, kw_only=True)

    def inputs(self) -> tuple[Node, ...]:
        """Return the nodes that this one reads from, in order."""
        upstream: Node | None = getattr(self, "upstream", None)
        return () if upstream is None else (upstream,)

    def with_inputs(self, inputs: Sequence[Node], step: Step | None) -> Self:
        """Return the same operation on other nodes, one for each of `inputs()`; it names itself with `step`."""
        changes: dict[str, Any] = dict(zip(("upstream",) if inputs else (), inputs, strict=True))
        return dataclasses.replace(self, step=step, **changes)

    def label(self) -> str:
        """Return the call as the user wrote it, such as `.map(parse)`."""
        name = "".join("_" + c.lower() if c.isupper() else c for c in type(self).__name__).lstrip("_")
        return f".{name}({', '.join(self._arguments())})"

    def _arguments(self) -> Iterable[str]:
        return ()

    def __repr__(self) -> str:
        return f"<{self.label()}>"


@node
class Read(Node):
    """The items of a source."""

    source: Source[Any]
    name: str = "read"

    def label(self) -> str:
        return self.name


@node
class Map(Node):
    """Each item replaced by what `fn` makes of it.

    Attributes:
        kind: None, or the type that a result must have: `int` (checked) or `float` (converted).
        name: the method that the user called.
        given: what the user gave to it, in short; None: the function.
    """

    upstream: Node
    fn: Callable[[Any], Any]
    kind: type | None = None
    name: str = "map"
    given: str | None = None

    def label(self) -> str:
        given = "" if self.fn is unchanged else self.given
        return f".{self.name}({shown_function(self.fn) if given is None else given})"


def unchanged(item: Any) -> Any:
    """Return `item`: the function of a step that only checks or converts."""
    return item


@node
class Filter(Node):
    """The items that satisfy a predicate."""

    upstream: Node
    predicate: Callable[[Any], object]
    name: str = "filter"

    def label(self) -> str:
        return f".{self.name}({shown_function(self.predicate)})"


@node
class FlatMap(Node):
    """The items of all the iterables that `fn` makes; None is an empty one.

    Attributes:
        given: what the user gave to it, in short; None: the function.
    """

    upstream: Node
    fn: Callable[[Any], Iterable[Any] | None]
    kind: type | None = None
    name: str = "flat_map"
    given: str | None = None

    def label(self) -> str:
        return f".{self.name}({shown_function(self.fn) if self.given is None else self.given})"


@node
class MapMulti(Node):
    """What `fn(item, emit)` emits for each item."""

    upstream: Node
    fn: Callable[[Any, Callable[[Any], None]], object]
    kind: type | None = None
    name: str = "map_multi"

    def label(self) -> str:
        return f".{self.name}({shown_function(self.fn)})"


@node
class Peek(Node):
    """The same items; `action` sees each one in the caller's process."""

    upstream: Node
    action: Callable[[Any], object]

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.action),)


@node
class Distinct(Node):
    """The first item of each key; the key of an item is `key(item)`, or the item itself."""

    upstream: Node
    key: Callable[[Any], Any] | None = None

    def _arguments(self) -> Iterable[str]:
        return () if self.key is None else (shown_function(self.key),)


@node
class Sorted(Node):
    """The items in the order of their keys; equal keys keep their order.

    Attributes:
        call: the whole call as the user wrote it, if it was another one; a limit belongs to it then.
    """

    upstream: Node
    key: Callable[[Any], Any] | None = None
    reverse: bool = False
    call: str = ""

    def label(self) -> str:
        return self.call or f".sorted({', '.join(self._arguments())})"

    def _arguments(self) -> Iterable[str]:
        if self.key is not None:
            yield f"key={shown_function(self.key)}"
        if self.reverse:
            yield "reverse=True"


@node
class Limit(Node):
    """The first `count` items.

    Attributes:
        name: the method that the user called; empty if another node stands for that call already.
    """

    upstream: Node
    count: int
    name: str = "limit"

    def label(self) -> str:
        return f".{self.name}({self.count if self.name == 'limit' else ''})" if self.name else ""


@node
class Skip(Node):
    """The items after the first `count`."""

    upstream: Node
    count: int

    def _arguments(self) -> Iterable[str]:
        return (str(self.count),)


@node
class TakeWhile(Node):
    """The longest prefix whose items satisfy a predicate."""

    upstream: Node
    predicate: Callable[[Any], object]

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.predicate),)


@node
class DropWhile(Node):
    """What follows the longest prefix whose items satisfy a predicate."""

    upstream: Node
    predicate: Callable[[Any], object]

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.predicate),)


@node
class Gather(Node):
    """What a gatherer makes of the items.

    Attributes:
        name: the method that the user called.
        given: what the user gave to it, in short.
    """

    upstream: Node
    gatherer: Gatherer[Any, Any, Any]
    name: str = "gather"
    given: str = ""

    def label(self) -> str:
        return f".{self.name}({self.given})"


@node
class Concat(Node):
    """The items of each part, one part after another."""

    parts: tuple[Node, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def with_inputs(self, inputs: Sequence[Node], step: Step | None) -> Self:
        return dataclasses.replace(self, parts=tuple(inputs), step=step)

    def label(self) -> str:
        return f"concat of {len(self.parts)}"


@node
class Union(Concat):
    """The items of all parts, in any order."""

    def label(self) -> str:
        return ".union(...)"


@node
class PartitionBy(Node):
    """The same items, equal keys in one of `count` partitions; the key of an item is that of its entry, or itself."""

    upstream: Node
    count: int
    key: Callable[[Any], Any] | None = None

    def _arguments(self) -> Iterable[str]:
        yield str(self.count)
        if self.key is not None:
            yield f"key={shown_function(self.key)}"


@node
class Unordered(Node):
    """The same items, released from their encounter order."""

    upstream: Node


@node
class Parallel(Node):
    """The same items; the last of these nodes in a plan says in how many partitions it runs.

    Attributes:
        partitions: how many; None leaves it to the data and the cores.
    """

    upstream: Node
    partitions: int | None

    def label(self) -> str:
        if self.partitions == 1:
            return ".sequential()"
        return f".parallel({self.partitions or ''})"


@node
class Configure(Node):
    """The same items; the engine runs with these settings."""

    upstream: Node
    settings: Mapping[str, str]

    def _arguments(self) -> Iterable[str]:
        return (str(dict(self.settings)),)
