"""`epochs()`: unbounded pipelines under test, with items, clock and sinks in the hands of the test."""

from __future__ import annotations

import pickle
import shutil
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import uuid4

from dstream.arguments import count, kind_of
from dstream.base.pickling import dumps
from dstream.base.threads import in_this_process
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.jobs.unbounded.ranges import EpochInput
from dstream.plan import explained
from dstream.spi import Sink
from dstream.spi.runtime import EnginesOfEpochs
from dstream.spi.sink import MapWriter, Receipt, Writer

if TYPE_CHECKING:
    from dstream.jobs.unbounded.epoch_runner import EpochRunner
    from dstream.jobs.unbounded.log import LogRecord
    from dstream.jobs.unbounded.state import StatesOfSteps
    from dstream.pipeline.plan import PipelinePlan
    from dstream.session.context import Context
    from dstream.spi.records import StateFiles

__all__ = ["CapturingSink", "Epochs", "ManualSource", "by_partition", "captured_items", "epochs"]


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Stretch(Generic[T]):
    """Range of items of one partition, sent to the task."""

    items: Sequence[T]

    def read(self) -> Iterator[T]:
        return iter(self.items)


@dataclass(eq=False)
class ManualSource(Generic[T]):
    """Result of `epochs().source(...)`. An offset is the number of items of the partition that have been read.

    Attributes:
        name: the name in messages.
        partitions: the items of each partition so far.
    """

    name: str
    partitions: dict[str, list[T]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The source, for messages."""
        return f"source({self.name!r})"

    def begin(self) -> Mapping[str, int]:
        """Begin with the first item."""
        return dict.fromkeys(self.partitions, 0)

    def reach(self, offsets: Mapping[str, int], most: int | None = None) -> Mapping[str, int]:
        """Return the number of items of each partition."""
        return {name: len(items) for name, items in self.partitions.items()}

    def split(self, partition: str, start: int | None, stop: int) -> _Stretch[T]:
        """Return the items of a range."""
        return _Stretch(self.partitions[partition][start or 0 : stop])

    def timestamp(self, item: T) -> int | None:
        """Return the `timestamp` of an item that has one."""
        found: int | None = getattr(item, "timestamp", None)
        return found

    def give(self, given: Mapping[int, Sequence[T]]) -> None:
        """Add items to partitions; missing partitions are created."""
        # New lists, since those before are put back if the epoch fails.
        more = {str(number): [*self.partitions.get(str(number), ()), *items] for number, items in given.items()}
        self.partitions = {**self.partitions, **more}

    def __repr__(self) -> str:
        return self.label


def by_partition(given: Any, read: Iterable[object]) -> dict[ManualSource[Any], dict[int, list[Any]]]:
    """Return the items that a test supplies in an epoch, as lists by the numbers of partitions.

    Args:
        given: the items of each source, or its items by the number of the partition.
        read: the sources of the pipeline.

    Raises:
        TypeError: it is something else.
        ValueError: the pipeline does not read one of the sources.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"cut() takes the items of each source, such as {{numbers: [1, 2]}}, not {kind_of(given)}")
    known = set(map(id, read))
    for source in given:
        if not isinstance(source, ManualSource):
            raise TypeError(f"cut() takes items of what source(...) returned, and {source!r} is {kind_of(source)}")
        if id(source) not in known:
            raise ValueError(f"the pipeline does not read {source!r}: nothing would become of its items")
    return {source: _lists(source, items) for source, items in given.items()}


def _lists(source: ManualSource[Any], items: Any) -> dict[int, list[Any]]:
    of_partitions = items if isinstance(items, Mapping) else {0: items}
    for number, some in of_partitions.items():
        if type(number) is not int or number < 0:
            raise TypeError(f"the partitions of {source!r} have numbers from 0 on, and {number!r} is none")
        if not isinstance(some, Iterable):
            raise TypeError(f"the items of {source!r} must be a list or another iterable, not {kind_of(some)}")
    return {number: list(some) for number, some in of_partitions.items()}


@dataclass(frozen=True, slots=True)
class CapturingSink:
    """A sink whose only output are its receipts, which contain the items.

    Attributes:
        sink: the sink that it replaces.
    """

    sink: Sink[Any, Any]

    job = None

    @property
    def label(self) -> str:
        """The sink as the user wrote it."""
        return self.sink.label

    @property
    def collector(self) -> Any:
        """The collector that makes entries of the items, as for the sink."""
        return self.sink.collector

    def open(self, context: Any) -> CapturingSink:
        """Return itself: there is no target."""
        return self

    def begin(self, job: str | None, epoch: int = 1) -> _Capturing:
        """Return the results of one epoch."""
        return _Capturing(_Items() if self.sink.collector is None else _Entries())

    def result(self) -> None:
        """Return nothing."""


@dataclass(frozen=True, slots=True)
class _Capturing:
    writer: Writer | MapWriter
    is_done = False

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Publish nothing."""

    def abort(self) -> None:
        """Remove nothing."""


@dataclass(frozen=True, slots=True)
class _Items:
    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        yield dumps(list(items))


@dataclass(frozen=True, slots=True)
class _Entries:
    buckets = 1

    def bucket_of(self, key: Any) -> int:
        from dstream.keys import canonical_all, stable_hash

        (canonical,) = canonical_all([key])
        return stable_hash(canonical) % self.buckets

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Receipt]:
        yield dumps([tuple(entry) for entry in entries])


def captured_items(receipts: Sequence[Receipt]) -> list[Any]:
    """Return the items in receipts; items of a map are pairs of a key and a value."""
    return [item for receipt in receipts if isinstance(receipt, bytes) for item in pickle.loads(receipt)]


Given = Mapping[ManualSource[Any], "Sequence[Any] | Mapping[int, Sequence[Any]]"]
"""The items of an epoch: of each source, by the number of the partition, or of the first one alone."""
_SHARDS = 8
_LONGEST_JUMP = 10**8
"""Seconds, about three years: a clock that jumps further from the default 0 was meant to start at that time."""


def epochs(context: Context | None = None) -> Epochs:
    """Return a runner of an unbounded pipeline, epoch by epoch, controlled by a test. Nothing waits, no job is created.

    It is the epoch that jobs run: the same plan, records and state.

    Args:
        context: has the engine; unset, the local engine. With `engine="auto"`, epochs run in this process. If its
            storage has no state files that workers can reach, as for `on_both_engines`, a temporary folder of this
            machine is used.

    Example:
        >>> import dstream as ds
        >>> from reducers import to_ilist
        >>> by_hand = epochs()
        >>> numbers = by_hand.source("numbers")
        >>> pipeline = ds.Pipeline()
        >>> pipeline.read_from(numbers).map(lambda n: n * n).write_to(to_ilist("squares"))
        <SinkStage 'write_to': to_ilist('squares')>
        >>> by_hand.of(pipeline).cut({numbers: [1, 2]})
        {'write_to': [1, 4]}
        >>> by_hand.cut({numbers: [3]})
        {'write_to': [9]}
    """
    return Epochs(context)


class Epochs:
    """Epochs by hand: `source(...)` for pipelines, `of(pipeline)`, then `cut(...)` once for each epoch."""

    def __init__(self, context: Context | None = None) -> None:
        self._context = context
        self._sources: list[ManualSource[Any]] = []
        self._plan: PipelinePlan | None = None
        self._history: list[tuple[dict[ManualSource[Any], Any], float, bool]] = []
        self._folder: str | None = None
        self.now = 0.0
        self._names_clock = False
        self._is_replayed = True

    def source(self, name: str, partitions: int = 1) -> ManualSource[Any]:
        """Return an unbounded source for a pipeline; its items are passed to `cut`.

        Args:
            name: the name in messages.
            partitions: their number at the start; `cut` may add more.

        Raises:
            TypeError: `partitions` is no whole number.
            ValueError: it is negative.
        """
        made: ManualSource[Any] = ManualSource(name, {str(each): [] for each in range(count(partitions, "partitions"))})
        self._sources.append(made)
        return made

    def of(self, pipeline: Any) -> Epochs:
        """Set a pipeline, or a graph, and restart.

        Args:
            pipeline: reads sources of this object; the items of its sinks are returned to the test instead.

        Raises:
            TypeError: it is neither.
        """
        plan = _plan_of(pipeline)
        if self._plan is not None:
            self._runner.close()
        self._plan = plan.with_writes([replace(each, sink=CapturingSink(each.sink)) for each in plan.writes])
        self._history, self._is_replayed = [], True
        self._begin()
        return self

    def cut(
        self, given: Given | None = None, now: float | None = None, *, is_end: bool = False
    ) -> dict[str, list[Any]]:
        """Run exactly one epoch, and return the items of each sink in it, by the name of its stage.

        Args:
            given: the items of this epoch; none for an omitted source.
            now: the clock time in seconds, not before the last one; unset, unchanged. The time of the first cut is the
                start of the job: no partition has been idle before. By default it is 0.
            is_end: all sources end with these items; windows close. The steps downstream of processors that might
                continue, as in `stream_from_processor`, are notified of their end.

        Raises:
            IllegalStateError: there is no pipeline yet, its sources have ended, or a replay failed.
            TypeError: `given` is not a mapping of items by source and partition.
            ValueError: the pipeline does not read one of the sources; or `now` is years behind a first cut without it.
            Exception: raised by a function of the pipeline; the epoch has no effect, and may be cut again.
        """
        self._check_plan()
        if not self._is_replayed:
            raise IllegalStateError(
                "a replay failed in between: replay() runs all epochs again, of(pipeline) begins anew"
            )
        return self._cut(given, now, is_end)

    def _check_plan(self) -> PipelinePlan:
        if self._plan is None:
            raise IllegalStateError("there is no pipeline: epochs().of(pipeline) takes one")
        return self._plan

    def _cut(self, given: Given | None, now: float | None, is_end: bool) -> dict[str, list[Any]]:
        plan = self._check_plan()
        copied = by_partition(given or {}, self._runner.open_plan.sources.values())
        if copied and any(is_end for _, _, is_end in self._history):
            raise IllegalStateError("all sources have ended: of(pipeline) begins anew")
        at = self.now if now is None else max(self.now, float(now))
        self._check_clock(now, at)
        if not self._history:
            self._start_clock(at)
        with explained(plan.several([None] * len(plan.writes)), "cut"):
            got = self._run_epoch(copied, at, is_end)
        # Not before the epoch has run, since one that fails is not replayed.
        self._history.append((copied, at, is_end))
        self._names_clock = self._names_clock or now is not None
        return got

    def _check_clock(self, now: float | None, at: float) -> None:
        if now is not None and self._history and not self._names_clock and at - self.now > _LONGEST_JUMP:
            raise ValueError(
                f"the clock would jump from 0 to {at:.0f}, so that every partition without items was idle for years; "
                "a job starts its clock with its first epoch: give now= to the first cut, too"
            )

    def replay(self) -> list[dict[str, list[Any]]]:
        """Run all epochs again, from the start and with the same borders; return the items of sinks in each.

        Raises:
            IllegalStateError: there is no pipeline yet.
            Exception: raised by a function of the pipeline; all epochs may be replayed again.
        """
        self._check_plan()
        history, names_clock = self._history, self._names_clock
        self._runner.close()
        self._history, self._is_replayed = [], False
        try:
            self._begin()
            again = [self._cut(*each) for each in history]
        finally:
            self._history, self._names_clock = history, names_clock
        self._is_replayed = True
        return again

    @property
    def clock(self) -> int | None:
        """The greatest timestamp before which all events are in epochs that were cut; as `job.clock`."""
        return self._record.clock

    @property
    def late(self) -> dict[str, int]:
        """The number of late items at each stage that has state, since the start."""
        return {stage: counts["late"] for stage, counts in self._record.counts.items() if "late" in counts}

    # ------------------------------------------------------------------------------------------------------- the run

    def _begin(self) -> None:
        from dstream.jobs.unbounded.epoch_runner import EpochRunner
        from dstream.jobs.unbounded.log import LogRecord, SourceMark

        assert self._plan is not None, "it was taken"
        self.now, self._names_clock = 0.0, False
        for each in self._sources:
            each.partitions = {name: [] for name in each.partitions}
        self._job = uuid4().hex
        self._runner: EpochRunner = EpochRunner(self._here(), self._plan, self._job)
        opened = self._runner.open_plan.sources
        sources = {stage: SourceMark(dict(source.begin()), False, self.now) for stage, source in opened.items()}
        self._record: LogRecord = LogRecord(0, "", 0.0, sources=sources, index={}, is_claim=True)
        self._states: StatesOfSteps = self._no_states()

    def _start_clock(self, now: float) -> None:
        """Start the job, and find its sources, when the first epoch is read."""
        sources = {stage: mark._replace(found_at=now) for stage, mark in self._record.sources.items()}
        self._started_at, self._record = now, replace(self._record, now=now, sources=sources)

    def _here(self) -> Context:
        """Return the context, opened with the first pipeline."""
        if self._context is None:
            from dstream.session.connection import connect

            self._context = connect(engine="local", storage="memory:")
        return self._context

    def _no_states(self) -> StatesOfSteps:
        from dstream.jobs.unbounded.state import states_of_steps

        steps = self._runner.open_plan.steps
        files = self._state_files() if steps else None
        return states_of_steps(self._job, self._job, files, steps, [self._record], _SHARDS)

    def _state_files(self) -> StateFiles:
        """Return the files of state: in the storage, or in a separate folder if workers cannot reach the storage."""
        context = self._here()
        try:
            files = context.running_storage().state_files(self._job)
            if context.engine != "local":
                pickle.dumps(files)
        except UnsupportedError:
            files = context.elsewhere(self._own_folder()).running_storage().state_files(self._job)
        return files

    def _own_folder(self) -> str:
        if self._folder is None:
            self._folder = mkdtemp(prefix="dstream-state-")
            weakref.finalize(self, in_this_process(shutil.rmtree, self._folder, ignore_errors=True))
        return self._folder

    def _run_epoch(
        self, given: Mapping[ManualSource[Any], Mapping[int, Sequence[Any]]], now: float, is_end: bool
    ) -> dict[str, list[Any]]:
        """Run an epoch of these items; discard them if it fails."""
        before = {source: source.partitions for source in given}
        for source, items in given.items():
            source.give(items)
        try:
            return self._run(now, is_end)
        except BaseException:
            for source, partitions in before.items():
                source.partitions = partitions
            raise

    def _run(self, now: float, is_end: bool) -> dict[str, list[Any]]:
        from dstream.jobs.unbounded.log import read_record, written_record
        from dstream.jobs.unbounded.ranges import ranges_of
        from dstream.jobs.unbounded.watermarks import EventTime

        assert self._plan is not None, "it was taken"
        before = self._record
        sources = self._runner.open_plan.sources
        news = {stage: ranges_of(source, before.sources[stage], None) for stage, source in sources.items()}
        if is_end:
            before = _with_all_of(before, news)
            news = {stage: _ended(some) for stage, some in news.items()}
        marks = {stage: some.mark for stage, some in news.items()}
        time = EventTime(
            self._runner.open_plan,
            before,
            marks,
            now,
            self._started_at,
            before.is_claim,
            pickle.loads,
            is_over=is_end,
        )
        # The engine of this process: epochs of tests are usually small.
        is_auto = isinstance(self._here().running_engine(), EnginesOfEpochs)
        ran = self._runner.run(before, news, time, self._states, now, "inprocess" if is_auto else None)
        # As a driver that takes over the job would read it.
        self._record = read_record(written_record(ran.record), ran.record.number, self._job)
        self._states, self.now = ran.states, now
        if is_end:
            self._runner.close()
        receipts = [ran.record.receipts.get(write.stage, ()) for write in self._plan.writes]
        self._runner.publish(ran.record)
        return {write.stage: captured_items(some) for write, some in zip(self._plan.writes, receipts, strict=True)}


def _with_all_of(record: LogRecord, news: Mapping[str, EpochInput]) -> LogRecord:
    """Return a copy of the record with the partitions that are added in the epoch in which they end."""
    marks = {
        stage: mark._replace(
            offsets={**dict.fromkeys((each.partition for each in news[stage].ranges), 0), **mark.offsets}
        )
        for stage, mark in record.sources.items()
    }
    return replace(record, sources=marks)


def _ended(news: EpochInput) -> EpochInput:
    """Return a copy of the input of an epoch without a backlog."""
    return EpochInput(
        [each._replace(ends=True) for each in news.ranges], news.mark._replace(offsets={}, has_ended=True)
    )


def _plan_of(pipeline: Any) -> PipelinePlan:
    from dstream.core import DAG
    from dstream.pipeline import Pipeline
    from dstream.pipeline.plan import PipelinePlan

    plan = pipeline.plan() if isinstance(pipeline, Pipeline | DAG) else pipeline
    if isinstance(plan, PipelinePlan):
        return plan
    raise TypeError(f"of() takes a pipeline or a graph, not {kind_of(pipeline)}")
