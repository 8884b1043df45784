"""`Heart`: one thread for the jobs that a context drives. Others see by it that their driver lives, and are heard."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dstream.errors import IllegalStateError, JobTakenOverError
from dstream.jobs.execution import Execution
from dstream.jobs.job_records import JobRecords, Request
from dstream.values.idle_threads import in_a_thread

__all__ = ["Heart", "Rhythm"]

_log = logging.getLogger("dstream.jobs")


@dataclass(frozen=True)
class Rhythm:
    """How often things happen, in seconds.

    Attributes:
        look: the pause between two looks at what others ask for.
        beat: the pause between two signs of life.
        lost_after: without a sign of life for so long, a driver counts as gone.
        patience: how long a run may take to stop when it is asked to, before the job goes on without it.
    """

    look: float = 0.5
    beat: float = 2.0
    lost_after: float = 10.0
    patience: float = 3.0


class Heart:
    """Looks after jobs as long as there are any.

    Args:
        records: those of the jobs.
        rhythm: how often.
        clock: says what time it is.
    """

    def __init__(self, records: JobRecords, rhythm: Rhythm, clock: Callable[[], float]) -> None:
        self._records = records
        self._rhythm = rhythm
        self._clock = clock
        self._lock = threading.Lock()
        self._beating: list[Execution] = []
        self._unheard: set[str] = set()
        self._opening: set[str] = set()
        self._is_awake = False
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def add(self, execution: Execution) -> None:
        """Look after a job until it ends."""
        with self._lock:
            self._beating.append(execution)
            if not self._is_awake:
                self._is_awake = True
                self._thread = threading.Thread(target=self._live, name="dstream-jobs", daemon=True)
                self._thread.start()

    def jobs(self) -> list[Execution]:
        """Return the jobs that have not ended."""
        with self._lock:
            self._beating = [each for each in self._beating if not each.has_ended]
            return list(self._beating)

    def stop(self, patience: float) -> None:
        """Look no more; what it looks at now may take so many seconds."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(patience)

    def _live(self) -> None:
        while not self._stop.wait(self._rhythm.look):
            jobs = self.jobs()
            with self._lock:
                if not self._beating:
                    self._is_awake = False
                    return
            for each in jobs:
                self._look_after(each)

    def _look_after(self, execution: Execution) -> None:
        """Do all that is due; what one thing fails with keeps no other from being done."""
        for act in (self._leave_behind, self._listen, self._beat):
            try:
                act(execution)
            except JobTakenOverError as error:
                execution.taken_over(error)
                return
            except Exception as problem:
                # The job itself finds out whether it can still commit; until then the next look may succeed.
                _log.debug("the job %s could not be looked after: %r", execution.lease.state.id, problem)

    def _leave_behind(self, execution: Execution) -> None:
        execution.leave_behind(self._rhythm.patience)

    def _beat(self, execution: Execution) -> None:
        """Write how the job is, if others do not know, or have not heard of its driver for a while."""
        lease = execution.lease
        # A clock that went backwards says nothing of how long it is ago.
        since = abs(self._clock() - lease.state.beat_at)
        if not execution.has_ended and (lease.is_ahead or since >= self._rhythm.beat):
            lease.write()

    def _listen(self, execution: Execution) -> None:
        """Take what other processes have asked for, and answer."""
        state = execution.lease.state
        try:
            requests = [each for each in self._records.requests(state.id) if each.number > state.answered]
        except IllegalStateError as error:
            if state.id not in self._unheard:
                self._unheard.add(state.id)
                _log.warning("%s hears no other process, since requests cannot be read: %s", state.title, error)
            return
        self._unheard.discard(state.id)
        if state.id in self._opening:  # Cancel comes before the update that is under way, and before all others.
            requests = [each for each in requests if each.want == "cancel"]
        if any(each.want == "update" for each in requests):
            self._opening.add(state.id)
            in_a_thread(partial(self._answer_beside, execution, requests), f"dstream-update-{state.id}")
        elif requests:
            execution.answer(requests)

    def _answer_beside(self, execution: Execution, requests: Sequence[Request]) -> None:
        """Answer in another thread: an update opens sources, and meanwhile all jobs give their signs of life."""
        try:
            execution.answer(requests)
        except Exception as problem:
            _log.debug("the job %s could not be asked: %r", execution.lease.state.id, problem)
        finally:
            self._opening.discard(execution.lease.state.id)
