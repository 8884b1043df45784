"""`GroupingProcessor`: a container for each key, until all items have come; `FirstGrouping` for those who send them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

from collectors import mapping
from collectors.batches import batches
from collectors.groups import groups_of_any_key
from dstream.core.block_processor import BlockProcessor
from dstream.core.processors.saving import Saving
from dstream.memory import Growth
from dstream.operators.arrivals import by_shard
from dstream.operators.independent_copies import copies_of
from dstream.operators.pickled_keys import with_keys_of_this_process
from dstream.spi import AggregateOperation, Collector, identity
from dstream.spi.processor import SHARDS, BroadcastKey, Inbox, Outbox, Overflow, ProcessorContext, ShardKey
from dstream.values import Entry
from dstream.values.blaming import in_group
from dstream.values.entry import are_pairs, as_entry, entry_key

__all__ = ["CombiningProcessor", "FirstGrouping", "GroupingProcessor", "groups_of_containers"]

_ENDED = BroadcastKey("ended")
_MOST = 100_000
"""So many groups wait in front of a shuffle."""


class GroupingProcessor(BlockProcessor):
    """Accumulates items by key, and emits what is made of each group at the end, in the order of their first items.

    Args:
        keys: gives the key of an item, a function for each inbound edge; None: all items are one group.
        operation: takes the items, those of each edge as of one input, in the order in which they come.
        to: makes of (key, result) what is emitted; None: the result alone.
        gives_empty: without keys, the result of nothing is emitted too.
        entries_of: edges by which entries of a `FirstGrouping` come in the place of items.
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
        self._saving = Saving()

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Keep both; many groups may move to disk, if it is known how two containers of a key become one."""
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
        groups, self._groups, self._has_ended = self._groups, {}, True
        if self._gives_empty and not groups:
            groups = {None: self._operation.create()}
        if self._overflow is None:
            return self.emit(self._results(groups.items()))
        return self.emit(self._results(self._overflow.combined(groups, self._operation.on_input(0).combined)))

    def _results(self, groups: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
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

    def save_to_snapshot(self) -> bool:
        """Save the containers of each shard together."""
        return self.emit_what_waits() and self._saving.goes_on(self._outbox, self._entries)

    def _entries(self) -> Iterator[tuple[Any, Any]]:
        yield _ENDED, self._has_ended
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
    """Combines the containers that come as values of entries, by their keys.

    Args:
        operation: takes entries, whose values are containers of its own.
        to: makes of (key, result) what is emitted.
    """

    def __init__(self, operation: AggregateOperation[Any, Any, Any], to: Callable[[Any, Any], Any]) -> None:
        super().__init__((entry_key,), operation, to)
        self._reductions = [groups_of_containers(operation)]


class FirstGrouping(GroupingProcessor):
    """Accumulates what comes by one edge, before it is sent to those who combine it; emits an entry for each key.

    It emits what it has when that becomes much, and begins again.

    Args:
        key: gives the key of an item; None: all items are one group, and None is its key.
        reduction: takes the items of that edge, and has a `combine`.
    """

    def __init__(self, key: Callable[[Any], Any] | None, reduction: Collector[Any, Any, Any]) -> None:
        super().__init__(None if key is None else (key,), replace(reduction, finisher=identity), Entry)
        self._growth = Growth()

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Keep both; what is much is given, and does not wait."""
        super().init(outbox, context)
        self._overflow = None

    def made_of(self, ordinal: int, items: list[Any]) -> Iterable[Any]:
        """Take the items; give what there is, if it is much."""
        super().made_of(ordinal, items)
        if len(self._groups) < _MOST and not self._growth.exceeded():
            return ()
        groups, self._groups = self._groups, self._reductions[0].supplier()
        self._growth.start()
        return self._results(groups.items())


def groups_of_containers(operation: AggregateOperation[Any, Any, Any]) -> Collector[Any, Any, dict[Any, Any]]:
    """Return what combines the values of entries, which are containers of an operation, by the keys.

    Args:
        operation: takes entries; it has a `combine`.
    """
    asked = _of_items((entry_key,), operation, 0)
    return replace(asked, accumulate_all=partial(_combined, asked, _of_entries(operation)), in_columns=None)


def _combined(
    asked: Collector[Any, Any, Any], of_pairs: Collector[Any, Any, Any], groups: dict[Any, Any], entries: Iterable[Any]
) -> dict[Any, Any]:
    """Take entries; those that are pairs for certain are not asked one by one."""
    for some in batches(entries):
        groups = (of_pairs if are_pairs(some) else asked).accumulated(groups, some)
    return groups


def _of_items(
    keys: tuple[Callable[[Any], Any], ...] | None, operation: AggregateOperation[Any, Any, Any], number: int
) -> Collector[Any, Any, Any]:
    """Return what takes a block of one input into the groups of all; without keys there is one, that of None."""
    if operation.combine is not None:
        reduction = operation.on_input(number)
    else:
        reduction = Collector(operation.create, operation.accumulates[number], _uncombined, operation.finish)
    return groups_of_any_key(_no_key if keys is None else keys[number], reduction)


def _of_entries(operation: AggregateOperation[Any, Any, Any]) -> Collector[Any, Any, Any]:
    """Return what takes a block of keys and containers into the groups of all."""
    combine = operation.combine
    assert combine is not None, "what cannot be combined is not accumulated elsewhere"
    return groups_of_any_key(_KEY, mapping(_CONTAINER, Collector(operation.create, combine, combine, operation.finish)))


_KEY, _CONTAINER = itemgetter(0), itemgetter(1)


def _no_key(item: Any) -> None:
    return None


def _uncombined(left: Any, right: Any) -> Any:
    raise AssertionError("what one processor accumulates is not combined")
