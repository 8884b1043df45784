"""`map_concurrent`: calls to something slow, such as a service, several at a time."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar, cast, overload

from dstream.errors import IllegalStateError
from dstream.gatherers.gatherer_arguments import function
from dstream.gatherers.pace import CLOCK, Clock, Pace
from dstream.gatherers.retry import Retry, checked_retry
from dstream.spi import Calling, Gatherer, Outcome, Reducer
from dstream.spi.functions import is_async, shown_function
from dstream.spi.gatherer import Downstream

__all__ = ["map_concurrent"]

T = TypeVar("T")
R = TypeVar("R")
V = TypeVar("V")


class _Raise:
    """Stands for no `on_error`: any other value could be meant."""

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
    """Replace each item by `fn(item)`, with up to `n` calls in flight in each task; the order is kept.

    For functions that wait: for a service, a database, a disk. A plain function runs in threads, an
    async one in an event loop. At most `n` items are read ahead. When nobody wants more items, calls
    of an async function are cancelled; a thread finishes the call that it is in, and nobody waits for it.

    Args:
        n: how many calls may be in flight in one task.
        fn: a plain or an async function.
        rate: how many calls a second the whole job may make at most, calls that are repeated too. Each
            task has its share, and the step runs in at most as many tasks as there are cores.
        retry: how often a call that failed is made again, after 0.1, 0.2, 0.4, ... seconds; or a `Retry`.
        on_error: unset, an exception ends the job. A reducer gets a `DeadLetter` for each item that failed,
            as `stream.on_error(Exception, into=...)` does; any other value takes the place of its result.
        cache: equal items are called once in the whole job. They must be hashable; equal is what a dict
            takes for equal. Costs two shuffles, and all items are read before the first is called.

    Raises:
        TypeError: an argument is of the wrong type.
        ValueError: `n` is below 1, `rate` is not above 0, or `retry` is negative.

    Example:
        >>> from dstream.gatherers import map_concurrent
        >>> Stream.of("a", "b").gather(map_concurrent(8, str.upper)).to_list()
        ['A', 'B']
    """
    function(fn, "fn", awaits=True)
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
    """The calls of `map_concurrent`; it travels to the tasks that make them.

    Attributes:
        n: how many may be in flight in one task.
        retry: what happens to calls that fail.
        clock: time, and waiting.
    """

    n: int = 1
    retry: Retry = _NEVER
    clock: Clock = CLOCK

    def outcomes(self, items: Iterable[Any], slot: int = 0, slots: int = 1) -> Iterator[Outcome]:
        # Here, since asyncio and the pools take a third of the time of `import dstream`.
        from dstream.gatherers.calls import Calls, LoopCalls, Remembered, ThreadCalls, in_order

        pace = None if self.rate is None else Pace(self.rate, slot, slots, self.clock)
        calls: Calls = (LoopCalls if is_async(self.fn) else ThreadCalls)(self.fn, self.n, self.retry, pace, self.clock)
        return in_order(items, Remembered(calls) if self.cache else calls, self.n)

    def once(self, item: Any) -> Any:
        if is_async(self.fn):
            import asyncio

            return asyncio.run(_awaited(self.fn, item))
        return self.fn(item)

    def results(self, items: Iterable[Any]) -> Iterator[Any]:
        """Give the results for a gatherer that no engine runs.

        Raises:
            IllegalStateError: a call failed and its item should go to a reducer, which needs a stream.
        """
        with closing(cast(Any, self.outcomes(items))) as outcomes:
            for outcome in outcomes:
                yield self._settled(outcome)

    def integrate(self, state: None, item: Any, downstream: Downstream[Any]) -> None:
        """Make one call after another, for whoever does not ask for all at once."""
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
