"""What a gatherer does to items that stand in one place, in order."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import chain
from typing import Any

from dstream.engine.kernels.core_operations import Operation, Task, operation
from dstream.failures import naming
from dstream.plan.core import Gather
from dstream.plan.steps import Step
from dstream.spi import AtEnd, ByPlace, Gatherer

__all__ = ["finish", "gathered", "state_of_part"]


@operation.register
def _(node: Gather) -> Operation:
    return functools.partial(gathered, node.gatherer, node.step)


def gathered(gatherer: Gatherer[Any, Any, Any], step: Step, items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Give what `gatherer` makes of the items."""
    gathered_items = gatherer.gather(items)
    # Those that go by places run nothing of the user's: what fails in them has failed before.
    return gathered_items if isinstance(gatherer.parallel, ByPlace) else _named(step, gathered_items)


def _named(step: Step, items: Iterator[Any]) -> Iterator[Any]:
    with naming(step):
        yield from items


def state_of_part(kind: AtEnd[Any, Any], step: Step, items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Give the state of one partition; none if it has no items."""
    with naming(step):
        for first in items:
            yield kind.state_of(chain((first,), items))


def finish(gatherer: Gatherer[Any, Any, Any], step: Step, states: Iterator[Any], task: Task) -> Iterator[Any]:
    """Combine the states of all partitions, in order, and give what the finisher pushes."""
    with naming(step):
        yield from gatherer.finished(states)
