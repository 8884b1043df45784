"""Results of windows: finished containers, independent copies, early results, checked arguments."""

from __future__ import annotations

import copy
import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from dstream.base.setters import IMMUTABLE
from dstream.base.showing import shown
from dstream.failures.attribution import MISSING_ITEM, given, given_to, item_failed_on
from dstream.operators.windows.arrivals import LateItems, late_outputs
from dstream.spi import AggregateOperation, identity
from dstream.spi.epochs import EpochTime, ShardOutput
from dstream.values.time import NO_WATERMARK, KeyedWindowResult, Timed, WindowResult

__all__ = [
    "Copies",
    "EarlyPeriod",
    "WindowOutput",
    "WindowState",
    "check_keys",
    "copies_of",
    "copy_of_results",
    "signature_of",
]


class EarlyPeriod:
    """The time of the next early results of the windows of one shard.

    An empty step begins with the period of its first item. All shards emit early results in the same epochs, also a
    shard that was empty before: the results of a key do not depend on its shard.

    Args:
        every: the length of a period in seconds; None: there are no early results.

    Attributes:
        next: the reading of the clock at which they are due; None: never, since there are no items.
    """

    def __init__(self, every: float | None) -> None:
        self._every = every
        self.next: float | None = None

    def begin(self, now: float) -> None:
        """Record that the shard has items, at least since `now`."""
        if self._every is not None and self.next is None:
            self.next = _end_of_period(now, self._every)

    def passes(self, moment: EpochTime) -> bool:
        """Return whether early results are due, in this or another shard of the step, and advance the period."""
        if self._every is None or self.next is None:
            return False
        of_step = self.next if moment.clock_deadline is None else moment.clock_deadline
        if moment.now < min(self.next, of_step):
            return False
        self.next = _end_of_period(moment.now, self._every)
        return True


def _end_of_period(now: float, every: float) -> float:
    """Return the least multiple of `every` that is greater than `now`."""
    # Below the distance between two floats, the next multiple would be `now` itself.
    if every <= math.ulp(now):
        return math.nextafter(now, math.inf)
    number = math.floor(now / every) - 1
    # 1.0 // 0.1 is 9, and 10 * 0.1 is 1.0: the product alone decides on which side of the reading a period ends.
    while number * every <= now:
        number += 1
    return number * every


Copies: TypeAlias = Callable[[Collection[Any]], Collection[Any]]
"""Function that returns copies of containers, in order; immutable containers are not copied."""


def copies_of(operation: AggregateOperation[Any, Any, Any]) -> Copies:
    """Return a copier of an operation's containers, as `operation.on_input` has them."""
    return _shallow if operation.combine is None or _gathers(operation) else _deep


def copy_of_results(operation: AggregateOperation[Any, Any, Any]) -> Callable[[Any], Any]:
    """Return a function that makes a result which shares nothing with its container.

    A finisher may hand out the container, or parts of it, such as the list in the tuple of `all_of(to_list(), ...)`.
    """
    if operation.combine is None:
        return identity  # Its container was made for this result alone.
    return copy.copy if operation.finish is identity and _gathers(operation) else _copied


def _copied(result: Any) -> Any:
    return result if type(result) in IMMUTABLE else next(iter(_deep([result])))


def _gathers(operation: AggregateOperation[Any, Any, Any]) -> bool:
    """Return whether a container is a collection of items, which are not changed."""
    return all(accumulate in (list.append, set.add) for accumulate in operation.accumulates)


def _shallow(containers: Collection[Any]) -> Collection[Any]:
    return list(map(copy.copy, containers))


def _deep(containers: Collection[Any]) -> Collection[Any]:
    if IMMUTABLE.issuperset(map(type, containers)):
        return containers
    try:  # A quarter of the time of `deepcopy`: one call for all of them.
        found: list[Any] = pickle.loads(pickle.dumps(list(containers), pickle.HIGHEST_PROTOCOL))
    except Exception:  # Pickle does not find a class of the user's script by name in a worker.
        return [copy.deepcopy(container) for container in containers]
    return found


Keys = tuple[Callable[[Any], Any], ...]


def check_keys(keys: Keys | None, operation: AggregateOperation[Any, Any, Any]) -> None:
    """Check that each input of the operation has a key function, or that none has.

    Raises:
        TypeError: there are more or fewer key functions than inputs.
    """
    if keys is not None and len(keys) != operation.arity:
        raise TypeError(f"{operation!r} has {operation.arity} inputs, and there are {len(keys)} key functions")


def signature_of(keys: Keys | None, operation: AggregateOperation[Any, Any, Any]) -> tuple[Any, ...]:
    """Return the facts of keys and operation that the layout of state depends on.

    Users' functions may change between two versions of a program, but the state remains. So only the name of an
    operation counts.
    """
    return keys is not None, operation.arity, repr(operation).partition("(")[0]


class WindowOutput:
    """Creates the results of windows.

    Args:
        operation: finishes containers.
        to: receives (start, end, result), or (start, end, key, result) with keys; None: the default results.
        is_keyed: whether there are keys.
    """

    def __init__(
        self, operation: AggregateOperation[Any, Any, Any], to: Callable[..., Any] | None, is_keyed: bool
    ) -> None:
        self._finish = operation.on_input(0).finish
        self._apart = copy_of_results(operation)
        self._make = (_keyed(to) if is_keyed else _unkeyed(to)) if to else (KeyedWindowResult if is_keyed else _plain)
        self._is_keyed = is_keyed

    def last_of_key(self, size: int, key: Any, frames: dict[int, Any]) -> list[Any]:
        """Return the results of the containers of a key, in the order of the ends of their windows.

        Args:
            size: the length of each window.
            key: that of the containers.
            frames: the containers by their ends, which are not needed any more.
        """
        ends = sorted(frames)
        if self._finish is not identity or self._make is not KeyedWindowResult:
            return [self.last(end - size, end, key, frames[end]) for end in ends]
        # No user function is called, and calls for each result take three times as long.
        fields = zip(
            (end - size for end in ends), ends, repeat(key), map(frames.get, ends), repeat(False), strict=False
        )
        return list(map(tuple.__new__, repeat(KeyedWindowResult), fields))

    def last(self, start: int, end: int, key: Any, container: Any) -> Any:
        """Return the result of a container that is not needed any more."""
        try:
            return self._make(start, end, key, self._finish(container), False)
        except Exception as error:
            self._blame(error, start, end, key)
            raise

    def passing(self, start: int, end: int, key: Any, container: Any, is_early: bool = False) -> Any:
        """Return the result of a container that still changes: it shares nothing with that."""
        try:
            return self._make(start, end, key, self._apart(self._finish(container)), is_early)
        except Exception as error:
            self._blame(error, start, end, key)
            raise

    def _blame(self, error: Exception, start: int, end: int, key: Any) -> None:
        if item_failed_on(error) is MISSING_ITEM:
            group = f" of the key {shown(key)}" if self._is_keyed else ""
            inner = given_to(error)
            given(error, f"in the window from {start} to {end}{group}" + (f", {inner}" if inner else ""))


def _plain(start: int, end: int, key: Any, result: Any, is_early: bool) -> WindowResult[Any]:
    return WindowResult(start, end, result, is_early)


def _keyed(to: Callable[..., Any]) -> Callable[..., Any]:
    return lambda start, end, key, result, is_early: to(start, end, key, result)


def _unkeyed(to: Callable[..., Any]) -> Callable[..., Any]:
    return lambda start, end, key, result, is_early: to(start, end, result)


class _Buffer(Protocol):
    def __len__(self) -> int: ...

    def touched(self) -> Any: ...


P = TypeVar("P")
B = TypeVar("B", bound=_Buffer)


class WindowState(ABC, Generic[P, B]):
    """The containers of one shard, and the common state of all kinds of windows.

    A delta contains the touched containers that are still needed; closed windows follow from the watermark. It shares
    the containers with the state, so it must be pickled before more items arrive.

    Args:
        buffer: the buffer of the containers.
        early: the period of early results in seconds; None: there are none.
        output: creates the results.
        copies: copies containers.
    """

    def __init__(self, buffer: B, early: float | None, output: WindowOutput, copies: Copies) -> None:
        self._buffer = buffer
        self._output = output
        self._copies = copies
        self._early = EarlyPeriod(early)
        self._watermark = NO_WATERMARK
        self._has_changed = False

    def apply(self, partials: Sequence[tuple[int, tuple[P, LateItems]]], moment: EpochTime) -> ShardOutput:
        """Take the items of an epoch; windows are closed and finished while the outputs are consumed."""
        late: LateItems = []
        for _, (found, late_items) in partials:
            self._take(found)
            late += late_items
        if self._has_items():
            self._early.begin(moment.now)
        return ShardOutput(chain(late_outputs(late), self._outputs(moment)))

    def delta(self) -> Any | None:
        """Return (watermark, next early results, touched containers)."""
        # A watermark alone changes nothing that a later process could not find by itself.
        if not self._has_changed:
            return None
        self._has_changed = False
        return self._watermark, self._early.next, self._buffer.touched()

    def clock_deadline(self) -> float | None:
        """Return when early results are due."""
        return self._early.next

    def __len__(self) -> int:
        return len(self._buffer)

    @abstractmethod
    def _take(self, found: P) -> None:
        """Add the partial of a task, and record the change."""

    @abstractmethod
    def _has_items(self) -> bool:
        """Return whether a window has items."""

    @abstractmethod
    def _outputs(self, moment: EpochTime) -> Iterator[Timed]:
        """Return the results of an epoch."""
