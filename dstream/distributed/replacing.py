"""`Replacing`: the sink of `replace_all`, which writes new values of entries where the entries are."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dstream.errors import NullElementError
from dstream.failures import shown
from dstream.plan.steps import shown_function
from dstream.spi import Collector, Grouped
from dstream.spi.sink import Collections, MapWriter, WriteJob
from dstream.spi.store import MapStore, Revision

__all__ = ["Replacing"]


@dataclass(frozen=True, slots=True, repr=False)
class Replacing:
    """Gives entries that are there other values; which ones, the items of the stream say, which are entries.

    Attributes:
        store: where they are.
        title: what errors call the map.
        fn: makes the new value of the key and the value that is there when it is written.
    """

    store: MapStore
    title: str
    fn: Callable[[Any, Any], Any]

    job = None

    @property
    def label(self) -> str:
        """The call."""
        return f"replace_all({shown_function(self.fn)})"

    @property
    def collector(self) -> Grouped:
        """Keep the value of each entry; a map has each key once."""
        return Grouped(operator.attrgetter("key"), Collector(_nothing, _value_of, _later))

    def open(self, context: Collections) -> Replacing:
        """Return itself: it knows its store already."""
        return self

    def begin(self, job: str | None, epoch: int = 1) -> WriteJob[MapWriter]:
        """Begin to write into the store."""
        return self.store.begin(job, epoch, merge=Revision(_Replaced(self.title, self.fn)))

    def result(self) -> None:
        """Return nothing."""


def _nothing() -> None:
    """Stand for the value of a key before its entry comes."""


def _value_of(_: Any, entry: Any) -> Any:
    return entry.value


def _later(left: Any, right: Any) -> Any:
    return right


@dataclass(frozen=True, slots=True)
class _Replaced:
    """Calls the user's function on the workers, or in the driver for entries that changed meanwhile."""

    title: str
    fn: Callable[[Any, Any], Any]

    def __call__(self, key: Any, value: Any) -> Any:
        place = f"replace_all() of {self.title}, {shown_function(self.fn)}, on the key {shown(key)}"
        try:
            new = self.fn(key, value)
        except Exception as error:
            error.add_note(f"in {place}; nothing was changed")
            raise
        if new is None:
            raise NullElementError(
                f"{place}: it gave None, and a map holds no None values; nothing was changed. "
                "execute_on_entries(lambda entry: entry.set_value(None), predicate) removes entries"
            )
        return new
