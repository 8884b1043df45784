"""Sources in memory: items of the caller, ranges of whole numbers, generated items.

Nothing here imports `dstream`, so that `dstream` can import this module while it loads.
"""

from __future__ import annotations

import collections
import itertools
import math
import operator
import os
import reprlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast
from weakref import WeakSet

if TYPE_CHECKING:
    from dstream.spi.source import InputSize

__all__ = [
    "Generate",
    "GenerateSplit",
    "Items",
    "ItemsSplit",
    "Iterate",
    "IterateSplit",
    "Range",
    "cut",
    "length",
    "partition_count",
    "split_count",
    "whole",
]


T = TypeVar("T")

FIRST_CHUNK = 1
LARGEST_CHUNK = 16_384
"""Iterables without `len` are pulled in chunks of 1, 4, 16, ... up to 16,384 items: a reader of one pulls one."""


_SIZED = frozenset({list, tuple, range, str, bytes, dict, set, frozenset, collections.deque})
"""Types whose `len` is always the number of their items; a subclass may differ."""


@dataclass(frozen=True, slots=True, repr=False)
class ItemsSplit(Generic[T]):
    """A stretch of items: a list, a tuple or a range.

    Attributes:
        items: the items, so that an engine may send them in batches.
    """

    items: Sequence[T]
    yields_its_items = True

    def read(self) -> Iterator[T]:
        """Yield the items one after another."""
        return iter(self.items)

    def __repr__(self) -> str:
        return f"ItemsSplit({reprlib.repr(self.items)})"


class NamesOfStreams:
    """A source, on which methods of a stream may be called by mistake."""

    __slots__ = ()

    if not TYPE_CHECKING:  # A type checker would accept it for every name.

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self).__name__
            hint = "" if name.startswith("_") else _A_SOURCE
            raise AttributeError(f"{kind!r} has no attribute {name!r}{hint}", name=name, obj=self)


_A_SOURCE = ": it is a source. ctx.read(source) makes a stream of it, and pipeline.read_from(source) a stage"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Items(NamesOfStreams, Generic[T]):
    """The items of a Python iterable, read when a terminal operation starts and not before.

    A list that changed after the stream was built is read in its changed state. A set has no order. An iterable without
    `len` (a generator, `itertools.count()`, an open file) may be infinite: it is consumed in small chunks, only as far
    as needed, and `partitions` does not apply to it.

    **Parallelism**: `partitions` splits of nearly equal size, by default one per core; a `range` is cut into ranges.
    **Guarantee**: every item once, in the iterable's order, as it is when `splits` is called.
    **On re-run**: the iterable is read again. A one-shot iterator cannot be: consumed items are cached in the caller's
    memory and repeated, and so is the exception that ended it.

    Args:
        iterable: an argument of `iter`; a str has its characters as items, a dict its keys.
        partitions: the number of splits, some of them empty if there are fewer items.

    Raises:
        TypeError: `iterable` is not iterable, or `partitions` is not an int.
        ValueError: `partitions` is below 1.

    Example:
        >>> source = Items("abcde", partitions=2)
        >>> [list(split.read()) for split in source.splits(8)]
        [['a', 'b'], ['c', 'd', 'e']]
    """

    iterable: Iterable[T]
    partitions: int | None = None
    _tape: _Tape[T] | None = field(init=False, default=None)

    bounded = True
    in_caller = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", partition_count(self.partitions))
        if not isinstance(self.iterable, Iterable):
            iter(self.iterable)  # Raises Python's own TypeError, unless __getitem__ makes it iterable.
        # An iterator whose `__iter__` returns a new one can be read again, and needs no tape.
        if isinstance(self.iterable, Iterator) and iter(self.iterable) is self.iterable:
            object.__setattr__(self, "_tape", _Tape(self.iterable))

    @property
    def ordered(self) -> bool:
        """Return whether the items have an encounter order: only sets do not."""
        return not isinstance(self.iterable, (set, frozenset))

    @property
    def one_shot(self) -> bool:
        """Return whether the iterable can be read only once, and may be infinite."""
        return self._tape is not None

    def splits(self, parallelism: int) -> Iterable[ItemsSplit[T]]:
        """Read the iterable and divide its items; lazily if it has no `len`."""
        if isinstance(self.iterable, range):
            return cut(cast("Sequence[T]", self.iterable), self.partitions, parallelism)
        if self._tape is not None:
            return _chunks(self._tape)
        if not isinstance(self.iterable, Sized):
            return _chunks(_Tape(iter(self.iterable)), keeps=False)
        # A copy, since the caller may change the iterable while tasks read their splits.
        return cut(list(self.iterable), self.partitions, parallelism)

    def count_splits(self, parallelism: int) -> int | None:
        """Return the number of splits, None if only reading the iterable can show it."""
        if isinstance(self.iterable, range):
            return split_count(length(self.iterable), self.partitions, parallelism)
        if self._tape is not None or not isinstance(self.iterable, Sized):
            return None
        return split_count(len(self.iterable), self.partitions, parallelism)

    def input_size(self) -> InputSize:
        """Return the number of items, unknown if it requires reading the iterable."""
        return _size_in_memory(self._count(), is_exact=type(self.iterable) in _SIZED)

    def _count(self) -> int | None:
        if isinstance(self.iterable, range):
            return length(self.iterable)
        if self._tape is not None or not isinstance(self.iterable, Sized):
            return None
        try:
            return len(self.iterable)
        except Exception:  # The reader will raise what is wrong with it.
            return None

    def __repr__(self) -> str:
        return f"Items({reprlib.repr(self.iterable)}, partitions={self.partitions})"


def _size_in_memory(items: float | None, *, is_exact: bool = False) -> InputSize:
    """Return the size of items of this process."""
    from dstream.spi.source import InputSize  # imported on use: see the docstring of this module

    return InputSize(items, is_exact, is_held=True, is_near=True)


class LiteralItems(Items[T]):
    """Items that were written down one by one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"items({reprlib.repr(self.iterable)[1:-1].removesuffix(',')})"


def partition_count(partitions: int | None) -> int | None:
    """Return `partitions` as an int of at least 1, or None.

    Raises:
        TypeError: it is not an int.
        ValueError: it is below 1.
    """
    if partitions is None:
        return None
    count = whole(partitions, "partitions")
    if count < 1:
        raise ValueError(f"partitions must be at least 1, not {count}")
    return count


def whole(value: object, name: str) -> int:
    """Return a whole number as an int, also one of NumPy's; a `TypeError` names the argument."""
    try:
        return operator.index(value)  # type: ignore[arg-type]  # `index` checks it.
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None


def cut(items: Sequence[T], partitions: int | None, parallelism: int) -> list[ItemsSplit[T]]:
    """Cut `items` into splits of nearly equal size, at least one."""
    size = length(items)
    count = split_count(size, partitions, parallelism)
    if count == 1:
        return [ItemsSplit(items)]
    return [ItemsSplit(items[size * i // count : size * (i + 1) // count]) for i in range(count)]


def split_count(size: int, partitions: int | None, parallelism: int) -> int:
    """Return into how many splits `cut` divides `size` items."""
    return partitions or max(1, min(size, parallelism))


def length(items: Sequence[Any]) -> int:
    """Return `len(items)`, also for a range that is too long for `len`."""
    if not isinstance(items, range):
        return len(items)
    step = items.step
    return max(0, (items.stop - items.start + step - (1 if step > 0 else -1)) // step)


_tapes: WeakSet[_Tape[Any]] = WeakSet()


def _renew_locks() -> None:
    """Renew the locks in a forked process, where no thread of its parent reads any more."""
    for tape in list(_tapes):
        tape.lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_locks)


class _Tape(Generic[T]):
    """An iterator and all that was pulled from it, so that it can be read from the start again."""

    def __init__(self, iterator: Iterator[T], pulled: Iterable[T] = ()) -> None:
        self.iterator = iterator
        self.pulled = list(pulled)
        self.end: Exception | None = None
        self.lock = threading.RLock()  # Two threads may run one stream.
        _tapes.add(self)

    def chunk(self, start: int, size: int) -> list[T]:
        """Return up to `size` items from position `start`; none mean that the iterator ended.

        Those before one that cannot be made are returned: their output precedes its failure, as in a loop.
        """
        with self.lock:
            if len(self.pulled) < start + size and self.end is None:
                self._pull(start + size - len(self.pulled))
            chunk = self.pulled[start : start + size]
            if not chunk and self.end is not None and not isinstance(self.end, StopIteration):
                raise self.end
            return chunk

    def _pull(self, count: int) -> None:
        before = len(self.pulled)
        try:
            self.pulled.extend(itertools.islice(self.iterator, count))
        except Exception as failure:
            self.end = failure
        except BaseException:  # Ctrl-C ends a generator, which afterwards seems to have no more items.
            self.end = RuntimeError("reading this iterator was interrupted: make a new one")
            raise
        else:
            if len(self.pulled) - before < count:
                self.end = StopIteration()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Tape, (self.iterator, self.pulled)  # A lock cannot be pickled.


def _chunks(tape: _Tape[T], keeps: bool = True) -> Iterator[ItemsSplit[T]]:
    """Yield the items of a tape, which `keeps` consumed items, as lazy splits, the first of them small."""
    start, size, is_empty = 0, FIRST_CHUNK, True
    while chunk := tape.chunk(start, size):
        yield ItemsSplit(chunk)
        is_empty, size = False, min(size * 4, LARGEST_CHUNK)
        if keeps:
            start += len(chunk)
        else:
            tape.pulled.clear()
        del chunk  # It is not needed while the next one is read.
    if is_empty:
        yield ItemsSplit([])


@dataclass(frozen=True, slots=True)
class Range(NamesOfStreams):
    """The whole numbers of `range(start, stop, step)`.

    **Parallelism**: `partitions` splits of nearly equal size, by default one per core. A split is a `range`.
    **Guarantee**: ordered; every number once.
    **On re-run**: the same numbers.

    Raises:
        TypeError: `start`, `stop`, `step` or `partitions` is not an int.
        ValueError: `step` is 0, or `partitions` is below 1.

    Example:
        >>> [split.items for split in Range(0, 10).splits(3)]
        [range(0, 3), range(3, 6), range(6, 10)]
    """

    start: int
    stop: int
    step: int = 1
    partitions: int | None = None

    ordered = True
    bounded = True
    in_caller = False
    is_free_to_read = True
    """Reading a part again is free and runs no code of the user's."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", whole(self.start, "start"))
        object.__setattr__(self, "stop", whole(self.stop, "stop"))
        object.__setattr__(self, "step", whole(self.step, "step"))
        if self.step == 0:
            raise ValueError("step must not be 0")
        object.__setattr__(self, "partitions", partition_count(self.partitions))

    def count_splits(self, parallelism: int) -> int:
        """Return the number of splits."""
        return split_count(self._count(), self.partitions, parallelism)

    def input_size(self) -> InputSize:
        """Return the number of numbers."""
        return _size_in_memory(self._count(), is_exact=True)

    def _count(self) -> int:
        return length(range(self.start, self.stop, self.step))

    def splits(self, parallelism: int) -> list[ItemsSplit[int]]:
        """Cut the range into ranges."""
        return cut(range(self.start, self.stop, self.step), self.partitions, parallelism)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Iterate(NamesOfStreams, Generic[T]):
    """`seed`, `next(seed)`, `next(next(seed))`, ... while `has_next` is true.

    `next` is never called for an item that is not requested. With `has_next` the source counts as bounded; as in Java
    it is still infinite if `has_next` never fails.

    **Parallelism**: one split, since each item needs the previous one.
    **Guarantee**: ordered; every item once.
    **On re-run**: made again from `seed`, so `next` must not change its argument.

    Raises:
        TypeError: `next` or `has_next` is not callable.

    Example:
        >>> [split] = Iterate(1, lambda n: n * 2, lambda n: n < 20).splits(8)
        >>> list(split.read())
        [1, 2, 4, 8, 16]
    """

    seed: T
    next: Callable[[T], T]
    has_next: Callable[[T], bool] | None = None

    ordered = True
    in_caller = False

    def __post_init__(self) -> None:
        _require_callable(self.next, "next")
        if self.has_next is not None:
            _require_callable(self.has_next, "has_next")

    @property
    def bounded(self) -> bool:
        """Return whether something can end the items."""
        return self.has_next is not None

    def count_splits(self, parallelism: int) -> int:
        """Return 1."""
        return 1

    def splits(self, parallelism: int) -> list[IterateSplit[T]]:
        """Return the only split, which makes all items."""
        return [IterateSplit(self.seed, self.next, self.has_next)]

    def input_size(self) -> InputSize:
        """Return that the items have no end, or that their number is unknown if something can end them."""
        return _size_in_memory(math.inf if self.has_next is None else None)

    def replay(self, item: T) -> T | None:
        """Run the functions on one item, as the split does; None if it is the last one."""
        return self.next(item) if self.has_next is None or self.has_next(item) else None

    def __repr__(self) -> str:
        functions = (self.has_next, self.next) if self.has_next else (self.next,)
        from dstream.values.user_functions import shown_function  # imported on use: see the docstring of this module

        return f"Iterate({reprlib.repr(self.seed)}, {', '.join(map(shown_function, functions))})"


@dataclass(frozen=True, slots=True, eq=False)
class IterateSplit(Generic[T]):
    """The only split of `Iterate`."""

    seed: T
    next: Callable[[T], T]
    has_next: Callable[[T], bool] | None

    def read(self) -> Iterator[T]:
        """Yield the items lazily."""
        from dstream.base.functions import refuse_awaitable  # imported on use: see the docstring of this module

        item = self.seed
        is_first = True
        while self.has_next is None or self.has_next(item):
            yield item
            item = self.next(item)
            # An async function returns an awaitable each time, so that one check is enough.
            if is_first:
                refuse_awaitable(item)
                is_first = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Generate(NamesOfStreams, Generic[T]):
    """The results of `supplier()`, again and again, without end and without order.

    **Parallelism**: as many splits as keep every core busy; each calls `supplier` independently.
    **Guarantee**: none about the assignment of calls to splits.
    **On re-run**: `supplier` is called again, so the items may differ.

    Raises:
        TypeError: `supplier` is not callable.

    Example:
        >>> first, second = Generate(lambda: "tick").splits(2)
        >>> next(first.read())
        'tick'
    """

    supplier: Callable[[], T]

    ordered = False
    bounded = False
    in_caller = False

    def __post_init__(self) -> None:
        _require_callable(self.supplier, "supplier")

    def count_splits(self, parallelism: int) -> int:
        """Return the parallelism: there is a split for each task."""
        return max(1, parallelism)

    def input_size(self) -> InputSize:
        """Return that the items have no end."""
        return _size_in_memory(math.inf)

    def splits(self, parallelism: int) -> list[GenerateSplit[T]]:
        """Return one endless split for each task."""
        return [GenerateSplit(self.supplier)] * max(1, parallelism)

    def __repr__(self) -> str:
        from dstream.values.user_functions import shown_function

        return f"Generate({shown_function(self.supplier)})"


@dataclass(frozen=True, slots=True, eq=False)
class GenerateSplit(Generic[T]):
    """Split of `Generate`; all are equal."""

    supplier: Callable[[], T]

    def read(self) -> Iterator[T]:
        """Call the supplier once for each requested item."""
        from dstream.base.functions import refuse_awaitable  # imported on use: see the docstring of this module

        refuse_awaitable(first := self.supplier())
        yield first
        while True:  # A C iterator would mistake a StopIteration of the supplier for the end.
            yield self.supplier()


def _require_callable(value: object, name: str) -> None:
    if not callable(value):
        raise TypeError(f"{name} must be a function, not {type(value).__name__}")
