"""`EpochLog` and `LogRecord`: the commits of a job's epochs, as plain data in a log of records.

A driver that takes over a job writes an empty record under its own token. From then on the previous driver cannot write
one: its number is taken.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from dstream.errors import EngineError, IllegalStateError, JobTakenOverError
from dstream.jobs.records import packed, unpacked
from dstream.spi.records import Record
from dstream.spi.sink import Receipt
from dstream.spi.source import Identity, Offset

if TYPE_CHECKING:
    from dstream.spi.records import Records

__all__ = [
    "EPOCHS_PER_CHECKPOINT",
    "Claim",
    "EpochLog",
    "LogRecord",
    "PlaceTime",
    "SourceMark",
    "StepMark",
    "TimedPartition",
    "UnkeptRecords",
    "read_record",
    "written_record",
]


class TimedPartition(NamedTuple):
    """A partition of a source, as seen by one stage that assigns timestamps; it has its own watermark."""

    stamp: str
    source: str
    partition: str


class PlaceTime(NamedTuple):
    """The event time of a partition, as one stage sees it.

    Attributes:
        watermark: of the partition; it never decreases.
        policy: pickled, after the last range.
        heard_at: the clock time of the last item of the partition, or of its discovery.
    """

    watermark: int
    policy: bytes
    heard_at: float


class SourceMark(NamedTuple):
    """The position of a job in a source.

    Attributes:
        offsets: the offset of each partition after the items that were read.
        has_ended: no items will arrive from it any more.
        found_at: the clock time when the job first saw the source.
        left_out: the partitions that the source no longer reports, with the clock time when that was noticed. They do
            not hold the watermark back, and resume at their offset if they reappear.
        identity: the identity of the source to which the offsets belong, of each of its parts if it has parts; empty:
            it has none.
    """

    offsets: Mapping[str, Offset]
    has_ended: bool
    found_at: float
    left_out: Mapping[str, float] = MappingProxyType({})
    identity: Identity = ""

    def goes_on(self, partition: str) -> bool:
        """Return whether items of a partition may still arrive."""
        return partition in self.offsets and partition not in self.left_out


class StepMark(NamedTuple):
    """The watermark and the deadlines of a step after an epoch.

    Attributes:
        watermark: at the end of the epoch.
        deadline: the least watermark at which the step acts without an item; None: no timer is pending.
        clock_deadline: the same for the clock.
    """

    watermark: int
    deadline: int | None
    clock_deadline: float | None


@dataclass(frozen=True, slots=True)
class LogRecord:
    """Record of the log of a job.

    Attributes:
        number: the number of the epoch; the log has no gaps.
        token: the token of the driver that wrote it.
        now: the clock time of the epoch, in seconds since 1970.
        published: the number of epochs that have run so far, without records by which a driver claims the job.
        sources: how far each has been read, by the name of its stage.
        times: the watermarks.
        steps: the steps over epochs, by their names.
        receipts: the receipts of the sinks, by the names of their stages; empty if nothing ran.
        changes: the locations of the changes of state in this epoch.
        index: the locations of the complete state; None: the records since the last checkpoint contain it together.
        counts: the items that stages emitted so far, late items, their dead letters, and items by the edges of
            vertices.
        clock: the greatest timestamp before which all events are in committed epochs; None: unknown.
        is_claim: nothing ran; a driver has written it to claim the job.
        lease: the version of the lease with which its driver began; a later driver has a greater version.
    """

    number: int
    token: str
    now: float
    published: int = 0
    sources: Mapping[str, SourceMark] = field(default_factory=dict)
    times: Mapping[TimedPartition, PlaceTime] = field(default_factory=dict)
    steps: Mapping[str, StepMark] = field(default_factory=dict)
    receipts: Mapping[str, Sequence[Receipt]] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    index: Mapping[str, Any] | None = None
    counts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    clock: int | None = None
    is_claim: bool = False
    lease: int = 0

    def claimed(self, number: int, token: str, now: float, lease: int = 0) -> LogRecord:
        """Return the record by which another driver begins to decide: the same, with nothing to publish."""
        # The clock of this machine may lag the clock of the previous driver, and the time of a job never decreases.
        now = max(now, self.now)
        claim = dataclasses.replace(self, number=number, token=token, now=now, lease=lease, is_claim=True)
        return dataclasses.replace(claim, receipts={}, changes={}, index=None)


def written_record(record: LogRecord) -> bytes:
    """Return a record as bytes.

    Raises:
        TypeError: an offset or a receipt is no plain data.
    """
    content = {each.name: getattr(record, each.name) for each in dataclasses.fields(record)}
    content["sources"] = {
        # msgpack (1.2) refuses read-only views of dictionaries, which marks may have.
        name: tuple(mark._replace(offsets=dict(mark.offsets), left_out=dict(mark.left_out)))
        for name, mark in record.sources.items()
    }
    content["times"] = [(*place, *time) for place, time in record.times.items()]
    content["steps"] = {name: tuple(mark) for name, mark in record.steps.items()}
    content["receipts"] = {stage: list(receipts) for stage, receipts in record.receipts.items()}
    content["changes"], content["counts"] = dict(record.changes), {k: dict(v) for k, v in record.counts.items()}
    content["index"] = None if record.index is None else dict(record.index)
    return packed(content)


def read_record(data: bytes, number: int, job: str) -> LogRecord:
    """Return the record that was written.

    Args:
        data: the content of the record.
        number: that under which it is stored.
        job: the id of the job, for messages.

    Raises:
        IllegalStateError: it is not written by a driver.
    """
    try:
        record = _record(unpacked(data))
        # A copy under another name is a complete record, but not of this epoch.
        if record.number != number:
            raise ValueError(f"it is that of the epoch {record.number}")
    except Exception as error:  # msgpack has exceptions of its own
        raise IllegalStateError(f"the record of epoch {number} of the job {job} is damaged: {error!s:.200}") from error
    return record


def _record(content: Any) -> LogRecord:
    record = LogRecord(**content)
    if type(record.number) is not int or type(record.token) is not str or type(record.now) is not float:
        raise ValueError("it names no epoch and no driver")
    return dataclasses.replace(
        record,
        sources={name: SourceMark(*mark) for name, mark in record.sources.items()},
        times={TimedPartition(*each[:3]): PlaceTime(*each[3:]) for each in content["times"]},
        steps={name: StepMark(*mark) for name, mark in record.steps.items()},
    )


EPOCHS_PER_CHECKPOINT = 100
"""A job can start from each record whose number is a multiple of this."""


class Claim(NamedTuple):
    """The record by which a driver claims the right to commit, and the previous record.

    Attributes:
        before: the previous record; in a new job, `mine`.
        mine: the record that this driver has written. It is never read again: another driver may have taken over since.
    """

    before: LogRecord
    mine: LogRecord


_FIRST_TIME = 1_000_000_000
"""The least number that is a time in seconds, as a configuration that was stored has it."""


class EpochLog:
    """The log of one job as one driver sees it.

    Records are stored apart from those of `JobRecords`, whose names are listed to find jobs.

    Args:
        records: the records of the storage.
        job: its id.
        token: the token of the driver.
        lease: the version of the lease with which the driver began.
    """

    def __init__(self, records: Records, job: str, token: str, lease: int = 0) -> None:
        self._records = records
        self._job = job
        self._token = token
        self._lease = lease

    def read(self, number: int) -> LogRecord | None:
        """Return the record of an epoch; None if there is none."""
        found = self._records.read(self._name(number))
        return None if found is None else read_record(found.data, number, self._job)

    def last(self, hint: int = 0) -> LogRecord | None:
        """Return the last record; None if there is none.

        Args:
            hint: the number of a record that existed; later records are read one by one.
        """
        # A record below the floor may still exist, and counts no more.
        found = self.read(max(hint, self.floor()))
        if found is None and (numbers := self.numbers()):
            found = self.read(numbers[-1])
        while found is not None and (after := self.read(found.number + 1)) is not None:
            found = after
        return found

    def since_checkpoint(self, last: LogRecord) -> list[LogRecord]:
        """Return the records from the last one with a complete index up to `last`.

        Raises:
            IllegalStateError: one of them was removed.
        """
        found = [last]
        while found[-1].index is None and found[-1].number > 0:
            before = self.read(found[-1].number - 1)
            if before is None:
                raise IllegalStateError(
                    f"the record of epoch {found[-1].number - 1} of the job {self._job} is missing, so where its state "
                    "is cannot be known"
                )
            found.append(before)
        return found[::-1]

    def last_run(self, last: LogRecord) -> LogRecord:
        """Return the record of the last epoch that ran, which may have to be published still.

        A driver may have died between its claim and the publication. All epochs before a record by which the job
        resumes at an earlier epoch, or with another pipeline, are published: that record has a complete index.
        """
        found = last
        while found.is_claim and found.index is None and found.number:
            before = self.read(found.number - 1)
            if before is None:
                break
            found = before
        return found

    def claim(
        self,
        hint: int,
        now: Callable[[], float],
        first: Callable[[], LogRecord],
        may: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> Claim:
        """Claim the job, until another driver writes a record after the record of this one.

        Args:
            hint: as for `last`.
            now: reads the clock.
            first: creates the record from which a new job begins, number 0.
            may: is entered while a record is written; raises for a driver that was replaced.

        Raises:
            JobTakenOverError: a driver that took the lease later has claimed already, while this one paused.
        """
        while True:
            last = self.last(hint)
            if last is None:
                # A claim, too: of two drivers that begin one job, the second finds the number taken.
                mine = dataclasses.replace(first(), token=self._token, lease=self._lease, is_claim=True)
                before = mine
            else:
                if last.lease > self._lease:
                    raise self._taken_over(last.number + 1)
                before, mine = last, last.claimed(last.number + 1, self._token, now(), self._lease)
                # If the number is taken meanwhile, the next search begins here, and not at the old hint.
                hint = last.number
            with may():
                is_put = self._put(mine)
            if is_put:
                return Claim(before, mine)

    def put(self, record: LogRecord) -> None:
        """Commit an epoch.

        Raises:
            JobTakenOverError: another driver decides.
            EngineError: the storage fails; whether this was written is not known.
        """
        if not self._put(record):
            raise self._taken_over(record.number)

    def check_is_last(self, record: LogRecord, failure: Exception) -> None:
        """Raise an error if another driver has written a record after this one: then no failure counts.

        It may have removed it again, if this one paused for longer than records are kept.

        Raises:
            JobTakenOverError: it has.
        """
        number, is_taken = record.number + 1, False
        with suppress(EngineError, IllegalStateError):
            is_taken = self.read(number) is not None or self.floor() >= number
        if is_taken:
            raise self._taken_over(number) from failure

    def _taken_over(self, number: int) -> JobTakenOverError:
        return JobTakenOverError(
            f"another driver has taken over the job {self._job}, which continues there; what this one wrote in epoch "
            f"{number} is thrown away"
        )

    def _put(self, record: LogRecord) -> bool:
        """Write a record; False if its number is taken, or was: the number of a removed record is free again."""
        if not self._put_if_absent(record):
            return False
        # Read after the write: the floor rises before records are removed, so it shows whether the number was used.
        if self.floor() <= record.number:
            return True
        self.remove(record.number)
        return False

    def _put_if_absent(self, record: LogRecord) -> bool:
        data = written_record(record)
        try:
            if self._records.write(self._name(record.number), data, 1):
                return True
        except EngineError:
            # The answer may be lost although the record arrived.
            if not self._is_own(record):
                raise
            return True
        return self._is_own(record)

    def _is_own(self, record: LogRecord) -> bool:
        """Return whether the stored record is this driver's own, and only the answer was lost."""
        found = self._records.read(self._name(record.number))
        # Byte for byte: a record with the same token may be that of an earlier run, whose write arrived late.
        return found is not None and found.data == written_record(record)

    def at(self, start: float | datetime) -> LogRecord:
        """Return the record that an epoch left, as `job.epoch` counts them, or the last one not later than a time.

        Of a thousand records ten are read: epochs and clock increase.

        Raises:
            ValueError: there is no such record, or it was removed.
        """
        found: LogRecord | None
        if not isinstance(start, datetime) and start < _FIRST_TIME:
            # A claim has the number of the epoch before it: the first record with a number is the record of the epoch.
            found = self._first_where(lambda record: record.published >= start)
            found = found if found is not None and found.published == start else None
        else:
            until = start.timestamp() if isinstance(start, datetime) else start
            later = self._first_where(lambda record: record.now > until)
            found = self.last() if later is None else self._retained(later.number - 1)
        if found is None:
            raise ValueError(
                f"start_at={start!r}: the job {self._job} keeps no such record; JobConfig(keep=) says how long"
            )
        return found

    def _retained(self, number: int) -> LogRecord | None:
        """Return a record unless it is before the floor: its state may be removed, although the record still exists."""
        return self.read(number) if number >= self.floor() else None

    def _first_where(self, is_so: Callable[[LogRecord], bool]) -> LogRecord | None:
        """Return the first record that satisfies a monotonic predicate."""
        floor = self.floor()
        numbers = [number for number in self.numbers() if number >= floor]

        def holds(number: int) -> bool:
            record = self.read(number)
            return record is not None and is_so(record)

        place = bisect_left(numbers, True, key=holds)
        return self.read(numbers[place]) if place < len(numbers) else None

    def floor(self) -> int:
        """Return the number of the first record that counts. Earlier ones are removed, or put by mistake."""
        found = self._records.read(self._floor_name())
        return 0 if found is None else int(unpacked(found.data))

    def raise_floor(self, number: int) -> None:
        """Invalidate the records before this one; stored before they are removed."""
        while (found := self._records.read(self._floor_name())) is None or int(unpacked(found.data)) < number:
            if self._records.write(self._floor_name(), packed(number), 1 if found is None else found.version + 1):
                return

    def _floor_name(self) -> str:
        return f"job-logs/{self._job}/floor"

    def remove(self, number: int) -> None:
        """Remove a record from which no driver starts any more."""
        self._records.forget(self._name(number))  # By the floor it is already invalid.

    def since(self, number: int) -> Iterator[LogRecord]:
        """Yield a record and all records after it."""
        while (found := self.read(number)) is not None:
            yield found
            number += 1

    def numbers(self) -> list[int]:
        """Return the numbers of all records; this lists them, which may be slow."""
        floor = self.floor()
        return [number for number in self._listed() if number >= floor]

    def numbers_before_floor(self) -> list[int]:
        """Return the numbers of obsolete records that still exist; this lists all, which is slow."""
        listed = self._listed()
        floor = self.floor()
        return [number for number in listed if number < floor]

    def _listed(self) -> list[int]:
        prefix = f"job-logs/{self._job}/"
        ends = (name.removeprefix(prefix) for name in self._records.names(prefix))
        # The record of the floor is among them.
        return sorted(int(end) for end in ends if end.isdigit())

    def _name(self, number: int) -> str:
        return f"job-logs/{self._job}/{number}"


class UnkeptRecords:
    """Records in the memory of one thread."""

    def __init__(self) -> None:
        self._retained: dict[str, Record] = {}

    def read(self, name: str) -> Record | None:
        """Return the record under a name; None if there is none."""
        return self._retained.get(name)

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Write the next version of a record."""
        there = self._retained[name].version if name in self._retained else 0
        if version == there + 1:
            self._retained[name] = Record(version, data)
        return version == there + 1

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with `prefix`, sorted."""
        return sorted(name for name in self._retained if name.startswith(prefix))

    def remove(self, name: str) -> None:
        """Remove a record."""
        self._retained.pop(name, None)

    def forget(self, name: str) -> None:
        """Remove a record."""
        self.remove(name)
