"""Rows that are counted on their way through a shuffle, so that none is lost, and none comes twice, unnoticed.

Behind its rows, each task sends one control row to every target: how many rows it sent there. A target that misses a
row, or the control row of a task, refuses to go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dstream.engine.kernels.item_batches import loads
from dstream.engine.worker.behind_items import LAST
from dstream.engine.worker.readers import read_items
from dstream.engine.worker.rows import ITEMS, Row
from dstream.engine.worker.stage_task import StageTask
from dstream.errors import EngineError
from dstream.pickling import dumps
from dstream.plan.steps import Step

if TYPE_CHECKING:
    from dstream.engine.worker.stage import Sink

__all__ = ["CountSent", "ReadCounted", "check_arrived"]


@dataclass(frozen=True)
class CountSent:
    """Send the rows of a sink, and at the end a control row to every target.

    Attributes:
        sink: makes the rows.
        targets: to how many it sends them.
    """

    sink: Sink
    targets: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        sent = Counter[int]()
        for row in self.sink(items, task):
            sent[row.target] += 1
            yield row
        for target in range(self.targets):
            yield Row(target, task.partition, LAST, ITEMS, 0, dumps(sent[target]))


@dataclass(frozen=True)
class ReadCounted:
    """Give the items of the rows that came for one target; at the end, compare them with what was sent.

    Attributes:
        sources: how many tasks have sent something.
    """

    sources: int
    step: Step

    def __call__(self, rows: Iterator[Row]) -> Iterator[Any]:
        arrived = _Arrived()
        yield from read_items(arrived.counted(rows))
        check_arrived(arrived.sent, arrived.rows, self.sources, self.step)


@dataclass
class _Arrived:
    rows: Counter[int] = field(default_factory=Counter)
    sent: dict[int, int] = field(default_factory=dict)

    def counted(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Give the rows with items, and keep what the others say."""
        for row in rows:
            if row.sequence == LAST:
                self.sent[row.source] = self.sent.get(row.source, 0) + loads(row.payload)
            else:
                self.rows[row.source] += 1
                yield row


def check_arrived(sent: Mapping[int, int], arrived: Mapping[int, int], sources: int, step: Step) -> None:
    """Compare what arrived at a target with what was sent there, both by the task that sent it.

    Raises:
        EngineError: they differ: the epoch has to run again.
    """
    if len(sent) != sources:
        raise EngineError(f"the shuffle before {step} lost rows: {len(sent)} of {sources} tasks were heard of")
    for source, number in sent.items():
        if (came := arrived.get(source, 0)) != number:
            raise EngineError(f"the shuffle before {step} lost rows: task {source} sent {number}, and {came} arrived")
