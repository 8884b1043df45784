"""Nodes of the fluent methods: immutable values, one class for each operation.

No engine knows them: `rewrite` makes core operations of them, which are a family of their own
(`dstream.plan.operations`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from dstream.plan.operations.streams import CacheIdentity, ItemsOfTable, node
from dstream.plan.steps import Delivery, SourceLocation, Treatment, unchanged
from dstream.spi.gatherer import Gatherer
from dstream.spi.source import Source
from dstream.values.functions import shown_function

__all__ = [
    "Cache",
    "Concat",
    "Configure",
    "DropWhile",
    "Filter",
    "FlatMap",
    "Fork",
    "Gather",
    "Limit",
    "Map",
    "MapMulti",
    "Node",
    "Parallel",
    "Peek",
    "Read",
    "Recover",
    "Shuffle",
    "Skip",
    "Sorted",
    "Table",
    "TakeWhile",
    "Union",
    "Unordered",
]


@node
class Node:
    """One call of the user's: its functions, its values and the nodes that it reads from.

    Attributes:
        where: the place of the call.
        stage: the name that the user gave to the stage of a pipeline which ends here, or None.
    """

    where: SourceLocation | None = dataclasses.field(default=None, kw_only=True)
    stage: str | None = dataclasses.field(default=None, kw_only=True)

    def inputs(self) -> tuple[Node, ...]:
        """Return the nodes that this one reads from, in order."""
        upstream: Node | None = getattr(self, "upstream", None)
        return () if upstream is None else (upstream,)

    def label(self) -> str:
        """Return the call as the user wrote it, such as `.map(parse)`."""
        name = "".join("_" + c.lower() if c.isupper() else c for c in type(self).__name__).lstrip("_")
        return f".{name}({', '.join(self._arguments())})"

    def named_label(self) -> str:
        """Return the call with the name of its stage, if the user gave it one: `.map(parse) as 'parsed'`."""
        return self.label() if self.stage is None else f"{self.label()} as {self.stage!r}"

    def _arguments(self) -> Iterable[str]:
        return ()

    def __repr__(self) -> str:
        return f"<{self.label()}>"


@node
class Read(Node):
    """The items of a source.

    Attributes:
        delivery: takes the dead letters of its bad records, if the source itself says where they go.
    """

    source: Source[Any]
    name: str = "read"
    delivery: Delivery | None = None

    def label(self) -> str:
        return self.name


@node
class Table(Node):
    """The rows of a table of the engine's own kind, such as a Spark DataFrame that the user has.

    Attributes:
        table: the user's table.
        made: makes items of its rows; None for the engine's own rows.
        call: the call as it is shown; None: by the table.
    """

    table: Any
    made: ItemsOfTable | None = None
    call: str | None = None

    def label(self) -> str:
        return self.call or f"from_df({type(self.table).__name__})"


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
    """The same items; `action` sees each one in the caller's process.

    Attributes:
        given: what the user gave to it, in short, if that is no action.
    """

    upstream: Node
    action: Callable[[Any], object]
    given: str | None = None

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.action) if self.given is None else self.given,)


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
class Shuffle(Node):
    """The items, or `count` of them, in the order of the random numbers that `ranking` puts before each."""

    upstream: Node
    ranking: Gatherer[Any, Any, Any]
    count: int | None
    call: str

    def label(self) -> str:
        return f".{self.call}"


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

    def label(self) -> str:
        return f"concat of {len(self.parts)}"


@node
class Union(Concat):
    """The items of all parts, in any order.

    Attributes:
        name: the method that the user called.
    """

    name: str = "union"

    def label(self) -> str:
        return f".{self.name}(...)"


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


@node
class Cache(Node):
    """The same items, computed once and kept for the plans that read them later.

    It is a value as any other. What is kept of it belongs to the context that computed it
    (`dstream.operators.rows.caches`).

    Attributes:
        identity: under which the items are kept. A rewritten plan has it too.
    """

    upstream: Node
    identity: CacheIdentity = dataclasses.field(default_factory=CacheIdentity)

    def __copy__(self) -> Self:
        return dataclasses.replace(self, identity=CacheIdentity())


@node
class Recover(Node):
    """The same items; those that the step before fails on are left out, replaced, or sent away.

    It stands behind the step that it applies to, maybe behind others of its kind.

    Attributes:
        kinds: the exceptions that this is for.
        treatment: what happens to such an item.
        fn: gives the item that takes its place, of the item and the exception.
        kind: what that must be: None, `int` or `float`.
        delivery: takes the dead letters.
        name: the method that the user called; empty if the step before says it.
    """

    upstream: Node
    kinds: tuple[type[Exception], ...]
    treatment: Treatment
    fn: Callable[[Any, Exception], Any] | None = None
    kind: type | None = None
    delivery: Delivery | None = None
    name: str = ""

    def label(self) -> str:
        return f".{self.name}({', '.join(self._arguments())})" if self.name else ""

    def _arguments(self) -> Iterator[str]:
        names = ", ".join(kind.__name__ for kind in self.kinds)
        yield names if len(self.kinds) == 1 else f"({names})"
        if self.fn is not None:
            yield shown_function(self.fn)
        if self.delivery is not None:
            yield f"into={self.delivery.label}"


@node
class Fork(Node):
    """The same items for several nodes of one plan: what stands before it runs once.

    A plan has forks of its own: what was computed for one run is of no use to another. Pipelines put them behind each
    stage that several stages read; a stream that is used twice runs twice.
    """

    upstream: Node

    def label(self) -> str:
        return ""
