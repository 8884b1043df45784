"""`OwnThread`: a tasklet whose processor may wait, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dstream.executor.processor_tasklet import ProcessorTasklet
from dstream.failures import Carried
from dstream.values.attached_files import JobFiles, files_here, of_job

__all__ = ["OwnThread"]

_PAUSE = 0.001


class OwnThread:
    """Calls a tasklet again and again, until it has ended or is told to stop.

    Args:
        tasklet: which one.
        sources_go_on: says whether it may be called, if nothing leads to it.
    """

    def __init__(self, tasklet: ProcessorTasklet, sources_go_on: Callable[[], bool]) -> None:
        self.tasklet = tasklet
        self._sources_go_on = sources_go_on
        self._stops = threading.Event()
        self._calls = 0
        self._seen = 0
        self._is_in_call = False
        self._failure: Carried | None = None
        name = f"{tasklet.context.vertex}-{tasklet.context.index}"
        self._thread = threading.Thread(target=self._loop, args=(files_here(),), name=f"dstream-{name}", daemon=True)
        self._thread.start()

    def _loop(self, files: JobFiles | None) -> None:
        of_job(files)
        try:
            while not self._stops.is_set() and not (self.tasklet.has_ended and self.tasklet.is_quiet):
                goes_on = self._sources_go_on() or not self.tasklet.is_source
                self._is_in_call = True
                is_progress = self.tasklet.call() if goes_on else self.tasklet.stand_still()
                self._is_in_call = False
                if is_progress:
                    self._calls += 1
                else:
                    self._stops.wait(_PAUSE)
        except BaseException as error:  # It is raised where the run is.
            self._failure = Carried(error)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits in the tasklet or before it, and its processor is not at work."""
        return not self._is_in_call and self.tasklet.is_quiet and not self._is_in_call

    def look(self) -> bool:
        """Say whether it did something since the last look.

        Raises:
            BaseException: what its processor raised.
        """
        if self._failure is not None:
            raise self._failure.arrived()
        calls, self._seen = self._seen, self._calls
        return calls != self._seen

    def stop(self) -> None:
        """Let the thread end behind the call that it is in, and wait for that."""
        self._stops.set()
        self._thread.join()
