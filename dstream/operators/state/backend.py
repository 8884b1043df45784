"""The state of a step in the tasks of one epoch: the `StepState` of `dstream.spi.epochs`."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dstream.base.by_value import SharedInProcess
from dstream.base.showing import add_note, shown
from dstream.failures.attribution import given
from dstream.operators.state.index import Shard, ShardIndex, is_outweighed, parts_to_merge
from dstream.operators.state.shards import (
    Blob,
    CachedShard,
    ShardFiles,
    ShardLocation,
    kept_shards,
    recent_files,
    sealed,
)
from dstream.spi.epochs import MovesToDisk, ShardChange, ShardState, StateOperator, target_of
from dstream.spi.records import StateFiles

__all__ = ["ShardedStepState", "folder_of"]


_PATIENCE = 2
"""Factor of the limit of changes after a snapshot in an epoch, which takes as long as all other shards of the task."""


class _Staged(NamedTuple):
    """A shard after its epoch, and its changes to write.

    Attributes:
        state: the shard.
        change: the change that is reported to the driver, without its location.
        data: the pickle of a delta or of a snapshot; None if nothing changed.
    """

    state: ShardState
    change: ShardChange
    data: bytes | None


@dataclass(slots=True)
class ShardedStepState(SharedInProcess):
    """The state of one step for one epoch. A task's attempt uses it once: `open` and `keep` shards, then `staged`.

    Attributes:
        index: the location of the state after the last epoch.
        files: the state files of the job.
        job: the id of the job.
        epoch: the number of the epoch, for the names of files.
        version: the version of the plan that the job runs.
    """

    index: ShardIndex
    files: StateFiles
    job: str
    epoch: int
    version: str = ""
    _patience: int = field(default=1, repr=False)
    _kept: dict[int, _Staged] = field(default_factory=dict, repr=False)
    _least: tuple[int | None, float | None] = field(default=(None, None), repr=False)

    @property
    def shards(self) -> int:
        """The number of shards."""
        return len(self.index.shards)

    def touched(self, target: int, targets: int, new: int, now: float) -> list[int]:
        """Return the shards of a task in which time alone does something."""
        count = len(self.index.shards)
        mine = (number for number in range(count) if target_of(number, count, targets) == target)
        return [number for number in mine if self.index.shards[number].is_due(new, now)]

    def open(self, shard: int, operator: StateOperator) -> ShardState:
        """Return the state of a shard as the last epoch left it, for this task alone.

        Raises:
            IllegalStateError: a part of it is missing or damaged.
            EngineError: the storage fails.
        """
        known = kept_shards.take(self.job, self.version, self._place(shard))
        return self._shard_files().state(shard, self.index.shards[shard], operator, known)

    def keep(self, shard: int, state: ShardState) -> None:
        """Take a shard back; its changes are pickled at once, so the state may share them."""
        known = self.index.shards[shard]
        change, data = self._change(shard, known, state)
        self._kept[shard] = _Staged(state, change, data)

    def _change(self, shard: int, known: Shard, state: ShardState) -> tuple[ShardChange, bytes | None]:
        delta = state.delta()
        data = None if delta is None else self._pickled(delta, state)
        is_snapshot = data is not None and is_outweighed(known.parts, len(data), shard, self._patience)
        if is_snapshot:
            self._patience = _PATIENCE if known.parts else self._patience
            data = self._pickled(state.dump(), state)
        merges = 0 if data is None or is_snapshot else parts_to_merge(known.parts, shard)
        now = (state.deadline(), state.clock_deadline())
        return ShardChange(shard, is_snapshot, "", 0, 0, len(state), merges, *now), data

    def _pickled(self, value: Any, state: ShardState) -> bytes:
        try:
            return self.files.dump(value)
        except Exception as error:
            # Pickle's message names neither the key nor the state.
            self._look_at_each(state)
            add_note(error, f"the state of step {self.index.stage!r} is pickled at the end of each epoch")
            raise

    def _look_at_each(self, state: ShardState) -> None:
        """Raise the error of the first state that cannot be pickled, with its key.

        Raises:
            Exception: of the first such state.
        """
        for key, of_key in _entries(state):
            try:
                self.files.dump(of_key)
                self.files.dump(key)
            except Exception as error:
                group = "" if key is None else f" of the key {shown(key)}"
                given(error, f"where the state{group} was pickled, at the end of an epoch")
                raise

    def relieve(self) -> bool:
        """Move all movable shards of this process to disk, also the shards of earlier epochs and tasks."""
        # A list, since `any` of a generator would stop at the first shard that moves.
        mine = [_moved(each.state) for each in self._kept.values()]
        return any([*mine, kept_shards.visit(self.job, self.version, _moved)])

    def staged(self) -> tuple[ShardChange, ...]:
        """Write the shards kept since the last call to a new file, and return the changes with their locations.

        Raises:
            EngineError: the storage fails; then no change is committed.
        """
        kept, self._kept = self._kept, {}
        self._least = _least_of(kept.values())
        # Each attempt of a task has a file of its own: a late attempt cannot overwrite a committed file.
        name = f"{folder_of(self.index.stage)}/{self.epoch:012d}-{secrets.token_hex(16)}"
        changes = self._written(name, kept)
        # After the file was written: a shard whose change failed to be written must not be cached under a token.
        for shard, each in kept.items():
            token = name if each.data is not None else self.index.shards[shard].token
            kept_shards.put(self.job, self.version, self._place(shard), CachedShard(token, each.state))
        return changes

    def _written(self, name: str, kept: dict[int, _Staged]) -> tuple[ShardChange, ...]:
        changes, data = [], bytearray()
        for shard, (_, change, blob) in kept.items():
            start = len(data)
            if blob is not None:
                data += self._part(name, change, blob)
                change = _placed(change, name, start, len(data) - start)
            if blob is not None or self._is_news(shard, change):
                changes.append(change)
        if data:
            self.files.write(name, whole := bytes(data))
            recent_files.put(name, whole)
        return tuple(changes)

    def _part(self, name: str, change: ShardChange, data: bytes) -> bytes:
        parts = self.index.shards[change.shard].parts
        merged = self._shard_files().blobs(change.shard, parts[len(parts) - change.merges :])
        return sealed([*merged, Blob(name, data)], name, change.shard)

    def _is_news(self, shard: int, change: ShardChange) -> bool:
        known = self.index.shards[shard]
        return (change.deadline, change.clock_deadline) != (known.deadline, known.clock_deadline)

    def deadlines(self) -> tuple[int | None, float | None]:
        """Return the least deadlines of the shards that were staged last."""
        return self._least

    def _place(self, shard: int) -> ShardLocation:
        return ShardLocation(self.index.stage, shard)

    def _shard_files(self) -> ShardFiles:
        return ShardFiles(self.files, self.index.stage)


def _moved(state: ShardState) -> bool:
    return isinstance(state, MovesToDisk) and state.to_disk()


def _entries(state: ShardState) -> Iterator[tuple[Any, Any]]:
    with suppress(Exception):  # A user's function may compute them, and fail on an incomplete state.
        yield from state.entries()


def _placed(change: ShardChange, file: str, offset: int, length: int) -> ShardChange:
    is_snapshot, keys, merges = change.is_snapshot, change.keys, change.merges
    now = (change.deadline, change.clock_deadline)
    return ShardChange(change.shard, is_snapshot, file, offset, length, keys, merges, *now)


def _least_of(kept: Iterable[_Staged]) -> tuple[int | None, float | None]:
    changes = [each.change for each in kept]
    deadlines = (change.deadline for change in changes if change.deadline is not None)
    clock = (change.clock_deadline for change in changes if change.clock_deadline is not None)
    return min(deadlines, default=None), min(clock, default=None)


def folder_of(stage: str) -> str:
    """Return the folder of a step's files: its name as far as a path takes it, and a digest that makes it unique."""
    plain = re.sub(r"[^a-z0-9]+", "-", stage.lower()).strip("-")[:40]
    return f"{plain or 'step'}-{hashlib.sha256(stage.encode()).hexdigest()[:12]}"
