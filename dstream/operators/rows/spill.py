"""Sorting, grouping and deduplication in memory up to a bound, beyond it in temporary files.

Each operation is a generator over one partition. The files have no name: the system removes them when
the process ends, also after a crash.
"""

from __future__ import annotations

import heapq
import pickle
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, count, islice
from typing import IO, Any, Protocol, TypeVar

from dstream.base.memory import BatchPace, Bound, holding, pieces
from dstream.failures.attribution import failed_on
from dstream.keys import canonical, canonical_all
from dstream.operators.rows.batches import Batcher
from dstream.spi import Collector
from dstream.values.order import NanLast, before, first_compared, sort

__all__ = [
    "DEEPEST",
    "FAN_OUT",
    "FEWER_THAN_COLLECTED",
    "Columns",
    "Combining",
    "Groups",
    "GroupsOnDisk",
    "Run",
    "distinct_items",
    "distinct_of_batches",
    "distribute",
    "first_ones",
    "in_batches",
    "merged",
    "merged_as",
    "mixed",
    "partial_groups",
    "sorted_items",
    "taken_first",
    "top_items",
]


B = TypeVar("B")

_CHUNK = 512
FAN_OUT = 16
_BITS = 4
_MOST_RUNS = 64
_MOST_HEADS = 48 * 2**20
"""Maximum bytes of the widest batches of all runs, since a merge has one batch of each run in memory."""
DEEPEST = 4


class Run:
    """A temporary file of items in the order in which they were written, created with the first item.

    Attributes:
        widest: the bytes of its largest batch.
    """

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._file: IO[bytes] | None = None
        self._batcher = Batcher()
        self.widest = 0
        self.extend(items)

    def extend(self, items: Iterable[Any]) -> None:
        """Append `items`."""
        for _, data in self._batcher.batches(items):
            if self._file is None:
                import tempfile  # lazily: items that fit into memory need no file

                self._file = tempfile.TemporaryFile(prefix="dstream-")  # noqa: SIM115 - it is open as long as the run
                weakref.finalize(self, self._file.close)
            self._file.write(len(data).to_bytes(8, "little"))
            self._file.write(data)
            self.widest = max(self.widest, len(data))

    def __iter__(self) -> Iterator[Any]:
        """Read the items back, once, with one batch in memory at a time, and delete the file."""
        if self._file is not None:
            with self._file:
                yield from self.kept()

    def kept(self) -> Iterator[Any]:
        """Read the items back, any number of times, and retain the file."""
        if self._file is None:
            return
        self._file.seek(0)
        while header := self._file.read(8):
            yield from pickle.loads(self._file.read(int.from_bytes(header, "little")))


def sorted_items(items: Iterable[Any], key: Callable[[Any], Any] | None, reverse: bool, bound: Bound) -> Iterator[Any]:
    """Return the sorted items, stable as `sorted` is; past the bound sorted runs are merged from disk.

    The first two items are compared before the others are read.
    """
    runs: list[Run] = []
    held: list[Any] = []
    known: Sequence[Any] = ()
    for piece in pieces(items, _CHUNK):
        held += piece
        # The variable would retain these items in memory while their run is written.
        del piece
        if len(held) > 1 and not known and not runs:
            known = first_compared(held, key)
        if bound.exceeded():
            sort(held, key, reverse, known)
            runs.append(Run(held))
            held, known = [], ()
            bound.spilled()
            if len(runs) == _MOST_RUNS or sum(run.widest for run in runs) > _MOST_HEADS:
                # Each run has an open file, and in the last merge a batch in memory: past either bound they are merged.
                runs = [Run(heapq.merge(*runs, key=NanLast(key), reverse=reverse))]
    sort(held, key, reverse, known)
    # The items in memory are the latest: a merge yields equal items in the order of the runs.
    return heapq.merge(*runs, held, key=NanLast(key), reverse=reverse) if runs else iter(held)


def distinct_items(
    items: Iterable[Any], key: Callable[[Any], Any] | None, bound: Bound, level: int = 0
) -> Iterator[Any]:
    """Yield the first item of each key, in order, as soon as it is seen.

    Past the bound no key is added any more: items with unknown keys are written to files by their key's
    hash, each file is deduplicated on its own, and the results are merged by position.
    """
    seen: set[Any] = set()
    items = iter(items)
    add, find_key, pace = seen.add, key or _itself, BatchPace(_CHUNK)
    is_key = key is None
    # At the deepest level the bound is ignored: keys that are left share a hash, so dividing would never end.
    while level == DEEPEST or not bound.exceeded():
        chunk = islice(items, pace.look())
        first = next(chunk, _END)
        if first is _END:
            return
        for item in chain((first,), chunk):
            given = item if is_key else find_key(item)
            try:
                if given in seen:
                    continue
            except Exception:  # The key has no hash, or one that fails, which `canonical` reports.
                canonical(given)
                raise
            found = canonical(given)
            # Most keys are canonical themselves, and have been looked up above.
            if found is given or found not in seen:
                add(found)
                yield item
    unknown = (pair for pair in enumerate(items) if canonical(find_key(pair[1])) not in seen)
    # No file is made where no unknown key is left.
    for pair in islice(unknown, 1):
        for _, item in _distinct_from_disk(chain((pair,), unknown), find_key, bound, level):
            yield item


def distinct_of_batches(batches: Iterable[Sequence[list[Any]]], bound: Bound) -> Iterator[Any]:
    """Yield one item of each key of batches of (keys, items), or of (items,) that are their own keys, in any order.

    Past the bound the rest is written to files, as in `distinct_items`.
    """
    seen: set[Any] = set()
    batches = iter(batches)
    for keys, *others in batches:
        (items,) = others or [keys]
        yield from first_ones(canonical_all(keys), items, seen).values()
        if bound.exceeded():
            break
    rest = chain.from_iterable(zip(canonical_all(keys), *others or [keys], strict=True) for keys, *others in batches)
    unknown = (pair for pair in rest if pair[0] not in seen)
    for pair in islice(unknown, 1):
        for _, item in distinct_items(chain((pair,), unknown), _position, bound):
            yield item


def first_ones(keys: list[Any], items: list[Any], seen: set[Any]) -> dict[Any, Any]:
    """Return the first item of each canonical key that is not in `seen`, and add the keys to `seen`."""
    # A dictionary retains the last value of a key: in reverse, the first item.
    found = dict(zip(reversed(keys), reversed(items), strict=True))
    if not seen.isdisjoint(found):
        found = {key: found[key] for key in found.keys() - seen}
    seen.update(found)
    return found


_END = object()


def _itself(item: Any) -> Any:
    return item


def _distinct_from_disk(
    pairs: Iterable[tuple[int, Any]], find_key: Callable[[Any], Any], bound: Bound, level: int
) -> Iterator[tuple[int, Any]]:
    def pair_key(pair: tuple[int, Any]) -> Any:
        return find_key(pair[1])

    buckets = [Run() for _ in range(FAN_OUT)]
    distribute(pairs, lambda pair: mixed(hash(canonical(pair_key(pair))), level), buckets)
    bound.spilled()
    # In files again: merged lazily, all buckets would have their sets of keys in memory at a time.
    outcomes = [Run(distinct_items(bucket, pair_key, bound, level + 1)) for bucket in buckets]
    return heapq.merge(*outcomes, key=_position)


def _position(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def distribute(items: Iterable[Any], hash_of: Callable[[Any], int], buckets: list[Run]) -> None:
    """Append each item to the bucket of its hash, in order inside a bucket."""
    # Each bucket gets about one chunk of a piece.
    for piece in pieces(items, _CHUNK * FAN_OUT):
        parts: list[list[Any]] = [[] for _ in buckets]
        for item in piece:
            parts[hash_of(item) % len(buckets)].append(item)
        for bucket, part in zip(buckets, parts, strict=True):
            bucket.extend(part)


def mixed(value: int, level: int) -> int:
    """Return a number whose lower bits spread hashes at a level.

    Each level uses other bits of one number, which is mixed once more than `stable_hash`, since the keys of one
    partition agree in some bits of it. Hashes of pairs with the level would agree at all levels or at none.
    """
    return hash((value, 1, 1)) >> _BITS * level


Columns = Sequence[list[Any]]
"""Keys, their containers, and further columns."""


class Combining(Protocol):
    """Function that combines two containers of a key."""

    def __call__(self, left: Any, right: Any, /) -> Any: ...


def merged(batches: Iterable[Columns], combine: Combining, bound: Bound, level: int = 0) -> Iterator[tuple[Any, ...]]:
    """Combine batches of (keys, containers) by key, in order; yield (key, container).

    Further columns have the values of a key's first batch. Past the bound all groups in memory are written to files by
    the hash of the key, and each file is combined on its own. Keys are canonical and unique in a batch.
    """

    def take(groups: Groups, batch: Columns) -> None:
        groups.take(batch[0], batch[1:], combine)

    return merged_as(batches, take, combine, bound, level)


def merged_as(
    batches: Iterable[B], take: Callable[[Groups, B], None], combine: Combining, bound: Bound, level: int = 0
) -> Iterator[tuple[Any, ...]]:
    """Combine batches of any form by key, in order, as `merged` does; `take` adds a batch to the groups."""
    held = Groups()
    buckets: list[Run] = []
    with holding():
        for batch in batches:
            take(held, batch)
            # As in `distinct_items`, the deepest level ignores the bound.
            if level < DEEPEST and bound.exceeded():
                buckets = buckets or [Run() for _ in range(FAN_OUT)]
                distribute(held.drained(), lambda group: mixed(hash(group[0]), level), buckets)
                bound.spilled()
    if not buckets:
        yield from held.drained()
        return
    distribute(held.drained(), lambda group: mixed(hash(group[0]), level), buckets)
    for bucket in buckets:
        yield from merged(in_batches(bucket, combine), combine, bound, level + 1)


def partial_groups(
    items: Iterable[Any],
    collector: Collector[Any, Any, Any],
    bound: Bound,
    placed: Callable[[Any], object] | None = None,
) -> Iterator[dict[Any, Any]]:
    """Yield the groups of `items` as {key: container}; past the bound in several rounds.

    A round is emptied when the next one is requested, so that one round is in memory at a time.

    Args:
        items: of one task.
        collector: a collector that groups by a key.
        bound: of the memory.
        placed: returns the destination of the group of a key. It is called with the first key at once, so that a key
            that cannot be routed is refused before all items are read.
    """
    is_tried = False
    with holding():
        groups = collector.supplier()
        for piece in pieces(items, FEWER_THAN_COLLECTED):
            groups = collector.accumulated(groups, piece)
            # The variable would retain these items in memory while the groups of a round are sent.
            del piece
            if placed is not None and groups and not is_tried:
                is_tried = True
                placed(next(iter(groups)))
            if bound.exceeded():
                yield groups
                groups.clear()
                groups = collector.supplier()
                bound.spilled()
        yield groups


class Groups:
    """Groups as columns, which need no object for each group: positions of keys, containers, and further columns."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}
        self._columns: list[list[Any]] = []

    def take(self, keys: list[Any], columns: Sequence[list[Any]], combine: Combining) -> None:
        """Add containers and further columns, combining the containers of a key."""
        keys = canonical_all(keys)
        if self._places.keys().isdisjoint(keys):
            self._append(keys, columns)
            return
        places = list(map(self._places.get, keys))
        containers = self._columns[0]
        for place, container in zip(places, columns[0], strict=True):
            if place is not None:
                containers[place] = combine(containers[place], container)
        if None in places:
            is_new = [place is None for place in places]
            self._append(list(compress(keys, is_new)), [list(compress(column, is_new)) for column in columns])

    def accumulate(
        self,
        keys: list[Any],
        items: list[Any],
        collectors: Iterable[Collector[Any, Any, Any]],
        columns: Sequence[list[Any]] = (),
    ) -> None:
        """Accumulate each item with its collector, and add further columns for new keys."""
        # The next line needs columns, also before the first batch.
        self._append([], [[] for _ in (items, *columns)])
        places, (containers, *others), item = self._places, self._columns, None
        try:
            for number, (key, item, collector) in enumerate(zip(canonical_all(keys), items, collectors, strict=True)):
                place = places.get(key)
                if place is None:
                    place = places[key] = len(containers)
                    containers.append(collector.supplier())
                    for mine, column in zip(others, columns, strict=True):
                        mine.append(column[number])
                following = collector.accumulator(containers[place], item)
                # None: the accumulator changed the container in place.
                if following is not None:
                    containers[place] = following
        except Exception as error:
            failed_on(error, item)
            raise

    def _append(self, keys: list[Any], columns: Sequence[list[Any]]) -> None:
        self._places.update(zip(keys, count(len(self._places)), strict=False))
        self._columns += ([] for _ in columns[len(self._columns) :])
        for mine, column in zip(self._columns, columns, strict=True):
            mine += column

    def drained(self) -> Iterator[tuple[Any, ...]]:
        """Yield (key, container, ...) of each group, and clear the groups at the end."""
        yield from zip(self._places, *self._columns, strict=True)
        self._places, self._columns = {}, []


class GroupsOnDisk:
    """Groups of a processor that did not fit into memory: in files by the hash of the key, each combined on its own.

    Args:
        bound: the limit of the memory.
    """

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._buckets: list[Run] = []

    def is_due(self) -> bool:
        """Return whether the process exceeds its memory bound."""
        return self._bound.exceeded()

    def take(self, groups: dict[Any, Any]) -> None:
        """Write the groups to disk, and clear them."""
        self._buckets = self._buckets or [Run() for _ in range(FAN_OUT)]
        distribute(groups.items(), lambda group: mixed(hash(canonical(group[0])), 0), self._buckets)
        groups.clear()
        self._bound.spilled()

    def combined(self, groups: dict[Any, Any], combine: Combining) -> Iterator[tuple[Any, ...]]:
        """Return (key, container) of these groups and of the groups on disk; in any order if groups are on disk."""
        if not self._buckets:
            return iter(groups.items())
        self.take(groups)
        return chain.from_iterable(
            merged(in_batches(bucket, combine), combine, self._bound, level=1) for bucket in self._buckets
        )


def in_batches(groups: Iterable[tuple[Any, ...]], combine: Combining) -> Iterator[Columns]:
    """Yield (keys, containers, ...) of pieces of `groups`, with equal keys of a piece combined."""
    for piece in pieces(groups, _CHUNK):
        # `zip` makes an iterator for each group: 512 of them do not wake Python's garbage collector (CPython 3.11).
        keys, containers, *others = map(list, zip(*piece, strict=True))
        places: dict[Any, int] = {}
        for place, key in enumerate(canonical_all(keys)):
            first = places.setdefault(key, place)
            if first != place:
                containers[first] = combine(containers[first], containers[place])
        yield [list(places), *([column[place] for place in places.values()] for column in (containers, *others))]


FEWER_THAN_COLLECTED = 512
"""The number of items made and freed again before Python's garbage collector looks at them (700, CPython 3.11)."""


def top_items(items: Iterable[Any], count: int, key: Callable[[Any], Any] | None, reverse: bool) -> Iterator[Any]:
    """Return the first `count` of the sorted items, stable, with little more than `count` items in memory."""
    return iter(taken_first([], items, count, key, reverse))


def taken_first(
    held: list[Any], items: Iterable[Any], count: int, key: Callable[[Any], Any] | None, reverse: bool
) -> list[Any]:
    """Return the first `count` of the sorted items of `held` and `items`."""
    for chunk in pieces(items, max(FEWER_THAN_COLLECTED, count)) if count else ():
        # In most chunks few items are among the first: comparing costs less than sorting.
        if found := chunk if len(held) < count else before(chunk, held[-1], key, reverse):
            held += found
            sort(held, key, reverse)
            del held[count:]
    return held
