"""Operators by key: stateful mapping, rolling aggregation, and deduplication.

State may expire: with a `ttl`, the state of a key is *evicted* when event time is more than `ttl` milliseconds after
its last item. Event time advances by two things:

- The watermark: at the end of an epoch, after all its items, states with `last < watermark - ttl` are evicted, those
with the
  least `last` first. Here `last` is the greatest timestamp of the items that a state has seen.
- An item of the same key: if `last < timestamp - ttl`, the state is evicted before the item, which finds a new one.
  So whether two items share a state does not depend on the ends of epochs, or on the lag of the watermark.

This is Jet's `mapStateful` with two differences. Between two watermarks, Jet passes an item to a state that is older
than its `ttl`. And a None that the function returns is an item in dstream, as with bounded data.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dstream.base.functions import many, refuse_awaitable
from dstream.base.showing import shown
from dstream.failures.attribution import given, stopped
from dstream.operators.state.items import ItemsByKey, late_ones, partials_by_key, rows
from dstream.operators.state.keys import NEVER_COPIED, KeyStates
from dstream.spi import AggregateOperation, identity
from dstream.spi.epochs import EpochTime, ShardOutput, ShardState, TaskPartials
from dstream.values import Entry
from dstream.values.time import END_OF_TIME, Timed

__all__ = ["KeyedDistinct", "RollingAggregate", "RunningResult", "StatefulMapping"]


@dataclass(frozen=True, slots=True)
class KeyedDistinct:
    """Operator that emits the first item of each key, in the order of (epoch, partition of the source, offset).

    With `within`, time counts from the emitted item: items before it, or less than `within` after it, are dropped. The
    next item is emitted, and time counts from it. Then items need timestamps, and an item before the watermark at
    the start of the epoch is late. A key is dropped at `watermark >= passed + within`: its next item is emitted then.

    Attributes:
        key: returns the key of an item.
        within: milliseconds; None: a key is emitted once, and never dropped.
        gives_late: late items are emitted as `Late`.
    """

    kind = "distinct"
    inputs = 1

    key: Callable[[Any], Any]
    within: int | None = None
    gives_late: bool = False

    @property
    def signature(self) -> tuple[Any, ...]:
        """Return the duration that decides when keys are dropped."""
        return (self.within,)

    def partial(self, number: int, items: Iterator[Timed], moment: EpochTime, shards: int) -> TaskPartials:
        """Send the items to the shards of their keys; without `within`, the first of each key alone."""
        if self.within is None:
            return partials_by_key(self.key, items, shards, firsts=True)
        return partials_by_key(self.key, items, shards, moment.old, self.gives_late)

    def new(self) -> ShardState:
        """Return the state of a shard that no key has passed."""
        return _KeysPassed(self.within)


class _KeysPassed(KeyStates[Any]):
    """The state of a key is the timestamp of the item that passed."""

    def __init__(self, within: int | None) -> None:
        super().__init__(None if within is None else lambda passed: int(passed) + within)
        self._within = within

    def apply(self, partials: Sequence[tuple[int, Any]], moment: EpochTime) -> ShardOutput:
        return ShardOutput(self._outputs([partial for _, partial in partials], moment.new))

    def _outputs(self, partials: list[ItemsByKey], watermark: int) -> Iterator[Timed]:
        self._begin(partials)
        for partial in partials:
            for key, timestamp, item in rows(partial):
                if self._passes(key, timestamp):
                    self._put(key, timestamp)
                    yield timestamp, item
            yield from late_ones(partial)
        for key in self._deadlines.passed(watermark):
            self._remove(key)

    def _passes(self, key: Any, timestamp: Any) -> bool:
        if key not in self._states:
            return True
        return self._within is not None and bool(timestamp - self._states[key] >= self._within)


@dataclass(frozen=True, slots=True)
class RollingAggregate:
    """Operator that emits the result so far for each item, with the timestamp of the item.

    Items are processed in the order of (epoch, partition of the source, offset), and results within each key are in
    that order. Emitted results never change: a result that shares an object with the container is copied. Timestamps
    may be None; no item is late.

    Attributes:
        key: returns the key of an item; None: one result for all items, in one shard.
        operation: an operation with one input.
        to: returns the output for (key, result); None: an entry of both, and without a key the result alone.
    """

    kind = "rolling_aggregate"
    inputs = 1

    key: Callable[[Any], Any] | None
    operation: AggregateOperation[Any, Any, Any]
    to: Callable[[Any, Any], Any] | None = None

    @property
    def signature(self) -> tuple[Any, ...]:
        """Return whether there are keys, and the name of the operation, whose functions may change."""
        return self.key is not None, repr(self.operation).partition("(")[0]

    def partial(self, number: int, items: Iterator[Timed], moment: EpochTime, shards: int) -> TaskPartials:
        """Send the items, in order, to the shards of their keys."""
        return partials_by_key(self.key, items, shards)

    def new(self) -> ShardState:
        """Return the state of a shard without a container."""
        return _Containers(self)


class _Containers(KeyStates[list[Any]]):
    """The states of keys: lists with a container, since an operation may replace the container."""

    def __init__(self, operator: RollingAggregate) -> None:
        super().__init__()
        self._create, self._result = operator.operation.create, RunningResult(operator.operation)
        self._to = operator.to or (Entry if operator.key is not None else _result_alone)

    def apply(self, partials: Sequence[tuple[int, Any]], moment: EpochTime) -> ShardOutput:
        return ShardOutput(self._outputs([partial for _, partial in partials]))

    def _outputs(self, partials: list[ItemsByKey]) -> Iterator[Timed]:
        self._begin(partials)
        for partial in partials:
            for key, timestamp, item in rows(partial):  # A failure finds the item by this name, next to the call.
                if key not in self._states:
                    self._put(key, [self._create()])
                # The container changes in place, so each item marks its key as changed.
                self._touched[key] = None
                yield timestamp, self._to(key, self._result.after(self._states[key], item))

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Return the keys with their current results."""
        return ((key, self._result.of(held)) for key, held in self._states.items())


def _result_alone(key: Any, result: Any) -> Any:
    return result


class RunningResult:
    """Accumulates items in a container of an operation, and returns results that share no object with it.

    A finisher may return the container, or parts of it, such as the list in the tuple of `all_of(to_list(), ...)`.
    Items in a list or a set are not changed, and are shared.

    Args:
        operation: an operation with one input.
    """

    def __init__(self, operation: AggregateOperation[Any, Any, Any]) -> None:
        self._accumulate, self._finish = operation.accumulates[0], operation.finish
        only_gathers = self._finish is identity and self._accumulate in (list.append, set.add)
        self._copied: Callable[[Any], Any] = copy.copy if only_gathers else copy.deepcopy

    def after(self, held: list[Any], item: Any) -> Any:
        """Accumulate an item in the container of a list, which may be replaced; return the current result."""
        following = self._accumulate(held[0], item)
        # None: the accumulator changed the container in place.
        if following is not None:
            held[0] = following
        result = self._finish(held[0])
        return result if type(result) in NEVER_COPIED else self._copied(result)

    def of(self, held: list[Any]) -> Any:
        """Return the result of the container in a list."""
        return self._copied(self._finish(held[0]))


@dataclass(frozen=True, slots=True)
class StatefulMapping:
    """Operator that calls a function with the state of its key for each item, by (epoch, partition, offset).

    The output of an item has its timestamp; None is an item for `"map"`, and nothing for `"flat_map"`. With a `ttl`,
    items need timestamps, and an item before the watermark at the start of the epoch is late and changes nothing.

    Attributes:
        key: returns the key of an item; None: one state for all items, in one shard.
        create: returns a new state for a key.
        fn: receives (state, key, item), without a key (state, item), and changes the state in place.
        action: the use of its result, such as `map` or `filter`.
        ttl: milliseconds of event time until a state without an item is evicted; None: states are never evicted.
        on_evict: receives (state, key, watermark) of an evicted state; without keys, its key is None. Where an item
            evicts the state, the watermark is the timestamp of that item. It returns the output for the state: items
            for `"flat_map"`, otherwise an item; None: nothing. Their timestamp is the last instant of the state, the
            timestamp of its last item plus `ttl`: with the watermark, results of the end of all sources would be at
            the end of time, where no window closes.
        gives_late: late items are emitted as `Late`.
    """

    kind = "stateful_mapping"
    inputs = 1

    key: Callable[[Any], Any] | None
    create: Callable[[], Any]
    fn: Callable[..., Any]
    action: Literal["map", "filter", "flat_map"]
    ttl: int | None = None
    on_evict: Callable[[Any, Any, int], Any] | None = None
    gives_late: bool = False

    @property
    def signature(self) -> tuple[Any, ...]:
        """Return whether there are keys, and whether states have the time of their last item; the `ttl` may change."""
        return self.key is not None, self.ttl is not None

    def partial(self, number: int, items: Iterator[Timed], moment: EpochTime, shards: int) -> TaskPartials:
        """Send the items, in order, to the shards of their keys."""
        return partials_by_key(self.key, items, shards, None if self.ttl is None else moment.old, self.gives_late)

    def new(self) -> ShardState:
        """Return the state of a shard that has seen no key."""
        return _FadingStates(self)


class _FadingStates(KeyStates[list[Any]]):
    """By key a list: the state as the user sees it, and the greatest timestamp of its items if that counts."""

    def __init__(self, operator: StatefulMapping) -> None:
        ttl = operator.ttl
        # One more than `ttl`: a state is evicted when the watermark has passed its last instant, not at it.
        super().__init__(None if ttl is None else lambda held: int(held[1]) + ttl + 1)
        self._ttl, self._operator = ttl, operator
        self._made = _MADE[operator.action]

    def apply(self, partials: Sequence[tuple[int, Any]], moment: EpochTime) -> ShardOutput:
        return ShardOutput(self._outputs([partial for _, partial in partials], moment.old, moment.new))

    def _outputs(self, partials: list[ItemsByKey], old: int, watermark: int) -> Iterator[Timed]:
        self._begin(partials)
        for partial in partials:
            yield from self._mapped(partial, old)
            yield from late_ones(partial)
        for key in self._deadlines.passed(watermark):
            expiry = self._time_to_go(key) if watermark == END_OF_TIME else watermark
            yield from self._evicted(key, expiry, old)

    def _time_to_go(self, key: Any) -> int:
        """Return the watermark at which a key is due: no downstream window closes later than the end of all time."""
        assert self._due is not None, "a key waits for time"
        return self._due(self._states[key])

    def _mapped(self, partial: ItemsByKey, old: int) -> Iterator[Timed]:
        create, fn, is_keyed = self._operator.create, self._operator.fn, self._operator.key is not None
        for key, timestamp, item in rows(partial):  # A failure finds the item by this name, next to the call.
            if self._is_over(key, timestamp):
                yield from self._evicted(key, timestamp, old)
            is_first = key not in self._states
            if is_first:
                self._put(key, [create(), timestamp])
            state = self._met(key, timestamp)
            result = fn(state, key, item) if is_keyed else fn(state, item)
            # An async function returns a coroutine from the first call on: later results need no check.
            if is_first:
                refuse_awaitable(result)
            for made in self._made(result, item):
                yield timestamp, made

    def _is_over(self, key: Any, timestamp: Any) -> bool:
        """Return whether a key has a state that is too old for an item of this timestamp."""
        return self._ttl is not None and key in self._states and bool(self._states[key][1] < timestamp - self._ttl)

    def _met(self, key: Any, timestamp: Any) -> Any:
        """Return the state that an item of this timestamp meets."""
        self._touched[key] = None
        held = self._states[key]
        if self._ttl is not None and timestamp > held[1]:
            held[1] = timestamp
        return held[0]

    def _evicted(self, key: Any, watermark: int, old: int) -> Iterator[Timed]:
        """Remove the state of a key, and yield the user's output for it.

        Its timestamp is the last instant of the state. It is at least the watermark at the start of the epoch, when the
        state still existed, so the output is late nowhere, also if the `ttl` was shortened meanwhile.
        """
        state, last = self._remove(key)
        if self._operator.on_evict is not None:
            over = last if self._ttl is None else max(last + self._ttl, old)
            for made in self._farewell(state, key, watermark):
                yield over, made

    def _farewell(self, state: Any, key: Any, watermark: int) -> Iterator[Any]:
        """Yield the output of `on_evict`; an error of it belongs to no item."""
        on_evict: Any = self._operator.on_evict
        try:
            result = on_evict(state, key, watermark)
            if result is not None:
                yield from many(result) if self._operator.action == "flat_map" else (result,)
        except StopIteration as error:
            # A StopIteration inside of this generator would become a RuntimeError without the key (PEP 479).
            failed = stopped(getattr(on_evict, "__qualname__", type(on_evict).__qualname__))
            given(failed, _where(key))
            raise failed from error
        except Exception as error:
            given(error, _where(key))
            raise

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Return the keys with their states, as passed to the user's functions."""
        return ((key, held[0]) for key, held in self._states.items())


def _where(key: Any) -> str:
    return f"where the state of the key {shown(key)} was evicted"


def _one(result: Any, item: Any) -> Iterable[Any]:
    return (result,)


def _filtered(result: Any, item: Any) -> Iterable[Any]:
    return (item,) if result else ()


def _all(result: Any, item: Any) -> Iterable[Any]:
    return many(result)


_MADE: dict[str, Callable[[Any, Any], Iterable[Any]]] = {"map": _one, "filter": _filtered, "flat_map": _all}
