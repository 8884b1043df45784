"""`ItemsByKey`: the ordered items for a shard as columns, and the search for one that fails to pickle.

A task separates late items, computes the keys of the others, and sends each item to the shard of its key. A key is
canonical when it is sent; its receiver calls `canonical_keys` again, since a NaN that was pickled is another object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dstream.keys import canonical_all
from dstream.keys.hashing import keys_of, shard_numbers
from dstream.spi.epochs import TaskPartials
from dstream.values.time import Late, Timed

__all__ = ["Culprit", "ItemsByKey", "culprit", "late_ones", "partials_by_key", "rows"]


class ItemsByKey(NamedTuple):
    """Items of one task for one shard, in order.

    Attributes:
        keys: one key for each item; None where the operator has no key.
        timestamps: one timestamp for each item.
        items: the items in the order of arrival.
        late: the late items for the late output, with their timestamps.
    """

    keys: list[Any]
    timestamps: list[int | None]
    items: list[Any]
    late: list[Timed]


def rows(partial: ItemsByKey) -> Iterator[tuple[Any, Any, Any]]:
    """Return (key, timestamp, item) of each item, with keys that are canonical in this process."""
    return zip(canonical_all(partial.keys), partial.timestamps, partial.items, strict=True)


def late_ones(partial: ItemsByKey) -> list[Timed]:
    """Return the late items as the output of an operator."""
    return [(timestamp, Late(item)) for timestamp, item in partial.late]


def partials_by_key(
    key: Callable[[Any], Any] | None,
    items: Iterator[Timed],
    shards: int,
    late_before: int | None = None,
    gives_late: bool = False,
    firsts: bool = False,
) -> TaskPartials:
    """Send each item to the shard of its key.

    Args:
        key: returns the key of an item; None: all items are sent to shard 0.
        items: the items of one task.
        shards: the number of shards.
        late_before: an item with a lower timestamp is late; then every item needs a timestamp. None: no item is late.
        gives_late: whether late items are sent. Their keys are not computed: they are spread by their timestamps.
        firsts: whether only the first item of each key is sent.

    Raises:
        ValueError: an item has no timestamp, but `late_before` is set.
        UnstableKeyError: a key cannot be routed.
    """
    # All at once, since keys and their shards are computed for many items by one call.
    every = list(items)
    kept, late = (every, []) if late_before is None else _apart(every, late_before)
    timestamps, given = [timestamp for timestamp, _ in kept], [item for _, item in kept]
    columns = ([None] * len(given) if key is None else keys_of(key, given), timestamps, given)
    found = _spread(*(_firsts(*columns) if firsts else columns), 1 if key is None else shards)
    if gives_late:
        _add_late(found, late, 1 if key is None else shards)
    return TaskPartials(found, len(every), len(late))


def _apart(every: list[Timed], late_before: int) -> tuple[list[Timed], list[Timed]]:
    """Return the items that are not late, and the late items."""
    on_time: list[Timed] = []
    late: list[Timed] = []
    for timestamp, item in every:  # Failures are attributed to the item by this name.
        if timestamp is None:
            raise ValueError("an item without a timestamp is never over; add_timestamps(...) gives each item one")
        (late if timestamp < late_before else on_time).append((timestamp, item))
    return on_time, late


def _firsts(
    keys: list[Any], timestamps: list[int | None], items: list[Any]
) -> tuple[list[Any], list[int | None], list[Any]]:
    """Return the columns with the first item of each key alone."""
    positions: dict[Any, int] = {}
    for position, key in enumerate(keys):
        positions.setdefault(key, position)
    places = positions.values()
    return list(positions), [timestamps[place] for place in places], [items[place] for place in places]


def _spread(keys: list[Any], timestamps: list[int | None], items: list[Any], shards: int) -> dict[int, ItemsByKey]:
    """Return the items of each shard that has items."""
    if shards == 1:
        return {0: ItemsByKey(keys, timestamps, items, [])} if items else {}
    found: dict[int, ItemsByKey] = {}
    for shard, key, timestamp, item in zip(_shards_of(keys, shards), keys, timestamps, items, strict=True):
        columns = _of_shard(found, shard)
        columns.keys.append(key)
        columns.timestamps.append(timestamp)
        columns.items.append(item)
    return found


def _shards_of(keys: list[Any], shards: int) -> list[int]:
    """Return the shard of each item; each key is looked at once."""
    different = list(dict.fromkeys(keys))
    shard_of = dict(zip(different, shard_numbers(different, shards), strict=True))
    return [shard_of[key] for key in keys]


def _of_shard(found: dict[int, ItemsByKey], shard: int) -> ItemsByKey:
    columns = found.get(shard)
    if columns is None:
        columns = found[shard] = ItemsByKey([], [], [], [])
    return columns


def _add_late(found: dict[int, ItemsByKey], late: list[Timed], shards: int) -> None:
    for timestamp, item in late:
        assert timestamp is not None, "an item without a timestamp is never late"
        _of_shard(found, timestamp % shards).late.append((timestamp, item))


class Culprit(NamedTuple):
    """A value that cannot be pickled, and the reason.

    Attributes:
        value: an item, or a part of a group.
        key: the key of the group; None for an item.
        is_item: whether `value` is an item.
        error: the exception of pickling it.
    """

    value: Any
    key: Any
    is_item: bool
    error: Exception


def culprit(partial: Any, dumps: Callable[[Any], object]) -> Culprit | None:
    """Return the part of a partial that cannot be pickled; None if it is not found."""
    for value, key, is_item in _pieces(partial):
        try:
            dumps(value)
        except Exception as error:
            return Culprit(value, key, is_item, error)
    return None


def _pieces(partial: Any) -> Iterator[tuple[Any, Any, bool]]:
    """Yield (value, key, whether it is an item) of all values of a partial."""
    match partial:
        case ItemsByKey():
            for item in (*partial.items, *(late for _, late in partial.late)):
                yield item, None, True
            for key in partial.keys:
                yield key, key, False
        case (dict() as groups, list() as late):
            for _, item in late:
                yield item, None, True
            for key, held in groups.items():
                # Frames have a dictionary of groups for each end; sessions are lists by key.
                frame = held.items() if isinstance(held, dict) else [(key, container) for _, _, container in held]
                for of_key, container in frame:
                    yield container, of_key, False
