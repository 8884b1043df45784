"""The core operations that stages of pipelines have and streams lack."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

from dstream.plan.core import Core, Keeping, node
from dstream.spi.collector import AggregateOperation, Collector

__all__ = ["Aggregate", "Spread", "Stateful"]


@node
class Aggregate(Core):
    """What an operation makes of the items of its inputs: one result for all of them, or one for each key.

    Attributes:
        operation: has as many inputs.
        reductions: what reduces the items of each input. With keys these are keyed collectors; without, the collector
            of the user's may be one as well, whose result is then one dictionary.
        is_keyed: there is a result for each key, in place of one for all items.
        to: makes what goes on of a key and its result; None: an `Entry`.
    """

    upstreams: tuple[Core, ...]
    operation: AggregateOperation[Any, Any, Any]
    reductions: tuple[Collector[Any, Any, Any], ...]
    is_keyed: bool
    to: Callable[[Any, Any], Any] | None

    def inputs(self) -> tuple[Core, ...]:
        return self.upstreams

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        return dataclasses.replace(self, upstreams=tuple(inputs))

    @property
    def combines(self) -> bool:
        """Whether containers of one group can be combined; otherwise one task accumulates all its items, in order."""
        return self.operation.combine is not None


@node
class Stateful(Keeping):
    """What a function makes of each item and of a state that earlier items left.

    Attributes:
        create: makes the state, one for each key.
        fn: takes (state, item), with a key (state, key, item).
        action: what becomes of its result.
        key: gives the key of an item; None: one state for all items.
    """

    create: Callable[[], Any]
    fn: Callable[..., Any]
    action: Literal["map", "filter", "flat_map"]
    key: Callable[[Any], Any] | None


@node
class Spread(Keeping):
    """The same items in `count` partitions of about equal size; None: as many as the cores suggest."""

    count: int | None
