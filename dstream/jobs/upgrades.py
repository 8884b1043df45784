"""Upgrades of jobs: a verdict for each stage of another pipeline, and snapshots that other jobs begin with.

Verdicts need the job's records and the new pipeline alone: nothing is unpickled, and no source is opened.

A snapshot is a record of a log with a whole index, and copies of the files of state that it names. It outlives the job.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dstream.errors import IllegalStateError
from dstream.failures import shown
from dstream.jobs.records import FormattedRecords, packed, unpacked
from dstream.jobs.runs import JobContext
from dstream.jobs.state import JobState, Shape
from dstream.jobs.unbounded.log import EpochLog, LogRecord, read_record, written_record
from dstream.jobs.unbounded.plans import steps_of_plan
from dstream.operators.state.index_format import changes_from_plain, index_from_plain, index_to_plain
from dstream.pipeline.plan import PipelinePlan
from dstream.spi.records import StateFiles

if TYPE_CHECKING:
    from dstream.operators.state.index import ShardIndex
    from dstream.spi.epochs import StateOperator

__all__ = [
    "Memory",
    "Snapshot",
    "SnapshotRecord",
    "Snapshots",
    "StageVerdict",
    "Verdict",
    "check_nothing_is_lost",
    "check_nothing_is_refused",
    "check_still_fits",
    "upgrade_plan",
]


Verdict = Literal["keeps", "starts empty", "dropped", "refused"]


class StageVerdict(NamedTuple):
    """The effect of an update on one stage.

    Attributes:
        stage: its name.
        verdict: `"keeps"` its state; `"starts empty"`, as one that is new; `"dropped"`, with its state;
            `"refused"`, since its state does not fit the new one.
        why: in words.
    """

    stage: str
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of a job, by the names of its stages.

    Attributes:
        sources: those that were read.
        steps: those that keep a state, and where it is.
    """

    sources: frozenset[str] = frozenset()
    steps: Mapping[str, ShardIndex] = field(default_factory=dict)

    @staticmethod
    def of(log: EpochLog, hint: int) -> Memory:
        """Return the state in the log of a job.

        Args:
            log: of the job.
            hint: the number of a record that existed.
        """
        last = log.last(hint)
        return Memory() if last is None else Memory.of_records(log.since_checkpoint(last))

    @staticmethod
    def of_records(records: Sequence[LogRecord]) -> Memory:
        """Return the state in the records since the last one with a whole index."""
        steps = {step: index_from_plain(plain) for step, plain in (records[0].index or {}).items()}
        for record in records[1:]:
            for step, plain in record.changes.items():
                steps[step] = steps[step].applied(changes_from_plain(plain))
        return Memory(frozenset(records[-1].sources), steps)

    def __contains__(self, stage: str) -> bool:
        return stage in self.sources or stage in self.steps


def upgrade_plan(plan: PipelinePlan, shape: Sequence[Sequence[Any]], memory: Memory) -> list[StageVerdict]:
    """Report the effect on each stage: the stages of the new pipeline in its order, then the ones that it lacks.

    Args:
        plan: the new pipeline.
        shape: of the pipeline that the job runs: names, kinds and inputs of its stages.
        memory: the state of the job.
    """
    return _Judging(plan, {name: kind for name, kind, _ in shape}, memory).verdicts()


class _Judging:
    def __init__(self, plan: PipelinePlan, before: Mapping[str, str], memory: Memory) -> None:
        self._before = before
        self._memory = memory
        self._after = {name: (kind, upstreams) for name, kind, upstreams in plan.shape()}
        self._steps = steps_of_plan(plan, memory.steps)

    def verdicts(self) -> list[StageVerdict]:
        names = dict.fromkeys((*self._before, *self._memory.sources, *self._memory.steps))
        gone = [StageVerdict(name, "dropped", self._lost(name)) for name in names if name not in self._after]
        return [StageVerdict(name, *self._verdict(name)) for name in self._after] + gone

    def _verdict(self, name: str) -> tuple[Verdict, str]:
        kind, upstreams = self._after[name]
        if name in self._steps and name in self._memory.steps:
            return _of_state(self._memory.steps[name], self._steps[name])
        if name in self._memory.sources and not upstreams:
            return "keeps", "it goes on behind what was read of it"
        if name in self._memory:
            return "dropped", f"it is {kind} now: {self._lost(name)}"
        if name not in self._before:
            return "starts empty", "it is new" if upstreams else "it is new, and begins where its source begins"
        if self._before[name] != kind:
            return "starts empty", f"it was {self._before[name]}, and is {kind} now"
        return "keeps", "it is as it was, and has nothing to remember"

    def _lost(self, name: str) -> str:
        if name in self._memory.steps:
            return f"the state of {self._memory.steps[name].keys} keys goes with it"
        return "how far it was read is forgotten" if name in self._memory.sources else "it has nothing to remember"


def _of_state(index: ShardIndex, operator: StateOperator) -> tuple[Verdict, str]:
    try:
        index.check_fits(operator)
    except IllegalStateError as misfit:
        return "refused", str(misfit)
    return "keeps", f"it goes on with the state of {index.kind}"


def check_nothing_is_refused(verdicts: Sequence[StageVerdict], title: str) -> None:
    """Refuse a pipeline that cannot use the state of a job.

    Raises:
        IllegalStateError: a stage is refused; the message contains the reason.
    """
    refused = "; ".join(each.why for each in verdicts if each.verdict == "refused")
    if refused:
        raise IllegalStateError(f"{title} cannot go on with this pipeline: {refused}")


def check_still_fits(plan: PipelinePlan, state: JobState, log: EpochLog) -> None:
    """Refuse the pipeline of an update that cannot use the state which the job has by now.

    Raises:
        IllegalStateError: a stage is refused; the message contains the reason.
        Exception: the log cannot be read.
    """
    verdicts = upgrade_plan(plan, state.shape, Memory.of(log, state.log))
    check_nothing_is_refused(verdicts, state.title)


def check_nothing_is_lost(verdicts: Sequence[StageVerdict], memory: Memory, title: str, begins: str) -> None:
    """Refuse a pipeline with which a job would forget something without `force=True`.

    Args:
        verdicts: the verdict on each stage.
        memory: the state of the job.
        title: the name of the job in messages.
        begins: where it begins, in words.

    Raises:
        IllegalStateError: a stage is refused, or one that remembers something would be dropped.
    """
    check_nothing_is_refused(verdicts, title)
    lost = [each for each in verdicts if each.verdict == "dropped" and each.stage in memory]
    if lost:
        words = "; ".join(f"of the stage {each.stage!r}, {each.why}" for each in lost)
        raise IllegalStateError(
            f"{title} {begins}, and this is another pipeline: {words}. Give its stages the names that they had, submit "
            "it under another name, or with JobConfig(force=True) to let the job forget that"
        )


_log = logging.getLogger("dstream.jobs")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The exported state of a job: `JobConfig(initial_snapshot=name)` begins with it.

    Attributes:
        name: that of the user.
        job: the id of the job.
        job_name: that of the job, or None.
        epoch: how many epochs the job had published or was about to publish.
        exported_at: when.
        keys: how many keys each stage had a state of, by the names of the stages.
    """

    name: str
    job: str
    job_name: str | None
    epoch: int
    exported_at: datetime
    keys: Mapping[str, int]


class SnapshotRecord(NamedTuple):
    """A snapshot as it is stored in its record.

    Attributes:
        snapshot: its description for the user.
        record: that of the log of the job, with a whole index.
        shape: of the pipeline of the job.
        folder: names its files.
        place: the storage of its files; None: that of the records.
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


class Snapshots:
    """The snapshots of the storage of a context."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._records = FormattedRecords(context.running_storage().records)

    def export(self, name: str, state: JobState, log: EpochLog, now: float) -> Snapshot:
        """Copy the state of a job after its last epoch. It replaces a snapshot of the same name.

        Args:
            name: of the snapshot.
            state: that of the job, which may continue meanwhile.
            log: that of the job.
            now: the time.

        Raises:
            IllegalStateError: the job has not begun, or keeps no records; or a file of its state is missing or damaged.
            TypeError: the name is no text.
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
        kept = SnapshotRecord(snapshot, record, state.shape, folder, state.config.files_at)
        # The files before the record: a snapshot that can be found has all of them.
        if sizes := _sizes_of(memory):
            copies = self._files(kept.place, folder)
            try:
                _copied(sizes, self._files(kept.place, state.id), copies)
            except BaseException:
                # No record will ever name these copies; the error that is raised is the reason.
                with suppress(Exception):
                    _remove(sizes, copies)
                raise
        self._replace(record_name, kept)
        return snapshot

    @staticmethod
    def check(name: str, state: JobState) -> None:
        """Refuse a name that is none, and a job that keeps nothing.

        Raises:
            IllegalStateError: the job keeps no records.
            TypeError: the name is no text.
            ValueError: it is empty.
        """
        _record_of(name)
        if state.config.guarantee == "none":
            raise IllegalStateError(
                f"{state.title} keeps no records, so nothing can be exported: it has JobConfig(guarantee='none')"
            )

    def _replace(self, record_name: str, kept: SnapshotRecord) -> None:
        """Bind the name to this snapshot, and remove the one before."""
        data = _written(kept)
        while True:
            found = self._records.read(record_name)
            if self._records.write(record_name, data, 1 if found is None else found.version + 1):
                break
        # Behind the record: a process that dies here leaves files that nothing names, and no snapshot without files.
        if found is not None:
            self._remove_files(found.data, kept.snapshot.name)

    def begun(self, name: str, now: float, to: StateFiles | None) -> LogRecord:
        """Return the record from which a new job begins, after its state was copied.

        Args:
            name: of the snapshot.
            now: the time.
            to: the files of the new job; None if none of its steps has a state.

        Raises:
            ValueError: there is no such snapshot.
        """
        kept = self.find(name)
        if to is not None and (sizes := _sizes_of(kept.memory)):
            _copied(sizes, self._files(kept.place, kept.folder), to)
        # Epochs and counts are those of the new job; offsets, watermarks and state are kept.
        return dataclasses.replace(kept.record, number=0, now=now, published=0, counts={})

    def find(self, name: str) -> SnapshotRecord:
        """Return a snapshot.

        Raises:
            IllegalStateError: its record is damaged.
            ValueError: there is none of that name.
        """
        found = self._records.read(_record_of(name))
        if found is None:
            names = ", ".join(repr(each.name) for each in self.all()) or "none"
            raise ValueError(f"there is no snapshot {name!r}; snapshots: {names}")
        return _read(found.data, name)

    def all(self) -> list[Snapshot]:
        """Return all of them, newest first; one whose record is damaged hides no others, and the log names it."""
        snapshots: list[Snapshot] = []
        for record_name in self._records.names("snapshots/"):
            try:
                found = self._records.read(record_name)
                snapshots += [] if found is None else [_read(found.data, record_name).snapshot]
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
            kept = _read(data, name)
        except IllegalStateError as error:
            _log.warning("files of a snapshot that is no more may be left: %s", error)
            return
        if sizes := _sizes_of(kept.memory):
            _remove(sizes, self._files(kept.place, kept.folder))

    def _files(self, place: str | None, job: str) -> StateFiles:
        context = self._context if place is None else self._context.elsewhere(place)
        return context.running_storage().state_files(job)


def _sizes_of(memory: Memory) -> dict[str, int]:
    """Return the files that have parts of some state, with how many of their bytes reach to the last of these."""
    shards = (shard for index in memory.steps.values() for shard in index.shards)
    sizes: dict[str, int] = {}
    for part in (part for shard in shards for part in shard.parts):
        # Bytes behind the last of them in a file are of shards that have been written again since.
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


def _written(kept: SnapshotRecord) -> bytes:
    snapshot = kept.snapshot
    content = {each.name: getattr(snapshot, each.name) for each in dataclasses.fields(snapshot)}
    content |= {"exported_at": snapshot.exported_at.timestamp(), "keys": dict(snapshot.keys)}
    content |= {"number": kept.record.number, "record": written_record(kept.record)}
    return packed({**content, "shape": kept.shape, "folder": kept.folder, "place": kept.place})


def _read(data: bytes, name: str) -> SnapshotRecord:
    try:
        content = unpacked(data)
        record = read_record(content["record"], content["number"], content["job"])
        told = {each.name: content[each.name] for each in dataclasses.fields(Snapshot)}
        snapshot = Snapshot(**{**told, "exported_at": datetime.fromtimestamp(told["exported_at"], UTC)})
        return SnapshotRecord(snapshot, record, content["shape"], content["folder"], content["place"])
    except Exception as error:  # msgpack has exceptions of its own
        raise IllegalStateError(f"the record of the snapshot {name!r} is damaged: {error!s:.200}") from error
