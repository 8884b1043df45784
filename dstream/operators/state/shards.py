"""Shards of a state: their files, their parts, and their cache in this process.

A task removes a shard from the cache, applies its input, and puts it back with the token of the state after the epoch.
If the epoch is not committed, no plan names that token, and the shard is loaded again. So commits need not be reported
to workers.

A file name is used once, by one attempt of one task, and its content never changes: no entry of the cache can be
stale.

<crc32, 4 bytes> <1 byte: compressed or not> <8 bytes: the length before that> <changes>

The changes are pairs (token, pickle), packed by msgpack. A token is the name of the file that the change was first
written to. The checksum includes the name of the file and the number of the shard, so that no part is taken for
another one.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn
from zlib import crc32

from dstream.base.showing import add_note
from dstream.base.threads import RenewedLock
from dstream.errors import IllegalStateError
from dstream.operators.state.index import Part, Shard, ShardIndex
from dstream.spi.epochs import ClosesProcessors, ShardState, StateOperator
from dstream.spi.records import StateFiles

__all__ = [
    "Blob",
    "CachedShard",
    "RecentFiles",
    "ShardCache",
    "ShardFiles",
    "ShardLocation",
    "entries",
    "kept_shards",
    "opened",
    "recent_files",
    "sealed",
]


_IDLE = 600.0
"""Seconds after which another job may drop the shards of an idle job, which has ended or moved to other workers."""


class ShardLocation(NamedTuple):
    """The name of a shard.

    Attributes:
        stage: the name of the step.
        shard: its number.
    """

    stage: str
    shard: int


class CachedShard(NamedTuple):
    """A shard in the memory of this process.

    Attributes:
        token: names the state that it is in.
        state: the shard itself, of which the task that has taken it out is the only user.
    """

    token: str
    state: ShardState


@dataclass(slots=True)
class _OfJob:
    version: str
    used_at: float
    shards: dict[ShardLocation, CachedShard] = field(default_factory=dict)


class ShardCache:
    """The shards of all jobs in one process. Tasks in several threads may use them.

    A shard contains the functions of its operator, so the shards of another version of the plan are dropped.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, _OfJob] = {}

    def take(self, job: str, version: str, place: ShardLocation) -> CachedShard | None:
        """Remove and return a shard; None if it is not cached."""
        found = self._jobs.get(job)
        # `pop` is atomic: one of several threads gets the shard.
        return None if found is None or found.version != version else found.shards.pop(place, None)

    def put(self, job: str, version: str, place: ShardLocation, kept: CachedShard) -> None:
        """Cache a shard until its job takes it, has ended, or has been idle for long."""
        now = time.monotonic()
        found = self._jobs.get(job)
        if found is None or found.version != version:
            self._drop_idle(now)
            found = self._jobs[job] = _OfJob(version, now)
        found.used_at = now
        found.shards[place] = kept

    def visit(self, job: str, version: str, look: Callable[[ShardState], bool]) -> bool:
        """Call `look` with each shard of a job, taken out meanwhile; return whether any call returned True."""
        found = self._jobs.get(job)
        results = [False]
        for place in [] if found is None else list(found.shards):
            kept = self.take(job, version, place)
            if kept is not None:
                results.append(look(kept.state))
                self.put(job, version, place, kept)
        return any(results)

    def _drop_idle(self, now: float) -> None:
        for job, kept in list(self._jobs.items()):
            if now - kept.used_at > _IDLE:
                self.forget(job)

    def forget(self, job: str, error: BaseException | None = None) -> None:
        """Drop the shards of a job.

        Args:
            job: its id.
            error: why it is not continued in this process; None if it has ended, or the reason is unknown.
        """
        dropped = self._jobs.pop(job, None)
        for kept in () if dropped is None else dropped.shards.values():
            if isinstance(kept.state, ClosesProcessors):
                kept.state.close_processors(error)


kept_shards = ShardCache()
"""The cache of this process."""


_SMALL_FILE = 256 << 10
_MOST_RECENT = 16 << 20
"""In bytes. An epoch that touches 1,000 keys writes 20,000, and changes are merged after about twenty epochs."""


class RecentFiles:
    """The first bytes of files, by name; the oldest are dropped first. Threads may share it."""

    def __init__(self) -> None:
        self._heads: dict[str, bytes] = {}
        self._size = 0
        self._lock = RenewedLock()

    def read(self, files: StateFiles, name: str, offset: int, length: int) -> bytes:
        """Return a part of a file; a small file is read completely, since its other parts will be needed as well.

        Raises:
            FileNotFoundError: there is no such file.
        """
        end = offset + length
        head = self._heads.get(name)
        if head is None and end <= _SMALL_FILE:
            head = files.read(name, 0, _SMALL_FILE)
            self.put(name, head)
        return head[offset:end] if head is not None and end <= len(head) else files.read(name, offset, length)

    def put(self, name: str, data: bytes) -> None:
        """Cache the contents of a file, if they are small."""
        if len(data) > _SMALL_FILE:
            return
        with self._lock:
            # Popped, so that a name that is put again is the newest.
            self._size += len(data) - len(self._heads.pop(name, b""))
            self._heads[name] = data
            while self._size > _MOST_RECENT:
                self._size -= len(self._heads.pop(next(iter(self._heads))))


recent_files = RecentFiles()
"""The recent files of this process."""


_HEAD = struct.Struct(">I?Q")
_SUM_BYTES = 4
_COMPRESSED_FROM = 4096
"""In bytes: below, compression saves less than the other costs of a file."""
_MOST_UNPACKED = 1 << 40


class Blob(NamedTuple):
    """A pickled change of one epoch, or a pickled snapshot.

    Attributes:
        token: the token of the state of the shard after it.
        data: the pickle.
    """

    token: str
    data: bytes


def sealed(blobs: list[Blob], file: str, shard: int) -> bytes:
    """Return the contents of a part as bytes."""
    packed = _packed([value for blob in blobs for value in blob])
    body = _compressed(packed)
    head = _HEAD.pack(0, body is not packed, len(packed))[_SUM_BYTES:]
    return _sum(head, body, file, shard).to_bytes(_SUM_BYTES, "big") + head + body


def opened(data: bytes, file: str, shard: int) -> list[Blob]:
    """Return the blobs of a sealed part.

    Raises:
        IllegalStateError: it is not the content that was written.
    """
    if len(data) < _HEAD.size:
        raise IllegalStateError("it is cut off")
    checksum, is_compressed, length = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    # A checksum finds accidents, not forgeries: the length is bounded too, since `decompress` allocates it.
    if checksum != _sum(data[_SUM_BYTES : _HEAD.size], body, file, shard) or length > _MOST_UNPACKED:
        raise IllegalStateError("it does not hold what was written there")
    found = iter(_unpacked(_decompressed(body, length) if is_compressed else body))
    return [Blob(token, blob) for token, blob in zip(found, found, strict=True)]


def _sum(head: bytes, body: Any, file: str, shard: int) -> int:
    return crc32(body, crc32(head, crc32(f"{file}/{shard}".encode())))


def _compressed(data: bytes) -> bytes:
    """Compress data by LZ4 if that makes them smaller: half as large, at a sixth of the time that pickling took."""
    if len(data) < _COMPRESSED_FROM:
        return data
    import pyarrow as pa  # imported where it is used, since it takes long to load

    smaller: bytes = pa.compress(data, codec="lz4", asbytes=True)
    return smaller if len(smaller) < len(data) * 7 // 8 else data


def _decompressed(data: Any, length: int) -> Any:
    import pyarrow as pa

    return pa.decompress(data, decompressed_size=length, codec="lz4", asbytes=True)


def _packed(values: list[Any]) -> bytes:
    import msgpack  # lazily: `import dstream` must not load it

    data: Any = msgpack.packb(values)
    return bytes(data)


def _unpacked(data: Any) -> list[Any]:
    import msgpack

    found: list[Any] = msgpack.unpackb(data)
    return found


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """The files of a step, from which shards are loaded.

    Attributes:
        files: the files that contain them.
        stage: the name of the step, for messages.
    """

    files: StateFiles
    stage: str

    def state(self, number: int, shard: Shard, operator: StateOperator, known: CachedShard | None) -> ShardState:
        """Return the state of a shard after all its parts.

        Args:
            number: the number of the shard.
            shard: its parts.
            operator: returns an empty state.
            known: the cached shard of this process, current or older; it is consumed.

        Raises:
            IllegalStateError: a part is missing or damaged.
        """
        if known is not None and known.token == shard.token:
            return known.state
        missed = None if known is None else self._missed(number, shard.parts, known.token)
        if known is None or missed is None:
            return self._loaded(number, shard.parts, operator)
        return self._patched(number, known.state, missed)

    def blobs(self, number: int, parts: Sequence[Part]) -> Iterator[Blob]:
        """Yield the changes in parts, in order."""
        for part in parts:
            yield from self._read(number, part)

    def _missed(self, number: int, parts: Sequence[Part], token: str) -> list[Blob] | None:
        """Return the changes since a state; None if it is not an earlier state, or a snapshot was written since.

        The state may be one whose change was merged with later ones, and so be inside a part.
        """
        missed: list[Blob] = []
        for part in reversed(parts):
            if part.file == token:
                return missed
            # Before a snapshot there are no changes: it is not an earlier state.
            if part is parts[0]:
                break
            blobs = self._read(number, part)
            inside = next((place for place, blob in enumerate(blobs) if blob.token == token), None)
            if inside is not None:
                return blobs[inside + 1 :] + missed
            missed = blobs + missed
        return None

    def _loaded(self, number: int, parts: Sequence[Part], operator: StateOperator) -> ShardState:
        state = operator.new()
        if parts:
            # A snapshot is never merged with other parts.
            (snapshot,) = self._read(number, parts[0])
            state.load(self._unpickled(number, snapshot))
            self._patched(number, state, self.blobs(number, parts[1:]))
        return state

    def _patched(self, number: int, state: ShardState, blobs: Iterator[Blob] | list[Blob]) -> ShardState:
        for blob in blobs:
            state.patch(self._unpickled(number, blob))
        return state

    def _unpickled(self, number: int, blob: Blob) -> Any:
        try:
            return self.files.load(blob.data)
        except Exception as error:
            add_note(error, f"while shard {number} of the state of step {self.stage!r} was loaded from {blob.token}")
            raise

    def _read(self, number: int, part: Part) -> list[Blob]:
        try:
            data = recent_files.read(self.files, part.file, part.offset, part.length)
            return opened(data, part.file, number)
        except FileNotFoundError as error:
            self._refuse(number, part, "it is missing", error)
        except IllegalStateError as error:
            self._refuse(number, part, str(error), error)

    def _refuse(self, number: int, part: Part, why: str, error: Exception) -> NoReturn:
        raise IllegalStateError(
            f"{self.files.title} is damaged: step {self.stage!r} needs the file {part.file} for shard {number}, and "
            f"{why}; restore it from a backup, or let the job start at an earlier epoch with JobConfig(start_at=...)"
        ) from error


def entries(
    index: ShardIndex, files: StateFiles, operator: StateOperator, shards: Iterable[int] | None = None
) -> Iterator[tuple[Any, Any]]:
    """Yield the keys of a step with their states, as of the epoch of the index, one shard in memory at a time.

    The states are copies: changing them does not affect the job.

    Args:
        index: the location of the state.
        files: the state files of the job.
        operator: the operator of the step, or another operator that fits the state.
        shards: the numbers of the shards to read, so that several tasks share the work; None: all shards.

    Raises:
        IllegalStateError: the operator does not fit; or a file is damaged, or missing since the running job has removed
            it.
    """
    index.check_fits(operator)
    shard_files = ShardFiles(files, index.stage)
    for number in range(len(index.shards)) if shards is None else shards:
        yield from shard_files.state(number, index.shards[number], operator, None).entries()
