"""Keys that only one attempt of one task writes to, until the driver publishes what they hold."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from dstream.errors import DStreamError
from dstream.storage.codec.codec import Codec
from dstream.storage.redis.redis_collection import Collection, types_of
from dstream.storage.redis.scripts import ABORT, IS_DONE, KEEP_SECONDS, NOW, TYPES, Script
from dstream.storage.redis.server import Connection

__all__ = ["AT_A_TIME", "Job", "Stage"]

AT_A_TIME = 5000
"""How many entries or items a task sends at once."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where one attempt of a task writes. No two attempts share one, so a losing one never shows."""

    collection: Collection
    prefix: str

    @staticmethod
    def of(collection: Collection, run: str) -> Stage:
        """Return a new place for an attempt that belongs to a run of a job."""
        return Stage(collection, f"{run}:{uuid.uuid4().hex}")

    def key(self, part: object) -> str:
        """Return one of its keys."""
        return self.collection.key(f"{self.prefix}:{part}")


class Sender:
    """Sends staged data over a connection, so that nothing stays for ever that nobody publishes."""

    def __init__(self, connection: Connection, collection: Collection) -> None:
        self._connection = connection
        self._collection = collection
        self._now: Any = None
        self._known: set[str] = set()

    def send(self, keys: Sequence[str], commands: Callable[[Any], object]) -> list[Any]:
        """Send commands that write to `keys`, and return their answers."""
        if self._now is None:
            self._now = self._collection.run(self._connection, NOW, [])
        new = [key for key in keys if key not in self._known]
        self._known.update(new)
        with self._collection.pipeline(self._connection) as pipe:
            if new:  # before they are made: vacuum and abort find them there
                pipe.zadd(self._collection.temporary, dict.fromkeys(new, self._now))
            commands(pipe)
            for key in new:
                pipe.expire(key, KEEP_SECONDS)
            answers: list[Any] = pipe.execute()
        return answers[bool(new) : len(answers) - len(new)]


class Written(Protocol):
    """A receipt: what an attempt staged, with the codec that it used."""

    @property
    def codec(self) -> Codec: ...

    def check(self, connection: Connection, codec: Codec) -> None:
        """Raise what a strict collection of the types of `codec` refuses."""
        ...


class Job:
    """What the driver of a job does, whatever the job writes into."""

    def __init__(
        self, connection: Connection, collection: Collection, codec: Codec, job: str | None, replace: bool
    ) -> None:
        self._connection = connection
        self._collection = collection
        self._began_with = codec
        self._replace = replace
        self._run = f"s:{uuid.uuid4().hex}"
        self._is_anonymous = int(job is None)
        # One without a name is a job of its own, whose mark disappears after a day.
        self._mark = collection.key("jobs" if job is not None else f"{self._run}:done")
        self._job = "" if job is None else job

    @property
    def is_done(self) -> bool:
        """Whether the job has committed."""
        return bool(self._script(IS_DONE, [self._mark], self._job))

    def abort(self) -> None:
        """Remove what tasks of this run have staged."""
        with contextlib.suppress(DStreamError):  # it disappears by itself
            self._script(ABORT, [self._collection.temporary], self._collection.key(f"{self._run}:"))

    def _script(self, script: Script, keys: Sequence[str], *arguments: Any) -> Any:
        return self._collection.run(self._connection, script, keys, *arguments)

    def _types(self, receipts: Sequence[Written]) -> tuple[bytes, Codec]:
        """Return the types as they are, and the codec that the commit leaves behind; the first receipt decides."""
        types = self._script(TYPES, [])
        codec = self._collection.codec(types)
        if receipts and not codec.is_decided:
            first = receipts[0].codec
            same = types == types_of(self._began_with)
            codec = replace(
                codec,
                key=first.key if same or codec.key is None else codec.key,
                value=first.value if same or codec.value is None else codec.value,
            )
        for written in receipts:
            if codec.strict and (written.codec.key, written.codec.value) != (codec.key, codec.value):
                written.check(self._connection, codec)
        return types, codec
