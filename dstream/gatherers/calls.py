"""Concurrent calls of one function, in threads or in an event loop.

`in_order` yields their outcomes in the order of the items and reads no further ahead than there are
calls in flight. The calls end with it: a thread finishes its current call and starts no other; a
coroutine is cancelled.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from dstream.gatherers.concurrency import Clock, RateLimit, Retry
from dstream.keys import canonical
from dstream.spi import Outcome

if TYPE_CHECKING:
    from dstream.values.attachments import JobFiles

__all__ = ["Calls", "LoopCalls", "MemoizedCall", "ThreadCalls", "in_order"]


E = TypeVar("E", bound=BaseException)


class Calls(Protocol):
    """Makes calls."""

    def start(self, item: Any) -> Future[Outcome]:
        """Make a call as soon as there is room."""
        ...

    def close(self) -> None:
        """End the calls in flight, without waiting for calls that may take long."""
        ...


def in_order(items: Iterable[Any], calls: Calls, n: int) -> Iterator[Outcome]:
    """Yield the outcomes of the calls for `items`, in order, with up to `n` calls in flight.

    A failure of `items` is raised after the outcomes of the items before it.
    """
    waiting: deque[Future[Outcome]] = deque()
    problem: Exception | None = None
    upstream = iter(items)
    try:
        while problem is None:
            try:
                # The loop is not over `items`: a failure must not find a name `item` in this frame.
                following = next(upstream, _END)
                if following is _END:
                    break
                waiting.append(calls.start(following))
            except Exception as error:
                problem = error
            # A finished outcome is emitted at once, although more calls would have room.
            while waiting and (len(waiting) >= n or waiting[0].done()):
                yield _ended(waiting.popleft())
        while waiting:
            yield _ended(waiting.popleft())
        if problem is not None:
            raise problem
    finally:
        calls.close()


_END = object()


def _ended(call: Future[Outcome]) -> Outcome:
    """Wait for the outcome of a call; raise its error if it is not an `Exception`, such as KeyboardInterrupt."""
    outcome = call.result()
    if isinstance(outcome.error, BaseException) and not isinstance(outcome.error, Exception):
        raise outcome.error
    return outcome


class ThreadCalls:
    """Calls a plain function in a pool of threads."""

    def __init__(self, fn: Callable[[Any], Any], n: int, retry: Retry, pace: RateLimit | None, clock: Clock) -> None:
        self._fn, self._retry, self._pace, self._clock = fn, retry, pace, clock
        self._stop = threading.Event()
        from dstream.values.attachments import files_here, of_job  # lazily: few programs call functions in threads

        self._pool = ThreadPoolExecutor(n, "dstream-call", of_job, (files_here(),))

    def start(self, item: Any) -> Future[Outcome]:
        return self._pool.submit(self._outcome, item)

    def close(self) -> None:
        self._stop.set()
        # Queued calls see `_stop` and end at once; a running call may take long.
        self._pool.shutdown(wait=False)

    def _outcome(self, item: Any) -> Outcome:
        for delay in chain(self._retry.delays(), (None,)):
            if self._pace is not None:
                self._pace.wait(self._stop)
            if self._stop.is_set():
                break
            try:
                return Outcome(item, _plain(self._fn(item)), None)
            except Exception as error:
                if delay is None or not isinstance(error, self._retry.on):
                    return Outcome(item, None, _raisable(error))
            self._clock.sleep(delay, self._stop)
        return Outcome(item, None, None)  # Its result is not needed any more.


def _plain(result: Any) -> Any:
    """Return the result of a plain function.

    Raises:
        TypeError: it is a coroutine, so that nothing has run yet.
    """
    if inspect.iscoroutine(result):
        # Closed, since Python warns of a coroutine that is never awaited.
        result.close()
        raise TypeError("fn gave a coroutine: give map_concurrent() the async function itself")
    return result


class LoopCalls:
    """Calls an async function in an event loop, which runs in a thread of its own."""

    def __init__(
        self, fn: Callable[[Any], Awaitable[Any]], n: int, retry: Retry, pace: RateLimit | None, clock: Clock
    ) -> None:
        self._fn, self._retry, self._pace, self._clock = fn, retry, pace, clock
        self._loop = asyncio.new_event_loop()
        from dstream.values.attachments import files_here

        # A daemon, since a coroutine that ignores its cancellation must not prevent the process from ending.
        self._thread = threading.Thread(target=self._run, args=(files_here(),), name="dstream-calls", daemon=True)
        self._thread.start()

    def start(self, item: Any) -> Future[Outcome]:
        return asyncio.run_coroutine_threadsafe(self._outcome(item), self._loop)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)

    def _run(self, files: JobFiles | None) -> None:
        from dstream.values.attachments import of_job

        of_job(files)
        try:
            self._loop.run_forever()
        finally:
            # A loop that was stopped can go on: the coroutines are cancelled in it, so that their `finally` runs.
            self._loop.run_until_complete(_cancelled())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _outcome(self, item: Any) -> Outcome:
        try:
            return await self._tried(item)
        except BaseException as error:
            # Also exceptions that would end the loop, such as SystemExit, and with it the calls in flight.
            return Outcome(item, None, cast(Exception, _raisable(error)))

    async def _tried(self, item: Any) -> Outcome:
        for delay in self._retry.delays():
            try:
                return Outcome(item, await self._call(item), None)
            except self._retry.on:
                await self._clock.pause(delay)
        return Outcome(item, await self._call(item), None)

    async def _call(self, item: Any) -> Any:
        if self._pace is not None:
            await self._pace.pause()
        return await self._fn(item)


async def _cancelled() -> None:
    """Cancel all other tasks of this loop and wait for them."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


_PATIENCE = 1.0
"""Seconds that cancelled coroutines have to end; after them the thread is left alone."""


def _raisable(error: E) -> E | RuntimeError:
    """Return `error` in a form that an iterator can raise: StopIteration would end the items.

    A coroutine that was cancelled by its own code has failed: its cancellation must not be taken for the caller's.
    """
    if not isinstance(error, StopIteration | StopAsyncIteration | asyncio.CancelledError):
        return error
    raisable = RuntimeError(f"the function raised {type(error).__name__}")
    raisable.__cause__ = error
    return raisable


class MemoizedCall:
    """Calls with a shared result for equal items."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._known: dict[Any, Future[Outcome]] = {}

    def start(self, item: Any) -> Future[Outcome]:
        key = canonical(item)
        if key not in self._known:
            self._known[key] = self._calls.start(item)
        return self._known[key]

    def close(self) -> None:
        self._calls.close()
