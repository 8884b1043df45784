"""Vertices that aggregate in one group or by key, in one stage or in two, and their processors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

from dstream.arguments import checked_function, hint_of_a_collector, kind_of, optional_function
from dstream.base.memory import Growth
from dstream.collectors import mapping
from dstream.collectors.batches import batches
from dstream.collectors.groups import groups_of_any_key
from dstream.core.block_processor import SavingProcessor
from dstream.core.suppliers import LibrarySupplier, shown_call
from dstream.failures.attribution import in_group
from dstream.keys.hashing import with_keys_of_this_process
from dstream.operators.windows.arrivals import by_shard
from dstream.operators.windows.results import check_keys, copies_of
from dstream.spi import AggregateOperation, Collector, identity
from dstream.spi.processor import SHARDS, BroadcastKey, Inbox, Outbox, Overflow, ProcessorContext, ShardKey
from dstream.spi.suppliers import GroupsByKey, ProcessorMetaSupplier, TwoStages
from dstream.values import Entry
from dstream.values.entries import are_pairs, as_entry, entry_key, entry_value, whole_item

__all__ = [
    "CombiningProcessor",
    "FirstGrouping",
    "GroupingProcessor",
    "accumulate",
    "accumulate_by_key",
    "aggregate",
    "aggregate_by_key",
    "checked_keys",
    "checked_operation",
    "combine",
    "combine_by_key",
    "groups_of_containers",
    "of_containers",
    "to_containers",
]


Operation = AggregateOperation[Any, Any, Any]


def to_containers(operation: Operation, name: str) -> Operation:
    """Return an operation that fills the containers of another one, and emits them as they are.

    Raises:
        TypeError: they could not be combined afterwards; the message names the function of the library.
    """
    _check(operation, name)
    if isinstance(operation, Collector):  # Its operations that take many items at a time are retained.
        return replace(operation, finisher=identity, name=repr(operation))
    return operation.with_finish(identity).called(repr(operation))


def of_containers(operation: Operation, container_of: Callable[[Any], Any], name: str) -> Operation:
    """Return an operation that combines the containers of another one, and finishes them.

    Args:
        operation: has filled the containers.
        container_of: returns the container in an item.
        name: of the function of the library, for messages.

    Raises:
        TypeError: they cannot be combined.
    """
    combine = _check(operation, name)
    taken = Collector(operation.create, combine, combine, operation.finish, deducting=operation.deduct)
    return replace(mapping(container_of, taken), name=repr(operation))


def _check(operation: Operation, name: str) -> Callable[[Any, Any], Any]:
    if operation.combine is None:
        raise TypeError(f"{name}: {operation!r} has no combine, so two stages cannot share its work")
    return operation.combine


_ENDED = BroadcastKey("ended")
_MOST = 100_000
"""The most groups that are buffered before a shuffle."""


class GroupingProcessor(SavingProcessor):
    """A processor that groups by key, and emits the results at the end, in the order of the groups' first items.

    Args:
        keys: returns the key of an item, a function for each inbound edge; None: all items are one group.
        operation: takes the items, those of each edge as of one input, in the order in which they arrive.
        to: makes the output of (key, result); None: the result alone.
        gives_empty: without keys, the result of an empty input is emitted too.
        entries_of: edges by which entries of a `FirstGrouping` arrive instead of items.
    """

    def __init__(
        self,
        keys: tuple[Callable[[Any], Any], ...] | None,
        operation: AggregateOperation[Any, Any, Any],
        to: Callable[[Any, Any], Any] | None,
        gives_empty: bool = False,
        entries_of: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__()
        self._is_keyed = keys is not None
        self._operation = operation
        self._to = to
        self._gives_empty = gives_empty
        self._reductions = [
            _of_entries(operation) if number in entries_of else _of_items(keys, operation, number)
            for number in range(operation.arity)
        ]
        self._groups: dict[Any, Any] = self._reductions[0].supplier()
        self._has_ended = False
        self._overflow: Overflow | None = None

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Store both; groups may spill to disk if the operation can combine two containers of a key."""
        super().init(outbox, context)
        if self._is_keyed and self._operation.combine is not None and context.overflow is not None:
            self._overflow = context.overflow()

    def made_of(self, ordinal: int, items: list[Any]) -> Iterable[Any]:
        """Take the items; nothing is emitted for them."""
        self._groups = self._reductions[ordinal].accumulated(self._groups, items)
        if self._overflow is not None and self._overflow.is_due():
            self._overflow.take(self._groups)
        return ()

    def complete(self) -> bool:
        """Emit the results, once."""
        if self._has_ended:
            return self.emit_what_waits()
        if not self.emit_what_waits():
            return False
        # Taken out: buffered results are emitted before a snapshot, which has no groups from then on.
        groups, self._groups, self._has_ended = self._groups, {}, True
        if self._gives_empty and not groups:
            groups = {None: self._operation.create()}
        if self._overflow is None:
            return self.emit(self._results(groups.items()))
        return self.emit(self._results(self._overflow.combined(groups, self._operation.on_input(0).combined)))

    def _results(self, groups: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        # The usual groups cost no call of Python each.
        if self._operation.finish is identity and self._to is Entry:
            return map(as_entry, groups)
        return self._made(groups)

    def _made(self, groups: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        finish, to = self._operation.finish, self._to
        for key, container in groups:
            try:
                result = finish(container)
                made = result if to is None else to(key, result)
            except Exception as error:
                if self._is_keyed:
                    in_group(error, key)
                raise
            yield made

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Yield the containers of each shard together."""
        # Also without groups: a graph that is restored after its end must not emit an empty result again.
        yield _ENDED, self._has_ended
        # Copies: containers take further items before the snapshot is pickled.
        groups = dict(zip(self._groups, self._copies(list(self._groups.values())), strict=True))
        for shard, part in by_shard(groups, SHARDS, self._is_keyed).items():
            yield ShardKey(shard), part

    def _copies(self, containers: list[Any]) -> Any:
        if self._operation.combine is None:
            return copy.deepcopy(containers)
        return copies_of(self._operation)(containers)

    def restore_from_snapshot(self, inbox: Inbox) -> None:
        """Take containers back."""
        for key, value in inbox:
            if key == _ENDED:
                self._has_ended = value
            else:
                dict.update(self._groups, with_keys_of_this_process(value))  # A Counter would add.


class CombiningProcessor(GroupingProcessor):
    """A processor that combines the containers in the values of entries, by their keys.

    Args:
        operation: takes entries, whose values are its containers.
        to: makes the output of (key, result).
    """

    def __init__(self, operation: AggregateOperation[Any, Any, Any], to: Callable[[Any, Any], Any]) -> None:
        super().__init__((entry_key,), operation, to)
        self._reductions = [groups_of_containers(operation)]


class FirstGrouping(GroupingProcessor):
    """A processor that groups the items of one edge before the shuffle, and emits an entry for each key.

    It emits its entries when they become many, and begins again.

    Args:
        key: returns the key of an item; None: all items are one group, and None is its key.
        reduction: takes the items of that edge, and has a `combine`.
    """

    def __init__(self, key: Callable[[Any], Any] | None, reduction: Collector[Any, Any, Any]) -> None:
        # Containers are shuffled unfinished; the vertex after the shuffle finishes them.
        super().__init__(None if key is None else (key,), replace(reduction, finisher=identity), Entry)
        self._growth = Growth()

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Store both; large groups are emitted at once, and do not wait."""
        # It hands its groups on when they are many, and needs no disk.
        super().init(outbox, context)
        self._overflow = None

    def made_of(self, ordinal: int, items: list[Any]) -> Iterable[Any]:
        """Accumulate the items; emit the groups if they are large."""
        super().made_of(ordinal, items)
        # Its groups are emitted early: the vertex after the shuffle combines parts of a group in any case.
        if len(self._groups) < _MOST and not self._growth.exceeded():
            return ()
        groups, self._groups = self._groups, self._reductions[0].supplier()
        self._growth.start()
        return self._results(groups.items())


def groups_of_containers(operation: AggregateOperation[Any, Any, Any]) -> Collector[Any, Any, dict[Any, Any]]:
    """Return a collector that combines the values of entries, which are containers of an operation, by the keys.

    Args:
        operation: takes entries; it has a `combine`.
    """
    combining = _of_items((entry_key,), operation, 0)
    return replace(combining, accumulate_all=partial(_combined, combining, _of_entries(operation)), in_columns=None)


def _combined(
    combining: Collector[Any, Any, Any],
    of_pairs: Collector[Any, Any, Any],
    groups: dict[Any, Any],
    entries: Iterable[Any],
) -> dict[Any, Any]:
    """Take entries; those that are pairs for certain are not asked one by one."""
    for some in batches(entries):
        groups = (of_pairs if are_pairs(some) else combining).accumulated(groups, some)
    return groups


def _of_items(
    keys: tuple[Callable[[Any], Any], ...] | None, operation: AggregateOperation[Any, Any, Any], number: int
) -> Collector[Any, Any, Any]:
    """Return a collector of a block of one input into the groups of all; without keys into one group, of None."""
    if operation.combine is not None:
        reduction = operation.on_input(number)
    else:
        # One processor has all items of a key, so two containers never meet.
        reduction = Collector(operation.create, operation.accumulates[number], _uncombined, operation.finish)
    return groups_of_any_key(_no_key if keys is None else keys[number], reduction)


def _of_entries(operation: AggregateOperation[Any, Any, Any]) -> Collector[Any, Any, Any]:
    """Return a collector of a block of keys and containers into the groups of all."""
    combine = operation.combine
    assert combine is not None, "what cannot be combined is not accumulated elsewhere"
    return groups_of_any_key(_KEY, mapping(_CONTAINER, Collector(operation.create, combine, combine, operation.finish)))


_KEY, _CONTAINER = itemgetter(0), itemgetter(1)


def _no_key(item: Any) -> None:
    return None


def _uncombined(left: Any, right: Any) -> Any:
    raise AssertionError("what one processor accumulates is not combined")


Keys = Sequence[Callable[[Any], Any]]


def aggregate(operation: Operation) -> ProcessorMetaSupplier:
    """Return a supplier of processors that emit the result of all items, when these have ended.

    A processor without items emits the result of an empty input: use one processor for the vertex.

    Args:
        operation: takes the items of each inbound edge as one input.

    Raises:
        TypeError: it is none.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors
        >>> processors.aggregate(counting())
        aggregate(counting())
    """
    checked = checked_operation(operation, "aggregate")
    return _shared(shown_call("aggregate", operation), None, checked, None, gives_empty=True)


def accumulate(operation: Operation) -> ProcessorMetaSupplier:
    """Return the first of two stages: a supplier of processors that emit the container of their items.

    A processor without an item emits nothing.

    Args:
        operation: takes the items of each inbound edge as one input; it has a `combine`.

    Raises:
        TypeError: it is none, or has no `combine`.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors
        >>> processors.accumulate(counting())
        accumulate(counting())
    """
    checked = to_containers(checked_operation(operation, "accumulate"), "accumulate")
    return _shared(shown_call("accumulate", operation), None, checked, None)


def combine(operation: Operation) -> ProcessorMetaSupplier:
    """Return the second stage: a supplier of processors that emit the result of all containers.

    A processor without items emits the result of an empty input: use one processor for the vertex.

    Args:
        operation: the operation of the `accumulate` vertex upstream.

    Raises:
        TypeError: it is none, or has no `combine`.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors
        >>> processors.combine(counting())
        combine(counting())
    """
    checked = of_containers(checked_operation(operation, "combine"), whole_item, "combine")
    create = partial(GroupingProcessor, None, checked, None, gives_empty=True)
    return LibrarySupplier(create, shown_call("combine", operation), inputs=checked.arity)


def aggregate_by_key(
    keys: Keys, operation: Operation, to: Callable[[Any, Any], Any] | None = None
) -> ProcessorMetaSupplier:
    """Return a supplier of processors that emit the result of the items of each key, when these have ended.

    The edges that lead to the vertex are partitioned by the same keys.

    Args:
        keys: returns the key of an item, one function for each inbound edge.
        operation: takes the items of each inbound edge as one input.
        to: takes (key, result), and returns the output; None: an `Entry`.

    Raises:
        TypeError: one of these is of another kind, or there is not one key function for each input.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors, whole_item
        >>> processors.aggregate_by_key([whole_item], counting())
        aggregate_by_key([whole_item], counting())
    """
    checked = checked_operation(operation, "aggregate_by_key")
    shown = shown_call("aggregate_by_key", keys, operation, to=to)
    return _shared(shown, checked_keys(keys, checked), checked, optional_function(to, "to") or Entry)


def accumulate_by_key(keys: Keys, operation: Operation) -> ProcessorMetaSupplier:
    """Return the first of two stages: a supplier of processors that emit an entry of each key and its container.

    Args:
        keys: returns the key of an item, one function for each inbound edge.
        operation: takes the items of each inbound edge as one input; it has a `combine`.

    Raises:
        TypeError: one of these is of another kind, there is not one key function for each input, or the operation has
            no `combine`.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors, whole_item
        >>> processors.accumulate_by_key([whole_item], counting())
        accumulate_by_key([whole_item], counting())
    """
    checked = to_containers(checked_operation(operation, "accumulate_by_key"), "accumulate_by_key")
    shown = shown_call("accumulate_by_key", keys, operation)
    return _shared(shown, checked_keys(keys, checked), checked, Entry)


def combine_by_key(operation: Operation, to: Callable[[Any, Any], Any] | None = None) -> ProcessorMetaSupplier:
    """Return the second stage: a supplier of processors that emit the result of the containers of each key.

    The edge that leads to the vertex is partitioned by `entry_key`.

    Args:
        operation: the operation of the `accumulate_by_key` vertex upstream.
        to: takes (key, result), and returns the output; None: an `Entry`.

    Raises:
        TypeError: one of these is of another kind, or the operation has no `combine`.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors
        >>> processors.combine_by_key(counting())
        combine_by_key(counting())
    """
    checked = of_containers(checked_operation(operation, "combine_by_key"), entry_value, "combine_by_key")
    create = partial(CombiningProcessor, checked, optional_function(to, "to") or Entry)
    groups = GroupsByKey(entry_key, checked, groups_of_containers(checked), True) if to is None else None
    return LibrarySupplier(create, shown_call("combine_by_key", operation, to=to), groups=groups, inputs=checked.arity)


def _shared(
    shown: str, keys: tuple[Callable[[Any], Any], ...] | None, operation: Operation, to: Any, gives_empty: bool = False
) -> LibrarySupplier:
    """Return a supplier of processors of an operation whose work the senders of items can share."""
    create = partial(GroupingProcessor, keys, operation, to, gives_empty)
    if operation.combine is None:
        return LibrarySupplier(create, shown, inputs=operation.arity)
    stages = TwoStages(keys, partial(_first, keys, operation), partial(_second, create))
    groups = _groups(keys, operation, to)
    return LibrarySupplier(create, shown, two_stages=stages, groups=groups, inputs=operation.arity)


def _groups(
    keys: tuple[Callable[[Any], Any], ...] | None, operation: Operation, to: Callable[[Any, Any], Any] | None
) -> GroupsByKey | None:
    """Return the groups that processors with one inbound edge emit, if these are entries of keys and results."""
    if keys is None or len(keys) != 1 or to is not Entry:
        return None
    return GroupsByKey(keys[0], operation, groups_of_any_key(keys[0], operation.on_input(0)))


def _first(
    keys: tuple[Callable[[Any], Any], ...] | None, operation: Operation, number: int
) -> Callable[[], FirstGrouping]:
    return partial(FirstGrouping, None if keys is None else keys[number], operation.on_input(number))


def _second(create: Callable[..., GroupingProcessor], edges: frozenset[int]) -> Callable[[], GroupingProcessor]:
    return partial(create, entries_of=edges)


def checked_operation(operation: Any, name: str) -> Operation:
    """Return an operation of any number of inputs.

    Raises:
        TypeError: it is something else; the message names the function of the library.
    """
    if not isinstance(operation, AggregateOperation):
        hint = hint_of_a_collector(operation)
        raise TypeError(f"{name}: operation must be an AggregateOperation, not {kind_of(operation)}{hint}")
    return operation


def checked_keys(keys: Any, operation: Operation) -> tuple[Callable[[Any], Any], ...]:
    """Return the key functions of an operation.

    Raises:
        TypeError: there is not one for each input, or one of them is no function.
    """
    if callable(keys) or isinstance(keys, str):
        raise TypeError(f"keys must be a list with a function for each inbound edge, not {kind_of(keys)}")
    found = tuple(checked_function(each, "a key") for each in keys)
    check_keys(found, operation)
    return found
