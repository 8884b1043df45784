"""Tasklets: one processor with its inbox and outbox, cooperative or in a thread of its own."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dstream.errors import UnsupportedError
from dstream.failures import MISSING, TransportedError, blame, item_of, naming, shown
from dstream.failures.attribution import failed_on, given, given_to
from dstream.plan.steps import Step
from dstream.processors.blocks import Mark
from dstream.processors.inbound_edges import EdgeInflow, LeastWatermark
from dstream.processors.inbox_outbox import BlockInbox, EdgeOutbox
from dstream.spi.processor import Processor, ProcessorContext, Watermark
from dstream.values.attachments import JobFiles, files_here, of_job

__all__ = ["OwnThread", "ProcessorTasklet", "TaskletState"]


_log = logging.getLogger("dstream.core")


class TaskletState(NamedTuple):
    """The state of a tasklet besides the saved state of its processor.

    Attributes:
        watermarks: as of `LeastWatermark.state`.
        ended: the senders that have ended, for each inbound edge.
        completed: the edges that are complete.
        has_ended: the processor is complete.
    """

    watermarks: Any
    ended: tuple[frozenset[int], ...]
    completed: frozenset[int]
    has_ended: bool


class ProcessorTasklet:
    """The driver of one processor by the protocol.

    Args:
        processor: the processor.
        context: the context that is passed to it.
        inflows: the inflows of its inbound edges, by their ordinals.
        outbox: the outbox for its output.
        step: the name of the vertex in failures.

    Attributes:
        has_ended: whether it is complete, and its end was sent by all edges.
        saved: the entries that it saved last.
        has_saved: whether it has saved, and others have not yet: meanwhile its processor is not called.
        received: the number of items that arrived by each inbound edge.
    """

    def __init__(
        self,
        processor: Processor,
        context: ProcessorContext,
        inflows: Sequence[EdgeInflow],
        outbox: EdgeOutbox,
        step: Step,
    ) -> None:
        self.processor = processor
        self.context = context
        self.has_ended = False
        self.saved: dict[Any, Any] = {}
        self.has_saved = False
        self._is_restoring = False
        self._inflows = inflows
        self._outbox = outbox
        self._step = step
        self._steps = [replace(step, label=f"{step.label}, inbound edge {n}") for n in range(len(inflows))]
        self._inbox = BlockInbox()
        self._ordinal = 0
        self._watermark: Watermark | None = None
        self._least = LeastWatermark((n, s) for n, each in enumerate(inflows) for s in range(each.senders))
        self._completed: set[int] = set()
        self._turn = 0
        self.received = [0] * len(inflows)
        # Most processors do not override it, and it would be called for each block.
        self._ticks = type(processor).tick is not Processor.tick

    # ------------------------------------------------------------------------------------------------- begin and end

    def start(self) -> None:
        """Initialize the processor."""
        self._calling(self.processor.init, self._outbox, self.context)

    def restore(self, entries: Sequence[tuple[Any, Any]], state: TaskletState) -> None:
        """Restore a started processor from its saved state; it finishes the restore, and emits, in its turns."""
        self._least.restore(state.watermarks)
        for each, ended in zip(self._inflows, state.ended, strict=True):
            each.ended |= ended
        self._completed = set(state.completed)
        self.has_ended = state.has_ended
        inbox = BlockInbox()
        inbox.fill(list(entries))
        while len(inbox):
            before = len(inbox)
            self._calling(self.processor.restore_from_snapshot, inbox)
            if len(inbox) == before:
                raise self._stuck("restore_from_snapshot() took no entry out of the inbox")
        # The queues of edges are not emptied before the processors take turns, so the first turn finishes the restore.
        self._is_restoring = bool(entries)

    def _has_restored(self) -> bool:
        """Finish the restoration of a processor, unless that is done; return whether it is done."""
        if self._is_restoring and self._asking("finish_snapshot_restore"):
            self._is_restoring = False
        return not self._is_restoring

    def _stuck(self, what: str) -> RuntimeError:
        error = RuntimeError(f"{type(self.processor).__name__}.{what}")
        blame(error, self._step)
        return error

    def save(self) -> bool:
        """Save the state of the processor, as far as the outbox takes its output; return whether it is done."""
        if self.has_ended:
            self.saved = {}
            return True
        outbox = self._outbox
        if outbox.saved is None:
            outbox.saved = {}
        if not outbox.flush() or not self._has_restored() or not self._asking("save_to_snapshot"):
            outbox.flush()
            return False
        self.saved, outbox.saved, self.has_saved = outbox.saved, None, True
        # Items without room are sent in the turns that follow: called once more, the processor would save again.
        outbox.flush()
        return True

    def state(self) -> TaskletState:
        """Return the rest of the state; the inbox and the inflows are empty."""
        ended = tuple(frozenset(each.ended) for each in self._inflows)
        return TaskletState(self._least.state(), ended, frozenset(self._completed), self.has_ended)

    def close(self, error: BaseException | None) -> None:
        """Close the processor; its errors are logged."""
        self._outbox.close()
        try:
            self.processor.close(error)
        except Exception:
            _log.exception("close() of a processor of the vertex %r failed", self.context.vertex)

    # ------------------------------------------------------------------------------------------------------ one call

    @property
    def sent(self) -> list[int]:
        """The number of items, with watermarks of its own, emitted by each outbound edge."""
        return self._outbox.sent

    @property
    def is_source(self) -> bool:
        """Return whether nothing leads to it."""
        return not self._inflows

    @property
    def is_quiet(self) -> bool:
        """Return whether no items are pending in or before it, and its processor is restored."""
        if self._is_restoring or self._watermark is not None or len(self._inbox) or not self._outbox.is_empty:
            return False
        if self.has_ended or self.is_source:
            return True
        is_completing = len(self._completed) == len(self._inflows)
        return not is_completing and all(self._is_settled(n, each) for n, each in enumerate(self._inflows))

    def _is_settled(self, ordinal: int, inflow: EdgeInflow) -> bool:
        if not inflow.is_empty:
            return self._earlier_than(ordinal) is not None
        return not inflow.is_ended or ordinal in self._completed

    def _earlier_than(self, ordinal: int) -> int | None:
        """Return an edge of an earlier priority that has not ended; None if this one is read."""
        priority = self._inflows[ordinal].edge.priority
        earlier = (n for n, each in enumerate(self._inflows) if each.edge.priority < priority)
        return next((n for n in earlier if n not in self._completed), None)

    def check_that_nothing_waits(self) -> None:
        """Refuse an edge that waits for the end of another edge beyond an epoch: its pending items would be lost.

        Raises:
            UnsupportedError: there is such an edge.
        """
        for ordinal, each in enumerate(self._inflows):
            earlier = None if each.is_empty else self._earlier_than(ordinal)
            if earlier is not None:
                error = UnsupportedError(
                    f"inbound edge {ordinal} of the vertex {self.context.vertex!r} waits for edge {earlier}, which has "
                    "an earlier priority and did not end in the epoch: in a graph without an end such an edge comes "
                    "from a source that ends, which the first epoch reads"
                )
                blame(error, self._step)
                raise error

    @property
    def has_own_work(self) -> bool:
        """Return whether it has something to do without items: it is a source that has not ended, or it ticks."""
        return not self.has_ended and (self.is_source or (self._ticks and self.processor.ticks_alone))

    @property
    def hears_time(self) -> bool:
        """Return whether its processor does something when time moves."""
        return type(self.processor).try_process_watermark is not Processor.try_process_watermark

    def stand_still(self) -> bool:
        """Send emitted items, and call the processor only to finish its restore; return whether anything was done."""
        if self._is_restoring:
            return self.call()
        outbox = self._outbox
        if outbox.is_empty:
            return False
        with naming(self._step):
            return outbox.flush()

    def call(self) -> bool:
        """Call the processor once, and return whether there was progress.

        Raises:
            Exception: the error of the processor, or of the key function of an outbound edge.
        """
        # Output of a tick would now be in the state of the downstream processors, but not in its own.
        if self.has_saved:
            return self.stand_still()
        outbox = self._outbox
        with naming(self._step):
            if not outbox.flush() or self.has_ended:
                return False
            before, completed = outbox.emitted, len(self._completed)
            is_progress = self._step_on()
            # The end of an edge is processed at once: in a long chain, or after many edges, each end would wait until
            # all other processors have had a turn.
            while len(self._completed) > completed and outbox.flush():
                completed = len(self._completed)
                self._step_on()
            outbox.flush()
            return is_progress or outbox.emitted != before

    def _step_on(self) -> bool:
        inbox = self._inbox
        if self._is_restoring:
            return self._has_restored()
        if self._ticks and not self._asking("tick"):
            return False
        was_filled = bool(len(inbox)) or self._watermark is not None or self._fill()
        if waiting := len(inbox):
            self._calling(self.processor.process, self._ordinal, inbox)
            return was_filled and len(inbox) != waiting
        if self._watermark is not None:
            return self._pass_watermark(self._watermark)
        for ordinal, each in enumerate(self._inflows):
            if each.is_ended and each.is_empty and ordinal not in self._completed:
                return self._complete_edge(ordinal)
        if len(self._completed) == len(self._inflows):
            return self._complete()
        return was_filled

    def _pass_watermark(self, watermark: Watermark) -> bool:
        if not self._asking("try_process_watermark", watermark):
            return False
        self._watermark = None
        self._outbox.forward(watermark)
        return True

    def _complete_edge(self, ordinal: int) -> bool:
        if not self._asking("complete_edge", ordinal):
            return False
        self._completed.add(ordinal)
        return True

    def _complete(self) -> bool:
        if not self._asking("complete"):
            return False
        self.has_ended = True
        self._outbox.forward(Mark.ENDED)
        return True

    def _fill(self) -> bool:
        """Take the next block, or marks up to a watermark that moves time; return whether anything was taken."""
        is_taken = False
        while (found := self._next()) is not None:
            is_taken = True
            ordinal, sender, what = found
            if isinstance(what, list):
                self.received[ordinal] += len(what)
                self._least.received((ordinal, sender))
                self._ordinal = ordinal
                self._inbox.fill(what)
                return True
            if what is Mark.ENDED:
                self._inflows[ordinal].ended.add(sender)
            moved = self._least.observe((ordinal, sender), what)
            if isinstance(moved, Watermark):
                self._watermark = moved
                return True
            if moved is not None:
                self._outbox.forward(moved)
            # The end of an edge is processed before a block of another edge is taken.
            if self._inflows[ordinal].is_ended:
                return True
        return is_taken

    def _next(self) -> tuple[int, int, Any] | None:
        """Take from the edges of the first priority that have not ended, in turn."""
        open_edges = [n for n in range(len(self._inflows)) if n not in self._completed]
        if not open_edges:
            return None
        first = min(self._inflows[n].edge.priority for n in open_edges)
        mine = [n for n in open_edges if self._inflows[n].edge.priority == first]
        for place in range(len(mine)):
            ordinal = mine[(self._turn + place) % len(mine)]
            found = self._inflows[ordinal].take()
            if found is not None:
                self._turn += place + 1
                return ordinal, *found
        return None

    def _calling(self, method: Callable[..., Any], *given: Any) -> Any:
        """Call a method of the processor; a failure names the vertex, and the item."""
        self._outbox.begin_call()
        inbox = next((each for each in given if isinstance(each, BlockInbox)), None)
        step = self._step
        if inbox is not None:
            inbox.forget_last()
            if len(given) == 2 and len(self._inflows) > 1:
                step = self._steps[given[0]]
        with naming(step):
            try:
                return method(*given)
            except Exception as error:
                if inbox is not None and inbox.failing is not MISSING:
                    blame(error, step, inbox.failing)
                elif inbox is not None and inbox.drained and item_of(error, sys._getframe(), MISSING) is MISSING:
                    _among(error, *inbox.drained)
                raise

    def _asking(self, method: str, *given: Any) -> Any:
        """Call a method that returns whether it is done; a method that returns None would be called without end."""
        answer = self._calling(getattr(self.processor, method), *given)
        if answer is None:
            with naming(self._step):
                raise TypeError(
                    f"{method}() of {type(self.processor).__name__} must return True when it is done, or False to be "
                    "called again, not None"
                )
        return answer


def _among(error: Exception, count: int, first: Any) -> None:
    """Attribute a failure to the items that `drain()` returned, if it is not attributed to an item."""
    if count == 1:
        failed_on(error, first)
    elif given_to(error) is None:
        given(error, f"among {count} items from {shown(first)} on")


_PAUSE = 0.001


class OwnThread:
    """Thread that calls a tasklet repeatedly, until the tasklet has ended or is stopped.

    Args:
        tasklet: the tasklet.
        sources_go_on: returns whether it may be called, if it has no inbound edges.
    """

    def __init__(self, tasklet: ProcessorTasklet, sources_go_on: Callable[[], bool]) -> None:
        self.tasklet = tasklet
        self._sources_go_on = sources_go_on
        self._stops = threading.Event()
        self._calls = 0
        self._seen = 0
        self._is_in_call = False
        self._failure: TransportedError | None = None
        name = f"{tasklet.context.vertex}-{tasklet.context.index}"
        self._thread = threading.Thread(target=self._loop, args=(files_here(),), name=f"dstream-{name}", daemon=True)
        self._thread.start()

    def _loop(self, files: JobFiles | None) -> None:
        # Context variables do not pass to a new thread.
        of_job(files)
        try:
            while not self._stops.is_set() and not (self.tasklet.has_ended and self.tasklet.is_quiet):
                goes_on = self._sources_go_on() or not self.tasklet.is_source
                self._is_in_call = True
                is_progress = self.tasklet.call() if goes_on else self.tasklet.stand_still()
                self._is_in_call = False
                if is_progress:
                    # A counter that only this thread writes: the run compares it, and needs no lock to miss no call.
                    self._calls += 1
                else:
                    self._stops.wait(_PAUSE)
        except BaseException as error:  # It is raised where the run is.
            self._failure = TransportedError(error)

    @property
    def is_quiet(self) -> bool:
        """Return whether no items are pending in or before the tasklet, and its processor is not running."""
        # Checked twice, since a call may begin while the tasklet is checked.
        return not self._is_in_call and self.tasklet.is_quiet and not self._is_in_call

    def look(self) -> bool:
        """Return whether there was a call since the last look.

        Raises:
            BaseException: the error of its processor.
        """
        if self._failure is not None:
            raise self._failure.arrived()
        calls, self._seen = self._seen, self._calls
        return calls != self._seen

    def stop(self) -> None:
        """Stop the thread after its current call, and join it."""
        self._stops.set()
        self._thread.join()
