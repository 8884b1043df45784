"""Hash joins on workers: what the tasks of the right side write, and the tables that those of the left look into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dstream.engine.kernels.core_operations import Task
from dstream.engine.kernels.lookup_tables import LookupTable, RightSide, looked_up
from dstream.engine.worker.rows import ITEMS, Row
from dstream.engine.worker.sent_payloads import Sent
from dstream.engine.worker.stage_task import StageTask
from dstream.engine.worker.tables_of_process import table_made_once
from dstream.plan.core_of_pairs import HashJoin

__all__ = ["LookUp", "WriteRightSide"]


@dataclass(frozen=True)
class WriteRightSide:
    """Write the keys and values of the right side in batches, in order."""

    side: RightSide

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        for number, (size, data) in enumerate(self.side.batches(items)):
            yield Row(0, task.partition, number, ITEMS, size, data)


class LookUp:
    """Gives the pairs of the items of a left side.

    Args:
        node: the join.
        sent: the right side.
    """

    def __init__(self, node: HashJoin, sent: Sent) -> None:
        assert node.left_key is not None, "a hash join has two keys"
        self._key, self._is_inner, self._step = node.left_key, node.is_inner, node.step
        self._sent = sent

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[Any]:
        return looked_up(self._table, self._key, self._is_inner, self._step, items)

    def _table(self) -> LookupTable:
        return table_made_once(self._sent, self._step)
