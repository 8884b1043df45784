"""`updating_imap` and `processing_imap`: new values of a map, made of the ones that are there and of items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dstream.spi import Grouped, Reducer, Update
from dstream.spi.live_entry import LiveEntry, change_of
from dstream.values.blaming import given, shown
from dstream.values.flattened import checked_result
from dstream.values.places import Place, checked_place, shown_place
from reducers.writing import MapSink, checked_function, checked_text

if TYPE_CHECKING:
    from dstream.distributed import IStreamMap

__all__ = ["processing_imap", "updating_imap"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


def updating_imap(
    name: str,
    key: Callable[[T], K],
    update: Callable[[V | None, T], V | None],
    *,
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[T, IStreamMap[K, V]]:
    """Give entries of the map `name`, made if there is none, values made of the old ones and of items; return it.

    The items of a key come one after another, in encounter order. Costs one shuffle of all items; those of one key must
    fit into the memory of a task. Where a function makes one value of two, `to_imap` combines them before the shuffle.

    **Parallelism**: each task writes the buckets of its keys.
    **Guarantee**: all entries of a job change at once or none does, each item counts once; `update` may run more often,
    where a task is run again, or an entry changed before the commit.
    **On re-run**: the same items are taken in again, unless `job` names the job.

    Args:
        name: the name of the map.
        key: gives the key of an item.
        update: gets the value of the key, None if there is none, and an item; gives the new value, or None to remove
            the entry. It may change the value that it gets and give that.
        job: a job of this name is committed once, however often it runs; a second run does nothing.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Raises:
        TypeError: an argument is of another kind.
        NullElementError: when it runs: a key is None.
        UnstableKeyError: when it runs: a key cannot be kept.

    Example:
        >>> from reducers import updating_imap
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     ctx.get_map("stock").update(rope=3, oil=1)
        ...     sold = ctx.stream(["rope", "oil", "rope"])
        ...     sold.collect(updating_imap("stock", str, lambda left, _: left - 1 or None)).copy()
        {'rope': 1}
    """
    return _sink("updating_imap", name, key, _Updating(checked_function(update, "update")), job, storage)


def processing_imap(
    name: str,
    key: Callable[[T], K],
    processor: Callable[[LiveEntry[K, V | None], T], object],
    *,
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[T, IStreamMap[K, V]]:
    """Let a function change entries of the map `name`, made if there is none, for each item; return the map.

    It gets what the function of `map.execute_on_key` gets: the entry, whose value is None where there is none. All else
    is as in `updating_imap`.

    **Parallelism**, **Guarantee**, **On re-run**: as for `updating_imap`.

    Args:
        name: the name of the map.
        key: gives the key of an item.
        processor: gets the entry and an item. `entry.set_value(value)` changes the entry, with None removes it; what
            the function returns does not matter.
        job: as for `updating_imap`.
        storage: as for `updating_imap`.

    Raises:
        TypeError: an argument is of another kind.
        NullElementError: when it runs: a key is None.
        UnstableKeyError: when it runs: a key cannot be kept.

    Example:
        >>> from reducers import processing_imap
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     longest = lambda entry, word: entry.set_value(max(entry.value or "", word, key=len))
        ...     words = ctx.stream(["ash", "oak", "alder"])
        ...     sorted(words.collect(processing_imap("longest", lambda word: word[0], longest)).values())
        ['alder', 'oak']
    """
    return _sink("processing_imap", name, key, _Processing(checked_function(processor, "processor")), job, storage)


def _sink(
    function: str,
    name: str,
    key: Callable[[Any], Any],
    fn: Callable[[Any, Any, Any], Any],
    job: str | None,
    storage: Place | None,
) -> Reducer[Any, Any]:
    checked_text(name, "name")
    checked_function(key, "key")
    if job is not None:
        checked_text(job, "job")
    place = checked_place(storage)
    label = f"{function}({name!r}{shown_place(place)})"
    return UpdatingSink(name, label, Grouped(key), Update(fn), job=job, storage=place)


@dataclass(frozen=True, slots=True, repr=False)
class UpdatingSink(MapSink[T, R]):
    """Writes the items of each key, of which the store makes its value."""

    def __post_init__(self) -> None:
        if self.replace:
            raise TypeError(f"{self.label}: there would be no old values to update; to_imap(...) makes new ones")


@dataclass(frozen=True, slots=True)
class _Updating:
    """Takes the items of a key in, one after another."""

    update: Callable[[Any, Any], Any]

    def __call__(self, key: Any, value: Any, items: list[Any]) -> Any:
        for item in items:
            try:
                value = self.update(value, item)
            except Exception as error:
                given(error, f"when update was given {shown(value)} and {shown(item)}")
                raise
        return checked_result(value)


@dataclass(frozen=True, slots=True)
class _Processing:
    """Gives the entry and the items of a key to a function, one after another."""

    processor: Callable[[Any, Any], object]

    def __call__(self, key: Any, value: Any, items: list[Any]) -> Any:
        entry: LiveEntry[Any, Any] = LiveEntry(key, value)
        for item in items:
            try:
                self.processor(entry, item)
            except Exception as error:
                given(error, f"when processor was given {entry!r} and {shown(item)}")
                raise
        return change_of(entry, value)
