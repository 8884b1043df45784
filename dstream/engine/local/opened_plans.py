"""Plans as iterators, one operation upon another: the readable definition of each, in one process.

`start` opens what reads from no operation, `apply` what an operation makes of the items of its first input. Graphs of
processors and steps over epochs register themselves in modules of their own (`local_graphs`, `local_epochs`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import chain
from typing import Any

from dstream.engine.kernels import concurrent_calls as concurrent_calls  # each registers its nodes
from dstream.engine.kernels import gather as gather
from dstream.engine.kernels import stateful as stateful
from dstream.engine.kernels.aggregates import partial
from dstream.engine.kernels.cached_items import KeptItems
from dstream.engine.kernels.core_operations import operation
from dstream.engine.kernels.guards import HandlerOfMisread
from dstream.engine.kernels.long_plans import Depth, relayed, stack_is_deep
from dstream.engine.kernels.reading import items_of
from dstream.engine.local.local_task import LocalTask
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.plan.core import Cache, Concat, Core, Hint, Read, Recall, Table, Unary
from dstream.plan.core_of_epochs import OverEpochs
from dstream.plan.core_of_pairs import CoGroup, TwoStreams
from dstream.plan.core_of_stages import Aggregate, Spread
from dstream.plan.properties import is_ordered
from dstream.plan.recalling import Cached

__all__ = ["apply", "no_data_frames", "opened", "opened_later", "splits", "start"]


def no_data_frames() -> UnsupportedError:
    """Return what is raised where only Spark has tables."""
    return UnsupportedError("the local engine has no DataFrames: use to_arrow(), or connect() with the Spark engine")


def opened(root: Core, task: LocalTask) -> Iterator[Any]:
    """Open a plan: down to where the items come from, then up again, without recursion."""
    path: list[Core] = []
    node = root
    while isinstance(node, Unary | TwoStreams | Aggregate | OverEpochs) and node.inputs():
        path.append(node)
        node = node.inputs()[0]
    items, depth = start(node, task), Depth()
    for node in reversed(path):
        given = apply(node, items, task)
        items = depth.add(given, _FRAMES_PUT_ASIDE) if isinstance(node, _PUT_ASIDE) else depth.add(given)
    return items


_PUT_ASIDE = (Aggregate, Cache, CoGroup, OverEpochs)
_FRAMES_PUT_ASIDE = 12
"""How many frames one has that puts all items aside, at most: an aggregate by key has ten (CPython 3.11)."""


def opened_later(root: Core, task: LocalTask) -> Iterator[Any]:
    """Open a plan that another one reads beside its own when the first item is asked for, on a stack with room."""
    yield from relayed(opened_later(root, task)) if stack_is_deep() else opened(root, task)


@functools.singledispatch
def start(node: Core, task: LocalTask) -> Iterator[Any]:
    """Open an operation that reads from no other one.

    Raises:
        UnsupportedError: it is none that this engine runs.
    """
    raise UnsupportedError(f"the local engine does not read from {node.label()}")


@start.register
def _(node: Read, task: LocalTask) -> Iterator[Any]:
    return chain.from_iterable(map(task.counted, splits(node, task)))


def splits(node: Read, task: LocalTask) -> Iterator[Iterator[Any]]:
    """Give the items of each part of a source."""
    misread = HandlerOfMisread(node.guards, task) if node.guards else None
    with naming(node.step):
        for split in node.source.splits(1):
            yield items_of(split, node.step, misread)


@start.register
def _(node: Recall, task: LocalTask) -> Iterator[Any]:
    return iter(node.items)


@start.register
def _(node: Table, task: LocalTask) -> Iterator[Any]:
    raise no_data_frames()


@start.register
def _(node: Concat, task: LocalTask) -> Iterator[Any]:
    return chain.from_iterable(opened_later(part, task) for part in node.parts)


@functools.singledispatch
def apply(node: Core, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Return what an operation makes of the items of its first input."""
    return operation(node)(items, task)


@apply.register
def _(node: Cache, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Keep all items when the first one is asked for."""

    def computed() -> Cached:
        kept = KeptItems(items, task.bound)
        return Cached(kept, is_ordered(node), len(kept))

    yield from task.caches.kept(node, computed).items


@apply.register
def _(node: Aggregate, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Reduce one input after another, then finish."""
    inputs = [items, *(opened_later(each, task) for each in node.upstreams[1:])]
    parts = (partial(node, number)(each, task) for number, each in enumerate(inputs))
    return operation(node)(chain.from_iterable(parts), task)


@apply.register
def _(node: Spread, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Leave the items alone, as a hint does."""
    return items


@apply.register
def _(node: Hint, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Leave the items alone: one process has one partition, which is in order."""
    return items
