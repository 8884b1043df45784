"""`StatefulMapping`: what a function makes of each item and of a state that earlier items of its key left.

State may fade: with a `ttl`, that of a key is *evicted* when event time is more than `ttl` milliseconds behind its last
item. Two things tell how far event time is:

- The watermark: at the end of an epoch, after all its items, states with `last < watermark - ttl` go, those with the
  least `last` first. Here `last` is the greatest timestamp of the items that a state has seen.
- An item of the same key: if `last < timestamp - ttl`, the state goes before the item passes, which finds a new one.
  So whether two items meet one state does not depend on where epochs end, or on how far the watermark lags behind.

That is Jet's `mapStateful` in all but two things. Between two watermarks, Jet lets an item meet a state that is older
than its `ttl`. And a None that the function returns is an item here, as it is where data are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dstream.operators.items_by_key import ItemsByKey, late_ones, partials_by_key, rows
from dstream.operators.key_states import KeyStates
from dstream.spi.state_operator import Applied, Moment, Partials, ShardState
from dstream.values.blaming import given, shown, stopped
from dstream.values.event_time import END_OF_TIME, Timed
from dstream.values.flattened import many, refuse_awaitable

__all__ = ["StatefulMapping"]


@dataclass(frozen=True, slots=True)
class StatefulMapping:
    """Calls a function with the state of its key for each item, in the order of (epoch, partition, offset).

    What an item becomes has its timestamp; None is an item for `"map"`, and nothing for `"flat_map"`. With a `ttl`,
    items need timestamps, and one behind the watermark at the start of the epoch is late and changes nothing.

    Attributes:
        key: gives the key of an item; None: one state for all items, in one shard.
        create: makes the state of a key.
        fn: takes (state, key, item), without a key (state, item), and changes the state in place.
        action: what becomes of its result.
        ttl: for how many milliseconds of event time a state lives without an item; None: for ever.
        on_evict: takes (state, key, watermark) of a state that goes; without keys, its key is None. Where an item lets
            the state go, the watermark is the timestamp of that item. It returns what is given in place of the state:
            items for `"flat_map"`, otherwise an item; None: nothing. Their timestamp is the last instant of the state,
            that of its last item plus `ttl`: with the watermark, what is given when all sources have ended would stand
            at the end of time, where no window closes.
        gives_late: late items go on, as `Late`.
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
        """Whether there are keys, and whether states know when their last items were; the `ttl` itself may change."""
        return self.key is not None, self.ttl is not None

    def partial(self, number: int, items: Iterator[Timed], moment: Moment, shards: int) -> Partials:
        """Send the items, in order, to the shards of their keys."""
        return partials_by_key(self.key, items, shards, None if self.ttl is None else moment.old, self.gives_late)

    def new(self) -> ShardState:
        """Return the state of a shard that has seen no key."""
        return _FadingStates(self)


class _FadingStates(KeyStates[list[Any]]):
    """By key a list: the state as the user knows it, and the greatest timestamp of its items if that counts."""

    def __init__(self, operator: StatefulMapping) -> None:
        ttl = operator.ttl
        super().__init__(None if ttl is None else lambda held: int(held[1]) + ttl + 1)
        self._ttl, self._operator = ttl, operator
        self._made = _MADE[operator.action]

    def apply(self, partials: Sequence[tuple[int, Any]], moment: Moment) -> Applied:
        return Applied(self._outputs([partial for _, partial in partials], moment.old, moment.new))

    def _outputs(self, partials: list[ItemsByKey], old: int, watermark: int) -> Iterator[Timed]:
        self._begin(partials)
        for partial in partials:
            yield from self._mapped(partial, old)
            yield from late_ones(partial)
        for key in self._deadlines.passed(watermark):
            told = self._time_to_go(key) if watermark == END_OF_TIME else watermark
            yield from self._evicted(key, told, old)

    def _time_to_go(self, key: Any) -> int:
        """Return the watermark that a key waited for: no window behind closes later than the end of all time."""
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
            if is_first:
                refuse_awaitable(result)
            for made in self._made(result, item):
                yield timestamp, made

    def _is_over(self, key: Any, timestamp: Any) -> bool:
        """Say whether a key has a state that is too old for an item of this timestamp."""
        return self._ttl is not None and key in self._states and bool(self._states[key][1] < timestamp - self._ttl)

    def _met(self, key: Any, timestamp: Any) -> Any:
        """Return the state that an item of this timestamp meets."""
        self._touched[key] = None
        held = self._states[key]
        if self._ttl is not None and timestamp > held[1]:
            held[1] = timestamp
        return held[0]

    def _evicted(self, key: Any, watermark: int, old: int) -> Iterator[Timed]:
        """Let the state of a key go, and give what the user wants of it.

        Its timestamp is the last instant of the state. That is not below the watermark at the start of the epoch, when
        the state was still there, so it is late nowhere; a `ttl` that was made shorter meanwhile makes no difference.
        """
        state, last = self._remove(key)
        if self._operator.on_evict is not None:
            over = last if self._ttl is None else max(last + self._ttl, old)
            for made in self._farewell(state, key, watermark):
                yield over, made

    def _farewell(self, state: Any, key: Any, watermark: int) -> Iterator[Any]:
        """Give what `on_evict` makes; no item is to blame for what fails here."""
        on_evict: Any = self._operator.on_evict
        try:
            result = on_evict(state, key, watermark)
            if result is not None:
                yield from many(result) if self._operator.action == "flat_map" else (result,)
        except StopIteration as error:
            failed = stopped(getattr(on_evict, "__qualname__", type(on_evict).__qualname__))
            given(failed, _where(key))
            raise failed from error
        except Exception as error:
            given(error, _where(key))
            raise

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Give the keys with their states as the user's functions see them."""
        return ((key, held[0]) for key, held in self._states.items())


def _where(key: Any) -> str:
    return f"where the state of the key {shown(key)} was evicted"


def _one(result: Any, item: Any) -> Iterable[Any]:
    return (result,)


def _kept(result: Any, item: Any) -> Iterable[Any]:
    return (item,) if result else ()


def _all(result: Any, item: Any) -> Iterable[Any]:
    return many(result)


_MADE: dict[str, Callable[[Any, Any], Iterable[Any]]] = {"map": _one, "filter": _kept, "flat_map": _all}
