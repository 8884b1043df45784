"""`WarmStart`: the start of an engine in the background of its first user."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

from dstream.engine.spark.port.errors import forked
from dstream.spi import Engine

__all__ = ["WarmStart"]


E = TypeVar("E", bound=Engine)


class WarmStart(Generic[E]):
    """The background start of an engine; a call returns the engine, and starts another one if it was returned before.

    Args:
        start: starts an engine.
        activate: registers the engine in the thread that requests it first.
        warm_up: runs once the work that the first job would wait for; the engine may be used meanwhile.
        stop: cancels a start that is no longer needed, so that its thread ends, too.
    """

    def __init__(
        self,
        start: Callable[[], E],
        activate: Callable[[E], object],
        warm_up: Callable[[E], object],
        stop: Callable[[], object] = bool,
    ) -> None:
        self._start = start
        self._activate = activate
        self._warm_up = warm_up
        self._stop = stop
        self._started: Future[E] = Future()
        self._is_given = self._is_closed = False
        self._process = os.getpid()
        # The end of a program closes it, so that nothing of a half started engine is left, and does not wait before.
        self._thread = threading.Thread(target=self._run, name="dstream-warm-start", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def __call__(self) -> E:
        """Wait for the engine and return it; an error of its start is raised, and the next call tries again.

        Raises:
            EngineError: this process was forked from the one in which the engine started.
        """
        # A forked process has no such thread, and would wait for ever.
        if os.getpid() != self._process:
            raise forked()
        if self._is_given:
            return self._start()
        engine = self._result()
        self._activate(engine)
        return engine

    @property
    def has_ended(self) -> bool:
        """Whether the engine has started, with its workers, or its start has failed."""
        return not self._thread.is_alive()

    def close(self) -> None:
        """Stop a start that has not ended, wait for a warm-up, and close an engine that was not asked for."""
        atexit.unregister(self.close)
        if os.getpid() != self._process:
            return
        self._is_closed = True
        if not self._started.done():
            self._stop()
        self._thread.join()  # A Spark that stops while a job begins reports it on stderr (4.3).
        if not self._is_given:
            with suppress(Exception):  # It was not asked for, so its error is not reported.
                self._result().close()

    def _result(self) -> E:
        try:
            engine = self._started.result()
        except Exception:
            self._is_given = True
            raise
        self._is_given = True
        return engine

    def _run(self) -> None:
        try:
            engine = self._start()
        except BaseException as error:  # It is raised where the engine is needed.
            self._started.set_exception(error)
            return
        self._started.set_result(engine)
        with suppress(Exception):  # The first job meets it, too, or the engine is closed.
            if not self._is_closed:
                self._warm_up(engine)
