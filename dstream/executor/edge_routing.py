"""Which processors of its destination get the items of an edge."""

from __future__ import annotations

from itertools import compress
from typing import Any

from dstream.executor.arrivals_of_graphs import MARKS, MarkedBlock
from dstream.keys import canonical_all
from dstream.keys.shards import shard_numbers
from dstream.plan.vertex_graph import GraphEdge, Routing
from dstream.spi.epochs import target_of
from dstream.spi.processor import SHARDS
from dstream.values.blaming import each
from dstream.values.entry import keys_of

__all__ = ["EdgeRouter", "router_of"]


class EdgeRouter:
    """Routes what one processor, or one task, sends by an edge: to the only processor that there is, or to any in turn.

    Args:
        edge: which one.
        sender: the number of the processor.
        targets: the processors that may get items.
        all_targets: how many processors the destination has; every one gets the marks.
    """

    def __init__(self, edge: GraphEdge, sender: int, targets: range, all_targets: int) -> None:
        self.edge = edge
        self._targets = targets
        self._all = all_targets
        self._next = sender % len(targets)

    def route(self, items: list[Any]) -> list[tuple[int, list[Any]]]:
        """Return the items for each processor that gets some, in order; marks go to every one.

        Raises:
            Exception: what the key function of the edge, or its partitioner, raised.
        """
        if self._all == 1:
            return [(0, items)]
        if type(items) is not MarkedBlock:
            return self._route(items)
        found: list[tuple[int, list[Any]]] = []
        run: list[Any] = []
        for item in items:
            if type(item) in MARKS:
                found += self._route(run) if run else ()
                found += [(target, MarkedBlock([item])) for target in range(self._all)]
                run = []
            else:
                run.append(item)
        return found + (self._route(run) if run else [])

    def _route(self, items: list[Any]) -> list[tuple[int, list[Any]]]:
        """Deal items out, one after another."""
        targets, count = self._targets, len(self._targets)
        if count == 1:
            return [(targets[0], items)]
        first, self._next = self._next, (self._next + len(items)) % count
        dealt = ((targets[(first + place) % count], items[place::count]) for place in range(min(count, len(items))))
        return list(dealt)


class _ToAll(EdgeRouter):
    """Routes to every processor."""

    def _route(self, items: list[Any]) -> list[tuple[int, list[Any]]]:
        return [(target, list(items)) for target in range(self._all)]


class _ByKey(EdgeRouter):
    """Routes to the processor that has the key of an item."""

    def __init__(self, edge: GraphEdge, sender: int, targets: range, all_targets: int) -> None:
        super().__init__(edge, sender, targets, all_targets)
        self._target_of = [target_of(shard, SHARDS, all_targets) for shard in range(SHARDS)]

    def _route(self, items: list[Any]) -> list[tuple[int, list[Any]]]:
        numbers = self._numbers(items)
        found = sorted(set(numbers))
        if len(found) == 1:
            return [(found[0], items)]
        return [(target, list(compress(items, map(target.__eq__, numbers)))) for target in found]

    def _numbers(self, items: list[Any]) -> list[int]:
        key, partitioner, count = self.edge.key, self.edge.partitioner, self._all
        assert key is not None, "a partitioned edge has a key"
        keys = keys_of(key, items)
        if partitioner is None:
            return list(map(self._target_of.__getitem__, self._shards(keys, items)))
        numbers = each(lambda one, item: partitioner(one, count), items, keys)
        for number, item in zip(numbers, items, strict=True):
            if not isinstance(number, int) or not 0 <= number < count:
                raise ValueError(f"the partitioner gave {number!r} for {item!r}: it is to give 0 to {count - 1}")
        return numbers

    def _shards(self, keys: list[Any], items: list[Any]) -> list[int]:
        try:
            return shard_numbers(canonical_all(keys), SHARDS)
        except Exception:  # The key that is refused can be told with its item.
            return each(lambda key, item: shard_numbers(canonical_all([key]), SHARDS)[0], items, keys)


def router_of(edge: GraphEdge, sender: int, senders: int, targets: int) -> EdgeRouter:
    """Return what routes for one sender.

    Args:
        edge: which one.
        sender: its number.
        senders: how many there are.
        targets: how many processors the destination has.
    """
    if edge.routing is Routing.PARTITIONED:
        return _ByKey(edge, sender, range(targets), targets)
    if edge.routing is Routing.BROADCAST:
        return _ToAll(edge, sender, range(targets), targets)
    if edge.routing is Routing.ISOLATED:
        # A producer has its consumers for itself; where there are fewer of them, several share one.
        own = range(sender, targets, senders) if senders <= targets else range(sender % targets, sender % targets + 1)
        return EdgeRouter(edge, 0, own, targets)
    return EdgeRouter(edge, sender, range(targets), targets)
