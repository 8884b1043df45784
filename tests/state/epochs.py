"""Runs epochs of one step by hand, as an engine and the loop of a job do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dstream.operators.state import backend
from dstream.operators.state import shards as loading
from dstream.operators.state.backend import ShardedStepState
from dstream.operators.state.index import ShardIndex
from dstream.operators.state.index_format import files_of
from dstream.operators.state.shards import RecentFiles, ShardCache, entries
from dstream.spi.epochs import ShardChange, StateOperator, target_of
from dstream.spi.records import StateFiles
from tests.state.counting import moment

__all__ = ["JOB", "Epochs"]

JOB = "0123456789ab-01234567"


@dataclass
class Epochs:
    """A step of a job, the number of its last epoch, and what every epoch has committed."""

    files: StateFiles
    operator: StateOperator
    shards: int = 8
    number: int = 0
    records: list[tuple[ShardChange, ...]] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.index = ShardIndex.new("counts", self.operator, self.shards)
        self._processes: dict[str, tuple[ShardCache, RecentFiles]] = {}
        self.move_to("first")

    def state(self, version: str = "") -> ShardedStepState:
        """What a task of the next epoch is given."""
        return ShardedStepState(self.index, self.files, JOB, self.number + 1, version)

    def task(self, items: Iterable[Any], new: int = 0, target: int = 0, targets: int = 1) -> tuple[ShardChange, ...]:
        """Run one attempt of a task of the next epoch."""
        state, now = self.state(), moment(self.number + 1, new)
        partials = self.operator.partial(0, iter(items), now, self.shards).of_shards
        mine = {shard for shard in partials if target_of(shard, self.shards, targets) == target}
        for number in sorted(mine | set(state.touched(target, targets, new, 0.0))):
            shard = state.open(number, self.operator)
            came = [(0, partials[number])] if number in mine else []
            self.outputs += [item for _, item in shard.apply(came, now).outputs]
            state.keep(number, shard)
        return state.staged()

    def commit(self, changes: Sequence[ShardChange]) -> None:
        """Put the record of the next epoch."""
        self.index = self.index.applied(changes)
        self.records.append(tuple(changes))
        self.number += 1

    def run(self, items: Iterable[Any], new: int = 0, targets: int = 1) -> None:
        """Run an epoch that is committed."""
        came = list(items)
        self.commit([change for target in range(targets) for change in self.task(came, new, target, targets)])

    def move_to(self, process: str) -> None:
        """Run what follows in another process, which knows what it has seen itself."""
        kept, recent = self._processes.setdefault(process, (ShardCache(), RecentFiles()))
        backend.kept_shards = kept
        backend.recent_files = loading.recent_files = recent

    def forget_files(self) -> None:
        """Forget what this process has read and written, but not the shards."""
        backend.recent_files = loading.recent_files = RecentFiles()

    def forget(self) -> None:
        """Go on with processes that have seen nothing."""
        self._processes.clear()
        self.move_to("first")

    def counts(self) -> dict[Any, int]:
        """What the committed files hold."""
        return dict(entries(self.index, self.files, self.operator))

    def named(self) -> set[str]:
        """The files that records name."""
        return set().union(*map(files_of, self.records))
