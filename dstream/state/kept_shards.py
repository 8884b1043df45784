"""The shards that this process has seen, each with the token of the state that it is in.

A task takes a shard out, applies what came, and puts it back with the token that it has if the epoch is committed. If
it is not, no plan ever names that token, and the shard is loaded anew. So nobody has to be told what was committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from dstream.spi.state_operator import ClosesProcessors, ShardState

__all__ = ["KeptShard", "KeptShards", "Place", "kept_shards"]

_IDLE = 600.0
"""Seconds after which the shards of a job are dropped when another job needs some: it has ended, or gone elsewhere."""


class Place(NamedTuple):
    """Which shard of which step.

    Attributes:
        stage: the name of the step.
        shard: its number.
    """

    stage: str
    shard: int


class KeptShard(NamedTuple):
    """A shard in the memory of this process.

    Attributes:
        token: names the state that it is in.
        state: the shard itself; whoever has taken it out has it alone.
    """

    token: str
    state: ShardState


@dataclass(slots=True)
class _OfJob:
    version: str
    used_at: float
    shards: dict[Place, KeptShard] = field(default_factory=dict)


class KeptShards:
    """The shards of all jobs in one process. Tasks in several threads may use them.

    A shard holds the functions of the operator that made it, so those of another version of the plan are dropped.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, _OfJob] = {}

    def take(self, job: str, version: str, place: Place) -> KeptShard | None:
        """Take a shard out; None if it is not there."""
        found = self._jobs.get(job)
        return None if found is None or found.version != version else found.shards.pop(place, None)

    def put(self, job: str, version: str, place: Place, kept: KeptShard) -> None:
        """Keep a shard until its job asks for it, has ended, or has been idle for long."""
        now = time.monotonic()
        found = self._jobs.get(job)
        if found is None or found.version != version:
            self._drop_idle(now)
            found = self._jobs[job] = _OfJob(version, now)
        found.used_at = now
        found.shards[place] = kept

    def visit(self, job: str, version: str, look: Callable[[ShardState], bool]) -> bool:
        """Show the shards of a job, each of which nobody else has meanwhile; say whether any of them said yes."""
        found = self._jobs.get(job)
        said = [False]
        for place in [] if found is None else list(found.shards):
            kept = self.take(job, version, place)
            if kept is not None:
                said.append(look(kept.state))
                self.put(job, version, place, kept)
        return any(said)

    def _drop_idle(self, now: float) -> None:
        for job, kept in list(self._jobs.items()):
            if now - kept.used_at > _IDLE:
                self.forget(job)

    def forget(self, job: str, error: BaseException | None = None) -> None:
        """Drop the shards of a job.

        Args:
            job: its id.
            error: why it does not go on here; None if it has ended, or nobody knows.
        """
        dropped = self._jobs.pop(job, None)
        for kept in () if dropped is None else dropped.shards.values():
            if isinstance(kept.state, ClosesProcessors):
                kept.state.close_processors(error)


kept_shards = KeptShards()
"""Those of this process."""
