"""The shards that this process has seen, each with the token of the state that it is in.

A task takes a shard out, applies what came, and puts it back with the token that it has if the epoch is committed. If
it is not, no plan ever names that token, and the shard is loaded anew. So nobody has to be told what was committed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from dstream.spi.state_operator import ShardState

__all__ = ["KeptShard", "KeptShards", "Place", "kept_shards"]

_IDLE = 600.0
"""Seconds after which the shards of a job are dropped when another job needs some: it has ended, or gone elsewhere."""


class Place(NamedTuple):
    """Which shard of which step.

    Attributes:
        stage: the name of the step.
        version: of the plan; with another one the functions of the operator are others, which a shard holds.
        shard: its number.
    """

    stage: str
    version: str
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
    used_at: float
    shards: dict[Place, KeptShard] = field(default_factory=dict)


class KeptShards:
    """The shards of all jobs in one process. Tasks in several threads may use them."""

    def __init__(self) -> None:
        self._jobs: dict[str, _OfJob] = {}

    def take(self, job: str, place: Place) -> KeptShard | None:
        """Take a shard out; None if it is not there."""
        found = self._jobs.get(job)
        return None if found is None else found.shards.pop(place, None)

    def put(self, job: str, place: Place, kept: KeptShard) -> None:
        """Keep a shard until its job asks for it, has ended, or has been idle for long."""
        now = time.monotonic()
        found = self._jobs.get(job)
        if found is None:
            self._drop_idle(now)
            found = self._jobs.setdefault(job, _OfJob(now))
        found.used_at = now
        found.shards[place] = kept

    def _drop_idle(self, now: float) -> None:
        for job, kept in list(self._jobs.items()):
            if now - kept.used_at > _IDLE:
                self.forget(job)

    def forget(self, job: str, version: str | None = None) -> None:
        """Drop the shards of a job; with `version`, those of its plans before that one."""
        if version is None:
            self._jobs.pop(job, None)
        elif found := self._jobs.get(job):
            for place in [place for place in list(found.shards) if place.version != version]:
                found.shards.pop(place, None)


kept_shards = KeptShards()
"""Those of this process."""
