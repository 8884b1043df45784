"""Snapshots: the state of a job, exported under a name, with which other jobs begin. It outlives the job.

A snapshot is a record `snapshots/...` in the storage of the job, and copies of the files of state that it names.
`written_snapshot` makes the contents of the record: the fields of `Snapshot`, a record of the log of the job
(`unbounded.log`) with a complete index, the shape of the pipeline, and the location of the files. The version of the
format is that of all records of jobs, in the first line of each (`FormattedRecords` in `records`).

Reading a record of another version, or one that is damaged, raises an `IllegalStateError`; lists leave it out and log a
warning. A name without a snapshot is a `ValueError` that lists the names that exist.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dstream.errors import IllegalStateError
from dstream.failures import shown
from dstream.jobs.records import FormattedRecords, packed, unpacked
from dstream.jobs.runs import JobContext
from dstream.jobs.state import JobState, Shape
from dstream.jobs.unbounded.log import EpochLog, LogRecord, read_record, written_record
from dstream.jobs.upgrades import Memory
from dstream.operators.state.index_format import index_to_plain
from dstream.spi.records import StateFiles

__all__ = ["Snapshot", "SnapshotRecord", "Snapshots", "read_snapshot", "written_snapshot"]


_log = logging.getLogger("dstream.jobs")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The exported state of a job: `JobConfig(initial_snapshot=name)` begins with it.

    Attributes:
        name: the name from the user.
        job: the id of the job.
        job_name: the name of the job, or None.
        epoch: the number of epochs that the job had published or was about to publish.
        exported_at: the time of the export.
        keys: the number of keys with a state in each stage, by the names of the stages.
    """

    name: str
    job: str
    job_name: str | None
    epoch: int
    exported_at: datetime
    keys: Mapping[str, int]


class SnapshotRecord(NamedTuple):
    """Snapshot in its stored form.

    Attributes:
        snapshot: its description for the user.
        record: the record of the log of the job, with a complete index.
        shape: the shape of the pipeline of the job.
        folder: names its files.
        place: the storage of its files; None: the storage of the records.
    """

    snapshot: Snapshot
    record: LogRecord
    shape: Shape
    folder: str
    place: str | None

    @property
    def memory(self) -> Memory:
        """The state of a job that begins with it."""
        return Memory.of_records([self.record])


def written_snapshot(stored: SnapshotRecord) -> bytes:
    """Return the contents of the record of a snapshot."""
    snapshot = stored.snapshot
    content = {each.name: getattr(snapshot, each.name) for each in dataclasses.fields(snapshot)}
    content |= {"exported_at": snapshot.exported_at.timestamp(), "keys": dict(snapshot.keys)}
    content |= {"number": stored.record.number, "record": written_record(stored.record)}
    return packed({**content, "shape": stored.shape, "folder": stored.folder, "place": stored.place})


def read_snapshot(data: bytes, name: str) -> SnapshotRecord:
    """Return the snapshot in the contents of a record.

    Args:
        data: the contents.
        name: of the snapshot, or of its record, for the message.

    Raises:
        IllegalStateError: they are damaged.
    """
    try:
        content = unpacked(data)
        record = read_record(content["record"], content["number"], content["job"])
        fields = {each.name: content[each.name] for each in dataclasses.fields(Snapshot)}
        snapshot = Snapshot(**{**fields, "exported_at": datetime.fromtimestamp(fields["exported_at"], UTC)})
        return SnapshotRecord(snapshot, record, content["shape"], content["folder"], content["place"])
    except Exception as error:  # msgpack has exceptions of its own
        raise IllegalStateError(f"the record of the snapshot {name!r} is damaged: {error!s:.200}") from error


class Snapshots:
    """The snapshots of the storage of a context."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._records = FormattedRecords(context.running_storage().records)

    def export(self, name: str, state: JobState, log: EpochLog, now: float) -> Snapshot:
        """Copy the state of a job after its last epoch. It replaces a snapshot of the same name.

        Args:
            name: the name of the snapshot.
            state: the state of the job, which may continue meanwhile.
            log: the log of the job.
            now: the time.

        Raises:
            IllegalStateError: the job has not begun, or has no records; or a file of its state is missing or damaged.
            TypeError: the name is no string.
            ValueError: it is empty.
        """
        self.check(name, state)
        record_name = _record_of(name)
        last = log.last(state.log)
        if last is None:
            raise IllegalStateError(
                f"the job {state.name or state.id!r} has committed nothing yet, so nothing is there"
            )
        memory = Memory.of_records(log.since_checkpoint(last))
        index = {step: index_to_plain(found) for step, found in memory.steps.items()}
        record = dataclasses.replace(last.claimed(last.number, "", last.now), index=index)
        keys = {step: found.keys for step, found in memory.steps.items()}
        exported_at = datetime.fromtimestamp(now, UTC)
        snapshot = Snapshot(name, state.id, state.name, last.published, exported_at, keys)
        # A new folder for each export: one that fails leaves the snapshot of that name as it was.
        folder = f"snapshot-{record_name[-12:]}-{secrets.token_hex(8)}"
        stored = SnapshotRecord(snapshot, record, state.shape, folder, state.config.files_at)
        # The files before the record: a snapshot that can be found has all of them.
        if sizes := _sizes_of(memory):
            copies = self._files(stored.place, folder)
            try:
                _copied(sizes, self._files(stored.place, state.id), copies)
            except BaseException:
                # No record will ever name these copies; the error that is raised is the reason.
                with suppress(Exception):
                    _remove(sizes, copies)
                raise
        self._replace(record_name, stored)
        return snapshot

    @staticmethod
    def check(name: str, state: JobState) -> None:
        """Refuse an invalid name, and a job without records.

        Raises:
            IllegalStateError: the job has no records.
            TypeError: the name is no string.
            ValueError: it is empty.
        """
        _record_of(name)
        if state.config.guarantee == "none":
            raise IllegalStateError(
                f"{state.title} keeps no records, so nothing can be exported: it has JobConfig(guarantee='none')"
            )

    def _replace(self, record_name: str, stored: SnapshotRecord) -> None:
        """Bind the name to this snapshot, and remove the previous one."""
        data = written_snapshot(stored)
        while True:
            found = self._records.read(record_name)
            if self._records.write(record_name, data, 1 if found is None else found.version + 1):
                break
        # After the record: if the process dies here, orphaned files remain, but no snapshot without files.
        if found is not None:
            self._remove_files(found.data, stored.snapshot.name)

    def restore(self, name: str, now: float, to: StateFiles | None) -> LogRecord:
        """Return the record from which a new job begins, after its state was copied.

        Args:
            name: of the snapshot.
            now: the time.
            to: the files of the new job; None if none of its steps has a state.

        Raises:
            ValueError: there is no such snapshot.
        """
        stored = self.find(name)
        if to is not None and (sizes := _sizes_of(stored.memory)):
            _copied(sizes, self._files(stored.place, stored.folder), to)
        # Epochs and counts belong to the new job; offsets, watermarks and state are retained.
        return dataclasses.replace(stored.record, number=0, now=now, published=0, counts={})

    def find(self, name: str) -> SnapshotRecord:
        """Return a snapshot.

        Raises:
            IllegalStateError: its record is damaged.
            ValueError: there is no snapshot of that name.
        """
        found = self._records.read(_record_of(name))
        if found is None:
            names = ", ".join(repr(each.name) for each in self.all()) or "none"
            raise ValueError(f"there is no snapshot {name!r}; snapshots: {names}")
        return read_snapshot(found.data, name)

    def all(self) -> list[Snapshot]:
        """Return all snapshots, newest first; damaged records are skipped and logged."""
        snapshots: list[Snapshot] = []
        for record_name in self._records.names("snapshots/"):
            try:
                found = self._records.read(record_name)
                snapshots += [] if found is None else [read_snapshot(found.data, record_name).snapshot]
            except IllegalStateError as error:
                _log.warning("a snapshot is not among those that are listed: %s", error)
        return sorted(snapshots, key=lambda each: each.exported_at, reverse=True)

    def remove(self, name: str) -> bool:
        """Remove a snapshot; False if there is none of that name."""
        found = self._records.read(_record_of(name))
        if found is None:
            return False
        self._records.remove(_record_of(name))
        self._remove_files(found.data, name)
        return True

    def _remove_files(self, data: bytes, name: str) -> None:
        """Remove the files of a removed snapshot; a record that is damaged does not contain their names."""
        try:
            stored = read_snapshot(data, name)
        except IllegalStateError as error:
            _log.warning("files of a snapshot that is no more may be left: %s", error)
            return
        if sizes := _sizes_of(stored.memory):
            _remove(sizes, self._files(stored.place, stored.folder))

    def _files(self, place: str | None, job: str) -> StateFiles:
        context = self._context if place is None else self._context.elsewhere(place)
        return context.running_storage().state_files(job)


def _sizes_of(memory: Memory) -> dict[str, int]:
    """Return the files with parts of the state, with the number of bytes up to the last part."""
    shards = (shard for index in memory.steps.values() for shard in index.shards)
    sizes: dict[str, int] = {}
    for part in (part for shard in shards for part in shard.parts):
        # Bytes after the last part of a file belong to shards that have been rewritten since.
        sizes[part.file] = max(sizes.get(part.file, 0), part.offset + part.length)
    return sizes


def _copied(sizes: Mapping[str, int], source: StateFiles, to: StateFiles) -> None:
    for name, size in sizes.items():
        try:
            data = source.read(name, 0, size)
        except FileNotFoundError as error:
            raise IllegalStateError(f"{source.title} has no file {name} any more") from error
        to.remove(name)  # A process that died while it copied may have left a part.
        to.write(name, data)


def _remove(names: Iterable[str], files: StateFiles) -> None:
    for name in names:
        files.remove(name)


def _record_of(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a snapshot must be a text, not {shown(name)}")
    if not name.strip():
        raise ValueError("the name of a snapshot must not be empty")
    return f"snapshots/{hashlib.sha256(name.encode()).hexdigest()[:48]}"
