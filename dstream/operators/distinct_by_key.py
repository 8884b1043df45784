"""`KeyedDistinct`: the first item of each key, for ever or again after some time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.operators.items_by_key import ItemsByKey, late_ones, partials_by_key, rows
from dstream.operators.key_states import KeyStates
from dstream.spi.state_operator import Applied, Moment, Partials, ShardState
from dstream.values.event_time import Timed

__all__ = ["KeyedDistinct"]


@dataclass(frozen=True, slots=True)
class KeyedDistinct:
    """Lets the first item of each key pass, in the order of (epoch, partition of the source, offset).

    With `within`, time counts from the item that passed: items before it, or less than `within` behind it, do not pass.
    The next one passes, and time counts from there. Then items need timestamps, and one behind the watermark at the
    start of the epoch is late. A key is forgotten at `watermark >= passed + within`: whatever comes then passes.

    Attributes:
        key: gives the key of an item.
        within: milliseconds; None: a key passes once, and is never forgotten.
        gives_late: late items go on, as `Late`.
    """

    kind = "distinct"
    inputs = 1

    key: Callable[[Any], Any]
    within: int | None = None
    gives_late: bool = False

    @property
    def signature(self) -> tuple[Any, ...]:
        """The duration, by which keys were forgotten."""
        return (self.within,)

    def partial(self, number: int, items: Iterator[Timed], moment: Moment, shards: int) -> Partials:
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

    def apply(self, partials: Sequence[tuple[int, Any]], moment: Moment) -> Applied:
        return Applied(self._outputs([partial for _, partial in partials], moment.new))

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
