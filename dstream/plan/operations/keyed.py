"""Operations by key on one stream, or on several that are reduced together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dstream.keys import canonical
from dstream.plan.operations.elementwise import Action
from dstream.plan.operations.streams import OrderPreserving, SeveralInputs, as_inputs, never, node
from dstream.plan.steps import Step
from dstream.spi.collector import AggregateOperation, Collector
from dstream.values.user_functions import shown_function

__all__ = ["Aggregate", "Distinct", "PartitionBy", "Stateful"]


@node
class Distinct(OrderPreserving):
    """The first item of each key; the key of an item is `key(item)`, or the item itself."""

    key: Callable[[Any], Any] | None = None

    def _function(self) -> Callable[..., Any] | None:
        return self.key

    def replay(self) -> Callable[[Any], Any] | None:
        return functools.partial(_key, self.key)

    def _arguments(self) -> Iterable[str]:
        return () if self.key is None else (shown_function(self.key),)


def _key(key: Callable[[Any], Any] | None, item: Any) -> Any:
    return canonical(item if key is None else key(item))


@node
class PartitionBy(OrderPreserving):
    """The same items in `count` partitions, by the key of an entry, by a function, or by the item itself.

    Attributes:
        count: the number of partitions; None: it depends on the cores.
    """

    needs_all = "partitioned"
    has_order = never

    count: int | None
    key: Callable[[Any], Any] | None = None

    def _function(self) -> Callable[..., Any] | None:
        return self.key

    def _arguments(self) -> Iterable[str]:
        if self.count is not None:
            yield str(self.count)
        if self.key is not None:
            yield f"key={shown_function(self.key)}"


@node
class Aggregate(SeveralInputs):
    """The results of an operation for the items of its inputs: one for all of them, or one for each key.

    Attributes:
        operation: has one input for each upstream.
        reductions: the collectors of the items of each input. With keys these are keyed collectors; without, the
            collector of the user's may be one as well, whose result is then one dictionary.
        is_keyed: there is a result for each key, instead of one for all items, also for none.
        to: makes the emitted item of a key and its result; None: an `Entry`. Without keys, the result itself is
            emitted.
    """

    needs_all = "aggregated"
    has_end = as_inputs

    operation: AggregateOperation[Any, Any, Any]
    reductions: tuple[Collector[Any, Any, Any], ...]
    is_keyed: bool
    to: Callable[[Any, Any], Any] | None = None

    def has_order(self, inputs: Sequence[bool]) -> bool:
        return not self.is_keyed

    def shipped(self) -> Iterator[tuple[Step, Any]]:
        return ((self.step, value) for value in (*self.reductions, *(() if self.to is None else (self.to,))))

    def replay(self) -> Callable[[Any], Any] | None:
        """Return the reduction of the item alone; of several inputs it is not known whose item it is."""
        return functools.partial(collected, self.reductions[0]) if len(self.reductions) == 1 else None

    @property
    def combines(self) -> bool:
        """Whether containers of one group can be combined; otherwise one task accumulates all its items, in order."""
        return self.operation.combine is not None

    def _arguments(self) -> Iterable[str]:
        return (repr(self.operation),)


def collected(collector: Collector[Any, Any, Any], item: Any) -> Any:
    """Return the result of a collector for one item."""
    return collector.collect([item])


@node
class Stateful(OrderPreserving):
    """The results of a function for each item and a state of earlier items: one state, or one for each key.

    Items pass in encounter order if they have one. Results have the positions of their items.

    Attributes:
        create: creates the state, which `fn` changes in place.
        fn: takes (state, item), with a key (state, key, item).
        action: what becomes of its result.
        key: returns the key of an item; None: one state for all items.
    """

    create: Callable[[], Any]
    fn: Callable[..., Any]
    action: Action
    key: Callable[[Any], Any] | None = None

    def _call(self) -> str:
        return f".map_stateful({shown_function(self.create)}, {shown_function(self.fn)})"
