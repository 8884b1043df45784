"""Functions of the user's around which items travel as pairs `(timestamp, item)`: they are given the item alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.keys import canonical
from dstream.values.blaming import failed_on
from dstream.values.event_time import Timed

__all__ = ["BatchOfPairs", "KeyOfPair", "joined_again"]


@dataclass(frozen=True, slots=True)
class KeyOfPair:
    """The key function of a hash join.

    Attributes:
        key: gives the key of an item.
    """

    key: Callable[[Any], Any]

    def __call__(self, pair: Timed) -> Any:
        """Return the key of the item, canonical; what fails names the item and not the pair."""
        try:
            return canonical(self.key(pair[1]))
        except Exception as error:
            failed_on(error, pair[1])
            raise


@dataclass(frozen=True, slots=True)
class BatchOfPairs:
    """The function of a step that asks a service for several items at a time.

    Attributes:
        fn: takes (service, items); gives their results.
    """

    fn: Callable[[Any, list[Any]], Iterable[Any]]

    def __call__(self, service: Any, pairs: Sequence[Timed]) -> Iterator[Timed]:
        """Give the results, each with the timestamp of its item."""
        results = self.fn(service, [item for _, item in pairs])
        return zip((timestamp for timestamp, _ in pairs), results, strict=True)


def joined_again(joined: tuple[Timed, Any]) -> Timed:
    """Return a pair and its match as the pair of the item and its match."""
    (timestamp, item), match = joined
    return timestamp, (item, match)
