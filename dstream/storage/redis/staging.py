"""Staged keys that one attempt of one task writes, until the driver publishes their content."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dstream.errors import DStreamError
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import settled
from dstream.storage.redis.collection import RedisCollection
from dstream.storage.redis.scripts import ABORT, IS_DONE, KEEP_SECONDS, NOW, TYPES, Script
from dstream.storage.redis.server import Connection

__all__ = ["AT_A_TIME", "RedisJob", "Stage"]


AT_A_TIME = 5000
"""The maximal number of entries or items in one request of a task."""

_PREFIX = re.compile(r"s:[0-9a-f]{32}:[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Stage:
    """The keys that one attempt of a task writes. No two attempts share them, so a losing one never shows."""

    collection: RedisCollection
    prefix: str

    @staticmethod
    def of(collection: RedisCollection, run: str) -> Stage:
        """Return a new staging location for an attempt of a run of a job."""
        return Stage(collection, f"{run}:{uuid.uuid4().hex}")

    @staticmethod
    def at(collection: RedisCollection, prefix: Any) -> Stage:
        """Return the staging location of a receipt.

        Raises:
            ValueError: it is none.
        """
        if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
            raise ValueError(f"nothing is staged at {prefix!r:.200}")
        return Stage(collection, prefix)

    @property
    def run(self) -> str:
        """Return the common prefix of the staging locations of all attempts of its run of the job."""
        return self.prefix.rpartition(":")[0]

    def key(self, part: object) -> str:
        """Return one of its keys."""
        return self.collection.key(f"{self.prefix}:{part}")


class Sender:
    """Sends staged data over a connection, so that data that are never published are removed."""

    def __init__(self, connection: Connection, collection: RedisCollection) -> None:
        self._connection = connection
        self._collection = collection
        self._now: Any = None
        self._known: set[str] = set()

    def send(self, keys: Sequence[str], commands: Callable[[Any], object]) -> list[Any]:
        """Send commands that write to `keys`, and return their answers."""
        if self._now is None:
            # By the clock of the server, with which a vacuum compares.
            self._now = self._collection.run(self._connection, NOW, [])
        new = [key for key in keys if key not in self._known]
        self._known.update(new)
        with self._collection.pipeline(self._connection) as pipe:
            if new:  # before they are made: vacuum and abort find them there
                pipe.zadd(self._collection.temporary, dict.fromkeys(new, self._now))
            commands(pipe)
            for key in new:
                # A key can expire only once it exists, so this follows the commands that make it.
                pipe.expire(key, KEEP_SECONDS)
            answers: list[Any] = pipe.execute()
        return answers[bool(new) : len(answers) - len(new)]


class Written(Protocol):
    """The output that an attempt staged, with the codec that it used."""

    @property
    def stage(self) -> Stage: ...

    @property
    def codec(self) -> Codec: ...

    def check(self, connection: Connection, codec: Codec) -> None:
        """Raise the refusals of a strict collection of the types of `codec`."""
        ...


class RedisJob:
    """The driver's part of a job, for maps and lists."""

    def __init__(
        self,
        connection: Connection,
        collection: RedisCollection,
        codec: Codec,
        job: str | None,
        epoch: int,
        replace: bool,
    ) -> None:
        self._connection = connection
        self._collection = collection
        self._began_with = codec
        self._replace = replace
        self._run = f"s:{uuid.uuid4().hex}"
        self._is_anonymous = int(job is None)
        # A run without a name is a separate job, whose mark expires after a day.
        self._mark = collection.key("jobs" if job is not None else f"{self._run}:done")
        self._job = "" if job is None else job
        self._epoch = epoch

    @property
    def is_done(self) -> bool:
        """Return whether this epoch of the job, or a later one, has committed."""
        return bool(self._script(IS_DONE, [self._mark], self._job, self._epoch))

    def abort(self) -> None:
        """Remove the staged output of this run's tasks."""
        self._remove([self._run])

    def _remove(self, runs: Iterable[str]) -> None:
        with contextlib.suppress(DStreamError):  # it disappears by itself
            for run in runs:
                self._script(ABORT, [self._collection.temporary], self._collection.key(f"{run}:"))

    def _tidy(self, receipts: Sequence[Written]) -> None:
        """Remove the output of losing attempts, of this run and of those that wrote the receipts."""
        self._remove({self._run, *(written.stage.run for written in receipts)})

    def _script(self, script: Script, keys: Sequence[str], *arguments: Any) -> Any:
        return self._collection.run(self._connection, script, keys, *arguments)

    def _types(self, receipts: Sequence[Written]) -> tuple[bytes, Codec]:
        """Return the current types, and the codec after the commit; the first receipt decides."""
        types = self._script(TYPES, [])
        codec = self._collection.codec(types)
        if receipts:
            codec = settled(codec, receipts[0].codec)
        for written in receipts:
            if codec.strict and (written.codec.key, written.codec.value) != (codec.key, codec.value):
                written.check(self._connection, codec)
        return types, codec
