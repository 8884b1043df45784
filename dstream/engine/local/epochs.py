"""Steps over epochs on the local engine: one task has all shards. Loaded by the first plan that has one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from dstream.engine.local.operations import LocalTask, apply, opened_later, start
from dstream.operators.rows.operations import operation
from dstream.operators.state.epochs import reducing
from dstream.plan.operations.stages import OverEpochs

__all__: list[str] = []


@start.register
def _(node: OverEpochs, task: LocalTask) -> Iterator[Any]:
    """Let time pass for a step that reads nothing."""
    return operation(node)(iter(()), task)


@apply.register
def _(node: OverEpochs, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Reduce one input after another, then let the shards take what came, and time pass."""
    inputs = [items, *(opened_later(each, task) for each in node.upstreams[1:])]
    arrivals = (reducing(node, number)(each, task) for number, each in enumerate(inputs))
    return operation(node)(chain.from_iterable(arrivals), task)
