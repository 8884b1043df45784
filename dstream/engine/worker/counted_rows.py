"""Rows that are counted on their way through a shuffle, so that none is lost, and none comes twice, unnoticed.

In an epoch, each task sends one row more to every target, behind all others: how many rows it sent there. A target that
misses a row, or that of a task, refuses to go on. A sink that has such rows of its own says so, in `counts_rows`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dstream.engine.kernels.item_batches import loads
from dstream.engine.worker.behind_items import LAST, targets_of
from dstream.engine.worker.rows import COUNTS, ITEMS, Row
from dstream.errors import EngineError
from dstream.pickling import dumps
from dstream.plan.steps import Step

__all__ = ["Sent", "check_arrived", "counting_sent", "counts_itself"]


def counts_itself(sink: object) -> bool:
    """Say whether a sink counts its rows, and whoever reads them looks whether they have all arrived."""
    return bool(getattr(sink, "counts_rows", False))


def counting_sent(rows: Iterator[Row], task: int, sink: object) -> Iterator[Row]:
    """Give the rows of a task, and behind them how many there were for each target.

    What may be left out of the rows before they move, such as all of a channel, is counted apart.

    Args:
        rows: all that the task writes.
        task: its number.
        sink: what writes its items.
    """
    targets = targets_of(sink)
    sent: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for row in rows:
        sent[row.target % targets][row.source, row.channel] += 1
        yield row
    for target in range(targets):
        yield Row(target, task, LAST, COUNTS, 0, dumps(dict(sent[target])))


@dataclass(frozen=True)
class Sent:
    """What is sent to the tasks that read the rows of a shuffle.

    Attributes:
        tasks: how many send something.
        channels: which of their rows are wanted, of those with items and what is said of these.
        has_beside: whether those with what is beside the items are wanted.
        step: the operation before which the rows move.
    """

    tasks: int
    channels: frozenset[int]
    has_beside: bool
    step: Step

    def arriving(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Give the rows that came for a target; at the end, compare them with what was sent.

        Raises:
            EngineError: they differ: the epoch has to run again.
        """
        heard, sent, arrived = 0, Counter[int](), Counter[int]()
        for row in rows:
            if row.channel != COUNTS:
                arrived[row.source] += self.has_beside or row.channel <= ITEMS
                yield row
                continue
            heard += 1
            for (source, channel), number in loads(row.payload).items():
                sent[source] += number if self._is_wanted(channel) else 0
        check_arrived(heard, self.tasks, sent, arrived, self.step)

    def _is_wanted(self, channel: int) -> bool:
        return self.has_beside if channel > ITEMS else channel in self.channels


def check_arrived(heard: int, tasks: int, sent: Mapping[int, int], arrived: Mapping[int, int], step: Step) -> None:
    """Compare what arrived at a target with what was sent there.

    Args:
        heard: how many tasks have said what they sent.
        tasks: how many have sent something.
        sent: how many rows, by their sources.
        arrived: how many came.
        step: the operation before which the rows move.

    Raises:
        EngineError: they differ: the epoch has to run again.
    """
    if heard != tasks:
        raise EngineError(f"the shuffle before {step} lost rows: {heard} of {tasks} tasks were heard of")
    for source in sorted({*sent, *arrived}):
        number, came = sent.get(source, 0), arrived.get(source, 0)
        if came != number:
            raise EngineError(f"the shuffle before {step} lost rows: task {source} sent {number}, and {came} arrived")
