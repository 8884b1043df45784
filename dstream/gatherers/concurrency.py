"""`map_concurrent`: concurrent calls with a rate limit and retries.

The tasks of a job share a rate without communication: time is divided into equal steps, and each
task owns every n-th step, where n tasks may run at once. The clock is the wall clock, the only one
that machines share; clocks of machines differ by little.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast, overload

from dstream.arguments import checked_function
from dstream.errors import IllegalStateError
from dstream.spi import Calling, Gatherer, Outcome, Reducer
from dstream.spi.gatherer import Downstream
from dstream.values.user_functions import is_async, shown_function

__all__ = ["CLOCK", "Clock", "RateLimit", "Retry", "checked_retry", "map_concurrent"]


@dataclass(frozen=True)
class Retry:
    """Repetition of calls that failed: after `delay`, `delay * factor`, ... seconds.

    Attributes:
        times: the maximum number of repetitions after the first call.
        delay: seconds before the first repetition.
        factor: the factor of the delay from one repetition to the next.
        on: an exception class or a tuple of classes; a call that fails with another exception is not repeated.

    Example:
        >>> from dstream.gatherers import Retry
        >>> list(Retry(3, delay=0.5).delays())
        [0.5, 1.0, 2.0]
    """

    times: int
    delay: float = 0.1
    factor: float = 2.0
    on: type[Exception] | tuple[type[Exception], ...] = Exception

    def __post_init__(self) -> None:
        _check_times(self.times, "times")
        _check_number(self.delay, "delay", 0)
        _check_number(self.factor, "factor", 1)
        kinds: tuple[Any, ...] = self.on if isinstance(self.on, tuple) else (self.on,)
        if not kinds or not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            raise TypeError("on must be a class of exceptions below Exception, or a tuple of such")

    def delays(self) -> Iterator[float]:
        """Yield the delay before each repetition, in seconds."""
        delay = self.delay
        for _ in range(self.times):
            yield delay
            delay *= self.factor


def checked_retry(value: Any) -> Retry:
    """Return the value of `retry=` as a `Retry`.

    Raises:
        TypeError: it is neither an int nor a `Retry`.
        ValueError: it is negative.
    """
    return value if isinstance(value, Retry) else Retry(_check_times(value, "retry"))


def _check_times(value: Any, name: str) -> int:
    # `True` is an int, too.
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int{' or a Retry' if name == 'retry' else ''}, not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must not be negative: {value}")
    return value


def _check_number(value: Any, name: str, least: int) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if not least <= value < math.inf:
        raise ValueError(f"{name} must be a number from {least}, not {value}")


_SLACK = 0.05
"""Seconds after which a call misses its step and waits for another step.

With steps that are longer by the same part, no second has more than `rate` + 1 calls: the calls of a
second belong to the steps of 1 + `_SLACK` seconds, which are `rate` steps, and one more at the border.
"""


class Clock(Protocol):
    """Clock with the current time, and with sleeping."""

    def now(self) -> float:
        """Return the seconds since 1970."""
        ...

    def sleep(self, seconds: float, stop: threading.Event) -> None:
        """Wait, but no longer than until `stop` is set."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait inside an event loop."""
        ...


class _Wall:
    """The clock on the wall."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float, stop: threading.Event) -> None:
        stop.wait(seconds)

    async def pause(self, seconds: float) -> None:
        import asyncio  # lazily, since it takes a third of the time of `import dstream`

        await asyncio.sleep(seconds)

    def __reduce__(self) -> str:
        # A string is pickled as the name of a global of this module: each process has its own clock.
        return "CLOCK"


CLOCK: Clock = _Wall()


class RateLimit:
    """The steps of one task.

    Args:
        rate: the maximum calls a second of all tasks together.
        slot: the number of this task.
        slots: the number of tasks that may run at once.
    """

    def __init__(self, rate: float, slot: int, slots: int, clock: Clock) -> None:
        step = (1 + _SLACK) / rate
        self._every = step * slots
        self._first = step * slot
        self._clock = clock
        # Steps before the start of this task are not made up for.
        self._last = self._steps_until(clock.now())
        self._lock = threading.Lock()

    def wait(self, stop: threading.Event) -> None:
        """Wait for a step of this task, or until `stop` is set."""
        while not stop.is_set():
            turn = self._next()
            self._clock.sleep(max(turn - self._clock.now(), 0), stop)
            if self._clock.now() - turn <= _SLACK:
                return

    async def pause(self) -> None:
        """Wait for a step of this task, inside an event loop."""
        while True:
            turn = self._next()
            await self._clock.pause(max(turn - self._clock.now(), 0))
            if self._clock.now() - turn <= _SLACK:
                return

    def _next(self) -> float:
        """Return the start of the next free step after now."""
        with self._lock:
            # Steps are counted, not added up: the seconds since 1970 leave few digits of a float.
            self._last = max(self._last, self._steps_until(self._clock.now())) + 1
            return self._first + self._last * self._every

    def _steps_until(self, now: float) -> int:
        return math.floor((now - self._first) / self._every)


T = TypeVar("T")
R = TypeVar("R")
V = TypeVar("V")


class _Raise:
    """The default of `on_error`: any other value could be a result of the caller's."""

    def __repr__(self) -> str:
        return "<raise it>"


_RAISE: Any = _Raise()


@overload
def map_concurrent(
    n: int,
    fn: Callable[[T], Awaitable[R]],
    *,
    rate: float | None = None,
    retry: int | Retry = 0,
    on_error: Reducer[Any, Any] = ...,
    cache: bool = False,
) -> Gatherer[T, Any, R]: ...


@overload
def map_concurrent(
    n: int,
    fn: Callable[[T], Awaitable[R]],
    *,
    rate: float | None = None,
    retry: int | Retry = 0,
    on_error: V,
    cache: bool = False,
) -> Gatherer[T, Any, R | V]: ...


@overload
def map_concurrent(
    n: int,
    fn: Callable[[T], R],
    *,
    rate: float | None = None,
    retry: int | Retry = 0,
    on_error: Reducer[Any, Any] = ...,
    cache: bool = False,
) -> Gatherer[T, Any, R]: ...


@overload
def map_concurrent(
    n: int,
    fn: Callable[[T], R],
    *,
    rate: float | None = None,
    retry: int | Retry = 0,
    on_error: V,
    cache: bool = False,
) -> Gatherer[T, Any, R | V]: ...


def map_concurrent(
    n: int,
    fn: Callable[[Any], Any],
    *,
    rate: float | None = None,
    retry: int | Retry = 0,
    on_error: Any = _RAISE,
    cache: bool = False,
) -> Gatherer[Any, Any, Any]:
    """Replace each item by `fn(item)`, with up to `n` calls in flight in each task, in order.

    For functions that wait for a service, a database or a disk. A plain function runs in threads, an
    async function in an event loop. At most `n` items are read ahead. When no more items are requested, calls
    of an async function are cancelled; a thread finishes its current call in the background.

    Args:
        n: the maximum number of calls in flight in one task.
        fn: a plain or an async function.
        rate: the maximum calls a second of the whole job, including retries. Each task has its share, and
            the step runs in at most one task per core.
        retry: the number of retries of a failed call, after 0.1, 0.2, 0.4, ... seconds; or a `Retry`.
        on_error: unset, an exception ends the job. A reducer receives a `DeadLetter` for each failed item,
            as with `stream.on_error(Exception, into=...)`; any other value replaces the result.
        cache: whether equal items are called once in the whole job. They must be hashable; equality is that of
            dict keys. Costs two shuffles, and all items are read before the first is called.

    Raises:
        TypeError: an argument is of the wrong type.
        ValueError: `n` is below 1, `rate` is not above 0, or `retry` is negative.

    Example:
        >>> from dstream.gatherers import map_concurrent
        >>> Stream.of("a", "b").gather(map_concurrent(8, str.upper)).to_list()
        ['A', 'B']
    """
    checked_function(fn, "fn", awaits=True)
    if not isinstance(cache, bool):
        raise TypeError(f"cache must be True or False, not {type(cache).__name__}")
    into = on_error if isinstance(on_error, Reducer) else None
    instead = () if into is not None or on_error is _RAISE else (on_error,)
    calling = Concurrent(fn, _checked_rate(rate), cache, instead, into, _checked_n(n), checked_retry(retry))
    return Gatherer(_nothing, calling.integrate, gather_all=calling.results, parallel=calling, name=calling.name())


def _checked_n(n: Any) -> int:
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"n must be an int, not {type(n).__name__}")
    if n < 1:
        raise ValueError(f"n must be at least 1: {n}")
    return n


def _checked_rate(rate: Any) -> float | None:
    if rate is None:
        return None
    if not isinstance(rate, int | float) or isinstance(rate, bool):
        raise TypeError(f"rate must be a number of calls a second, not {type(rate).__name__}")
    if not 0 < rate < math.inf:
        raise ValueError(f"rate must be a number of calls a second above 0, not {rate}")
    return float(rate)


def _nothing() -> None:
    """Make the state of a gatherer that has none."""


_NEVER = Retry(0)


@dataclass(frozen=True)
class Concurrent(Calling):
    """The calls of `map_concurrent`; it is sent to the tasks that make them.

    Attributes:
        n: the maximum number of calls in flight in one task.
        retry: the retries of failed calls.
        clock: the clock of rate limit and retries.
    """

    n: int = 1
    retry: Retry = _NEVER
    clock: Clock = CLOCK

    def outcomes(self, items: Iterable[Any], slot: int = 0, slots: int = 1) -> Iterator[Outcome]:
        # Imported lazily, since asyncio and the pools take a third of the time of `import dstream`.
        from dstream.gatherers.calls import Calls, LoopCalls, ThreadCalls, in_order
        from dstream.gatherers.calls import MemoizedCall as Remembered

        pace = None if self.rate is None else RateLimit(self.rate, slot, slots, self.clock)
        calls: Calls = (LoopCalls if is_async(self.fn) else ThreadCalls)(self.fn, self.n, self.retry, pace, self.clock)
        return in_order(items, Remembered(calls) if self.cache else calls, self.n)

    def once(self, item: Any) -> Any:
        if is_async(self.fn):
            import asyncio

            # `asyncio.run` accepts only coroutines, and `fn` may return any awaitable.
            return asyncio.run(_awaited(self.fn, item))
        return self.fn(item)

    def results(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the results for a gatherer that runs without an engine.

        Raises:
            IllegalStateError: a call failed and `on_error` is a reducer, which needs a stream.
        """
        with closing(cast(Any, self.outcomes(items))) as outcomes:
            for outcome in outcomes:
                yield self._settled(outcome)

    def integrate(self, state: None, item: Any, downstream: Downstream[Any]) -> None:
        """Call the function for one item, for an engine that does not pass all items at once."""
        for result in self.results([item]):
            downstream.push(result)

    def name(self) -> str:
        """Return the call as the user wrote it, in short."""
        return f"map_concurrent({self.n}, {shown_function(self.fn)})"

    def _settled(self, outcome: Outcome) -> Any:
        if outcome.error is None:
            return outcome.result
        if self.into is not None:
            raise IllegalStateError(
                "on_error= with a reducer needs stream.gather(map_concurrent(...))"
            ) from outcome.error
        if self.instead:
            return self.instead[0]
        raise outcome.error


async def _awaited(fn: Callable[[Any], Awaitable[Any]], item: Any) -> Any:
    return await fn(item)
