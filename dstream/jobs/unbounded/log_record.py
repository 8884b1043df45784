"""`LogRecord`: what one epoch commits, as plain data. Reading it loads no class and runs no code."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from dstream.errors import IllegalStateError
from dstream.jobs.epoch_record import packed, unpacked
from dstream.spi.sink import Receipt
from dstream.spi.stream_source import Identity, Offset

__all__ = ["LogRecord", "Place", "PlaceTime", "SourceMark", "StepMark", "read_record", "written_record"]


class Place(NamedTuple):
    """Where time is told: a partition of a source, as one stage that gives timestamps sees it."""

    stamp: str
    source: str
    partition: str


class PlaceTime(NamedTuple):
    """How far the time of a place has come.

    Attributes:
        watermark: of the partition; it never goes back.
        policy: pickled, as the last range left it.
        heard_at: the reading of the clock when the partition last gave an item, or was found.
    """

    watermark: int
    policy: bytes
    heard_at: float


class SourceMark(NamedTuple):
    """How far a source has been read.

    Attributes:
        offsets: of each partition, behind what was read of it.
        has_ended: nothing will come of it any more.
        found_at: the reading of the clock when the job first saw the source.
        left_out: the partitions that the source does not show any more, with the reading of the clock when that was
            noticed. They hold no time back, and go on where they were should they come back.
        identity: what the offsets belong to, in words of the source, of each of its parts if it says so; empty: it does
            not say.
    """

    offsets: Mapping[str, Offset]
    has_ended: bool
    found_at: float
    left_out: Mapping[str, float] = MappingProxyType({})
    identity: Identity = ""

    def goes_on(self, partition: str) -> bool:
        """Say whether items of a partition may still come."""
        return partition in self.offsets and partition not in self.left_out


class StepMark(NamedTuple):
    """How a step over epochs was left.

    Attributes:
        watermark: at the end of the epoch.
        deadline: the least watermark at which something happens there without an item; None: nothing waits.
        clock_deadline: the same of the clock.
    """

    watermark: int
    deadline: int | None
    clock_deadline: float | None


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record of the log of a job.

    Attributes:
        number: of the epoch; the log has no gaps.
        token: that of the driver that put it.
        now: the one reading of the clock of the epoch, in seconds since 1970.
        published: how many epochs have run so far; records by which a driver claims the job are none.
        sources: how far each has been read, by the name of its stage.
        times: how far time has come.
        steps: the steps over epochs, by their names.
        receipts: those of the sinks, by the names of their stages; empty if nothing ran.
        changes: where the state of steps went in this epoch, in the terms of the state.
        index: where all of it is, in the same terms; None: the records since the last checkpoint say so together.
        counts: what stages gave on so far, what was late, their dead letters, and what passed the edges of vertices.
        clock: the greatest timestamp before which all events are in committed epochs; None: none is known yet.
        is_claim: nothing ran; a driver has put it to become the one who decides.
        lease: the version of the lease with which its driver began; that of a driver that came later is greater.
    """

    number: int
    token: str
    now: float
    published: int = 0
    sources: Mapping[str, SourceMark] = field(default_factory=dict)
    times: Mapping[Place, PlaceTime] = field(default_factory=dict)
    steps: Mapping[str, StepMark] = field(default_factory=dict)
    receipts: Mapping[str, Sequence[Receipt]] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    index: Mapping[str, Any] | None = None
    counts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    clock: int | None = None
    is_claim: bool = False
    lease: int = 0

    def claimed(self, number: int, token: str, now: float, lease: int = 0) -> LogRecord:
        """Return the record by which another driver becomes the one who decides: the same, with nothing to publish."""
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
    """Return what was written.

    Args:
        data: the content of the record.
        number: that under which it stands.
        job: the id of the job, for messages.

    Raises:
        IllegalStateError: it is not what a driver writes.
    """
    try:
        record = _record(unpacked(data))
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
        times={Place(*each[:3]): PlaceTime(*each[3:]) for each in content["times"]},
        steps={name: StepMark(*mark) for name, mark in record.steps.items()},
    )
