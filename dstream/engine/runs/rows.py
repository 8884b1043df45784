"""Rows in this process: rows of shuffles through it, and the actions for side rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from dstream.base.environment import TemporaryFolder
from dstream.base.functions import refuse_awaitable
from dstream.engine.physical.vertices import OutputPort, Taken
from dstream.engine.tasks.rows import COUNTS, ITEMS, Row, Storing, handed_on, is_stored, not_written
from dstream.failures import blame
from dstream.operators.rows.batches import loads
from dstream.operators.rows.guards import Action
from dstream.plan.steps import Step

__all__ = ["ShuffleFiles", "SideOutputActions", "by_target", "rows_taken"]


class ShuffleFiles:
    """The files for large payloads of rows of one run's tasks, until the run ends."""

    def __init__(self) -> None:
        self._folder: TemporaryFolder | None = None

    def storing(self, parent: str, most: int) -> Storing:
        """Return how a task stores its rows.

        Args:
            parent: a folder for temporary files, in which the folder of this run is created.
            most: the number of bytes of its rows that remain in memory.

        Raises:
            EngineError: that folder cannot be written to.
        """
        if self._folder is None:
            # Created here and not by tasks, which may outlive the end of their run.
            try:
                self._folder = TemporaryFolder(parent, "rows-")
            except OSError as error:
                raise not_written(parent, error) from error
        return Storing(self._folder.path, most)

    def moved(self, rows: Sequence[Row], parent: str, most: int) -> tuple[Row, ...]:
        """Return rows that were handed on, of which at most `most` bytes are in memory."""
        written = map(handed_on, self.storing(parent, most).stored(row for row in rows if not is_stored(row)))
        moved = tuple(row if is_stored(row) else next(written) for row in rows)
        deque(written, maxlen=0)  # The file is complete when the last row has been asked for.
        return moved

    def remove(self) -> None:
        """Remove all of them, after their last reader; tasks that still write find the folder no more."""
        if self._folder is not None:
            self._folder.remove()


def rows_taken(rows: Iterable[Row], taken: Taken, port: OutputPort) -> Iterator[Row]:
    """Yield the rows of a vertex that are read, with their targets shifted after those of other inputs."""
    for row in rows:
        if port.has(row):
            channel = ITEMS if taken.as_items and row.channel != COUNTS else row.channel
            yield row._replace(target=row.target + taken.behind, channel=channel)


def by_target(rows: Iterable[Row], targets: int) -> tuple[tuple[Row, ...], ...]:
    """Return the rows of each of *n* partitions: target after target, in the order of their sources."""
    partitions: list[list[Row]] = [[] for _ in range(targets)]
    for row in rows:
        # As Spark's shuffle does it where there are more buckets than tasks.
        partitions[row.target % targets].append(row)
    return tuple(tuple(sorted(each, key=_PLACE)) for each in partitions)


_PLACE = attrgetter("target", "source", "sequence")


_NONE: Mapping[int, int] = MappingProxyType({})


class SideOutputActions:
    """The actions in this process for each channel of side rows."""

    def __init__(self, actions: Mapping[int, Action]) -> None:
        self._actions = actions

    def deliver(
        self, beside: Iterable[Row], before: Mapping[int, int] = _NONE, counted: dict[int, int] | None = None
    ) -> None:
        """Run the actions on the side rows of a job.

        Args:
            beside: the rows of their channels, channel by channel, in encounter order.
            before: the number of items that the action of each channel has seen in an earlier run of the same job.
            counted: takes how many it has seen now.
        """
        seen = {} if counted is None else counted
        for row in beside:
            step, action = self._actions[row.channel]
            for item in loads(row.payload):
                number = seen.get(row.channel, 0)
                seen[row.channel] = number + 1
                if number >= before.get(row.channel, 0):
                    _act(step, action, item)


def _act(step: Step, action: Callable[[Any], object], item: Any) -> None:
    try:
        if (result := action(item)) is not None:
            refuse_awaitable(result)
    except Exception as error:
        blame(error, step, item)
        raise
