"""Batches: the encoding of items and columns for a shuffle. Loads no NumPy."""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from dstream.base.copies import copier_of, without_garbage_collection
from dstream.base.memory import BatchIterator
from dstream.base.pickling import dumps
from dstream.base.records import record
from dstream.errors import SerializationError
from dstream.failures import shown
from dstream.operators.rows.blocks import ColumnItems, LazyRows, given
from dstream.spi.source import RowsAgain
from dstream.values import Entry

if TYPE_CHECKING:
    from dstream.operators.columns.values import Column

__all__ = [
    "Batch",
    "Batcher",
    "Reopened",
    "copies",
    "dumps_columns",
    "dumps_items",
    "loads",
    "loads_items",
    "packed_columns",
    "travelling",
]


TARGET_BYTES = 256 * 1024
_FIRST_COUNT = 64
"""The largest size of the first batch, of which only the first item was measured."""
_LARGEST_COUNT = 16_384
_GROWTH = 4

loads = pickle.loads


def dumps_items(items: list[Any]) -> bytes:
    """Pickle a list of items.

    Raises:
        SerializationError: an item cannot be pickled; the message names it.
    """
    try:
        return dumps(travelling(items))
    except Exception as error:
        # Pickle's message does not name the item, so each is pickled alone.
        for item in items:
            _check(item)
        raise SerializationError(f"these items cannot be pickled together: {error}") from error


def copies(items: list[Any]) -> list[Any]:
    """Return copies of items that remain in this process; immutable items are not copied.

    Raises:
        SerializationError: an item cannot be copied; the message names it.
    """
    copier = copier_of(items)
    if copier is not None:
        return copier(items)
    data = dumps_items(items)
    try:
        found: list[Any] = loads_items(data)
    except Exception as error:
        for item in items:
            _check_loaded(item)
        raise SerializationError(f"these items cannot be unpickled together: {error}") from error
    return found


def dumps_columns(columns: Sequence[list[Any]]) -> bytes:
    """Pickle lists of the same length, such as keys and their items, which are smaller than a list of tuples.

    Raises:
        SerializationError: an object in them cannot be pickled; the message names it.
    """
    try:
        return dumps(list(map(travelling, columns)))
    except Exception as error:
        for item in chain(*columns):
            _check(item)
        raise SerializationError(f"these items cannot be pickled together: {error}") from error


def travelling(items: list[Any]) -> Iterable[Any]:
    """Return a form of a list of items to pickle, also inside of another object: it is loaded as a list."""
    return _Entries(items) if set(map(type, items)) == {Entry} else items


class _Entries:
    """Entries while they are sent: pickling two lists takes half the time of pickling the objects."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def __reduce__(self) -> tuple[Any, ...]:
        # `zip(*entries)` would make an iterator for each entry, which wakes the garbage collector: four times the work.
        return _entries, ([key for key, _ in self._entries], [value for _, value in self._entries])


def _entries(keys: list[Any], values: list[Any]) -> list[Any]:
    return list(map(Entry._make, zip(keys, values, strict=True)))


def _check(item: Any) -> None:
    try:
        dumps(item)
    except Exception as error:
        # A block fails as one item: the message should name the item in it that cannot be pickled.
        for each in getattr(item, "items_of_block", ()):
            _check(each)
        raise SerializationError(
            f"an item cannot travel between processes: {type(item).__name__} {shown(item)} cannot be pickled: {error}"
        ) from error


def _check_loaded(item: Any) -> None:
    try:
        loads(dumps(item))
    except Exception as error:
        raise SerializationError(
            f"an item cannot travel between processes: {type(item).__name__} {shown(item)} cannot be unpickled: {error}"
        ) from error


def loads_items(data: Any) -> Any:
    """Unpickle a list of items."""
    with without_garbage_collection():
        items: list[Any] = loads(data)
    return items


class Reopened:
    """Sources from which rows that were sent are read again; the latest remain open for the next rows."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}

    def of(self, again: RowsAgain) -> Any:
        """Return the opened source of rows."""
        if again.together not in self._found:
            while len(self._found) >= _MOST_OPEN:
                del self._found[next(iter(self._found))]
            self._found[again.together] = again.opened()
        return self._found[again.together]


_MOST_OPEN = 2
"""Maximum number of open sources. Rows arrive in the order of their source, whose columns may all be in memory."""


@record(slots=False)
class Batch:
    """A pickled batch as a split of its own."""

    data: bytes

    def read(self) -> Iterator[Any]:
        """Return an iterator over the items."""
        return iter(loads(self.data))


class Batcher:
    """Splits items into pickled batches of about 256 KB, and adapts their length to the size of the items.

    Attributes:
        count: the number of items in a batch; one until their size is known.
    """

    def __init__(self) -> None:
        self.count = 1
        self._is_new = True

    def batches(self, items: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        """Yield (number of items, pickled list) for `items`, reading no further than the current batch."""
        if type(items) is ColumnItems and not items.is_read:
            yield from self._blocks(items)
            return
        taking = BatchIterator(items)
        while batch := taking.take(self.count):
            if self._is_new:
                self.begin(batch)
                batch += taking.take(self.count - 1) if self.count > 1 else []
            data = dumps_items(batch)
            self.learn(len(batch), len(data))
            yield len(batch), data

    def _blocks(self, items: ColumnItems) -> Iterator[tuple[int, bytes]]:
        """Yield (number of items, pickled list) of items; blocks in columns are sent as columns."""
        for block in items.blocks():
            if isinstance(block, Sequence | Iterator | LazyRows):
                yield from self.batches(iter(given(block)))
                continue

            yield from packed_columns(block)

    def pairs(self, left: list[Any], right: list[Any]) -> Iterator[tuple[int, bytes]]:
        """Yield (number of pairs, pickled list of two lists) for two lists of the same length."""
        start = 0
        self.begin([left[:1], right[:1]])
        while start < len(left):
            parts = [left[start : start + self.count], right[start : start + self.count]]
            data = dumps_items(parts)
            size = len(parts[0])
            self.learn(size, len(data))
            start += size
            yield size, data

    def begin(self, first: list[Any]) -> None:
        """Set the length of the first batch by its first item; a known length is not changed."""
        if self._is_new:
            self.count = max(1, min(TARGET_BYTES // len(dumps_items(first)), _FIRST_COUNT))
            self._is_new = False

    def learn(self, count: int, size: int) -> None:
        """Aim the next batch at the target size."""
        fitting = max(1, count * TARGET_BYTES // max(size, 1))
        # The growth is bounded, since later items may be larger than the measured ones.
        self.count = min(fitting, self.count * _GROWTH, _LARGEST_COUNT)


class _Packed:
    """Pickle of a column as the call that makes a list of its items."""

    def __init__(self, column: Column) -> None:
        self._column = column

    def __reduce__(self) -> tuple[Any, ...]:
        return _made(self._column)


def packed_columns(column: Column) -> Iterator[tuple[int, bytes]]:
    """Yield (number of items, pickled list) of the rows of a column, in parts."""
    from dstream.operators.columns.values import parts_of

    for part, size in parts_of(column, _ROWS):
        yield size, dumps(_Packed(part))


_ROWS = 32_768


def _made(column: Column) -> tuple[Any, ...]:
    # Imported in the function: these modules load NumPy, which a stage of objects alone does not need.
    from dstream.operators.columns.encoded import Encoded as Values
    from dstream.operators.columns.strings import StringLists as Lists
    from dstream.operators.columns.strings import Strings as Texts
    from dstream.operators.columns.values import Bools, Floats, Ints, Objects, Tuples, items_of
    from dstream.operators.columns.values import ConstantColumn as Same

    if isinstance(column, LazyRows):
        return list, (items_of(column),)
    if isinstance(column, Ints):
        return _numbers, ("q", column.values.tobytes())
    if isinstance(column, Floats):
        return _numbers, ("d", column.values.tobytes())
    if isinstance(column, Bools):
        return _numbers, ("?", column.values.tobytes())
    if isinstance(column, Same):
        return _same, (column.value, column.size)
    if isinstance(column, Values):
        return list, (column.tolist(),)
    if isinstance(column, Objects):
        return list, (column.values,)
    if isinstance(column, Texts):
        separated = column.separated()
        return (list, (column.tolist(),)) if separated is None else (_texts, separated)
    if isinstance(column, Lists):
        return _lists, (_Packed(column.members), column.ends().tolist())
    assert isinstance(column, Tuples), "there are no other columns"
    if column.whole is not None:
        return _windows, (_Packed(column.whole), len(column.members))
    return _tuples, (column.size, *map(_Packed, column.members))


def _numbers(code: Any, data: bytes) -> list[Any]:
    # Without NumPy: the process that unpickles may have no other use for it.
    found: list[Any] = memoryview(data).cast(code).tolist()
    return found


def _texts(data: bytes, separator: str) -> list[str]:
    found = data.decode().split(separator)
    # Each string ends in the separator, so the last part is empty.
    found.pop()
    return found


def _lists(members: list[str], ends: list[int]) -> list[list[str]]:
    return [members[start:end] for start, end in pairwise([0, *ends])]


def _same(value: Any, size: int) -> list[Any]:
    return [value] * size


def _windows(values: list[Any], size: int) -> list[Any]:
    from more_itertools import sliding_window

    return list(sliding_window(values, size))


def _tuples(size: int, *members: list[Any]) -> list[Any]:
    # `zip` without arguments would return no rows.
    return list(zip(*members, strict=True)) if members else [()] * size
