"""`GroupingProcessor`: a container for each key, until all items have come."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from dstream.core.block_processor import BlockProcessor
from dstream.core.processors.item_keys import keys_of
from dstream.core.processors.saving import Saving
from dstream.operators.apart import copies_of
from dstream.operators.arrivals import by_shard
from dstream.operators.pickled_keys import with_keys_of_this_process
from dstream.spi import AggregateOperation, Collector
from dstream.spi.processor import SHARDS, BroadcastKey, Inbox, ShardKey
from dstream.values.blaming import in_group

__all__ = ["GroupingProcessor"]

_MISSING: Any = object()
_ENDED = BroadcastKey("ended")


class GroupingProcessor(BlockProcessor):
    """Accumulates items by key, and emits what is made of each group at the end, in the order of their first items.

    Args:
        keys: gives the key of an item, a function for each inbound edge; None: all items are one group.
        operation: takes the items, those of each edge as of one input, in the order in which they come.
        to: makes of (key, result) what is emitted; None: the result alone.
        gives_empty: without keys, the result of nothing is emitted too.
    """

    def __init__(
        self,
        keys: tuple[Callable[[Any], Any], ...] | None,
        operation: AggregateOperation[Any, Any, Any],
        to: Callable[[Any, Any], Any] | None,
        gives_empty: bool = False,
    ) -> None:
        super().__init__()
        self._keys = keys
        self._operation = operation
        self._to = to
        self._gives_empty = gives_empty
        self._groups: dict[Any, Any] = {}
        self._has_ended = False
        self._saving = Saving()

    def made_of(self, ordinal: int, items: list[Any]) -> list[Any]:
        """Take the items; nothing is emitted for them."""
        operation = self._operation
        if self._keys is not None:
            self._accumulate(keys_of(self._keys[ordinal], items), items, operation.accumulates[ordinal])
            return []
        container = self._groups.get(None, _MISSING)
        if container is _MISSING:
            container = operation.create()
        if isinstance(operation, Collector):
            container = operation.accumulated(container, items)
        else:
            accumulate = operation.accumulates[ordinal]
            for item in items:  # A failure finds the item by this name.
                following = accumulate(container, item)
                container = container if following is None else following
        self._groups[None] = container
        return []

    def _accumulate(self, keys: list[Any], items: list[Any], accumulate: Callable[[Any, Any], Any]) -> None:
        groups, create = self._groups, self._operation.create
        find = groups.get
        for key, item in zip(keys, items, strict=True):  # A failure finds the item by this name.
            container = find(key, _MISSING)
            if container is _MISSING:
                container = groups[key] = create()
            following = accumulate(container, item)
            if following is not None:
                groups[key] = following

    def complete(self) -> bool:
        """Emit the results, once."""
        if self._has_ended:
            return self.emit_what_waits()
        if not self.emit_what_waits():
            return False
        groups, self._groups, self._has_ended = self._groups, {}, True
        if self._gives_empty and not groups:
            groups = {None: self._operation.create()}
        return self.emit(self._results(groups))

    def _results(self, groups: dict[Any, Any]) -> Iterator[Any]:
        finish, to = self._operation.finish, self._to
        for key, container in groups.items():
            try:
                result = finish(container)
                made = result if to is None else to(key, result)
            except Exception as error:
                if self._keys is not None:
                    in_group(error, key)
                raise
            yield made

    def save_to_snapshot(self) -> bool:
        """Save the containers of each shard together."""
        return self.emit_what_waits() and self._saving.goes_on(self._outbox, self._entries)

    def _entries(self) -> Iterator[tuple[Any, Any]]:
        yield _ENDED, self._has_ended
        groups = dict(zip(self._groups, self._copies(list(self._groups.values())), strict=True))
        for shard, part in by_shard(groups, SHARDS, self._keys is not None).items():
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
                self._groups.update(with_keys_of_this_process(value))
