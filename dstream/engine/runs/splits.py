"""Splits of sources as pieces: listed once for each run, pickled, and read by one task each.

Splits are in levels: a level leaves pieces out or adds its operations to those of its pieces.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from typing import Any

from dstream.base.by_value import SharedInProcess
from dstream.base.copies import Copier, are_plain, copied_dicts, copier_of, have_plain_parts
from dstream.base.pickling import dumps
from dstream.engine.physical.vertices import SourceSplits, Splits, operations_of
from dstream.engine.runs.item_use import ItemUse
from dstream.engine.tasks.stage import Piece
from dstream.errors import SerializationError
from dstream.failures import naming
from dstream.operators.rows.batches import Batch, Batcher, copies, dumps_items
from dstream.operators.rows.operations import Operation
from dstream.plan.captures import look
from dstream.plan.steps import Step
from dstream.plan.walk import inputs_first
from dstream.spi import Split
from dstream.spi.source import yields_its_items

__all__ = ["ListedSplits", "Pieces", "packed", "packed_split"]


class Pieces:
    """The pieces of sources, requested one by one, and cached."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._known: list[Piece] = []
        self._rest = iter(pieces)

    def __iter__(self) -> Iterator[Piece]:
        for index in count():
            # Checked at each step, since several iterators share the cache, and another one may be further.
            if index == len(self._known):
                self._known.extend(islice(self._rest, 1))
            if index == len(self._known):
                return
            yield self._known[index]


def packed_split(split: Split[Any], step: Step | str) -> bytes:
    """Pickle a split of a source.

    Raises:
        SerializationError: it contains an object that cannot be pickled; the message names the item or the variable.
    """
    try:
        return dumps(split)
    except Exception as error:
        for part in _parts(split):
            if isinstance(part, list | tuple):
                # It raises an error that names the item to blame, if there is one.
                dumps_items(list(part))
            for found in look(part, {}, sys.maxsize) if callable(part) else ():
                raise SerializationError(f"{step} cannot be sent to the workers: {found}") from error
        raise SerializationError(f"{step} cannot be sent to the workers: {error}") from error


def _parts(split: Split[Any]) -> Iterator[Any]:
    """Yield the attributes of a split."""
    yield from getattr(split, "__dict__", {}).values()
    yield from (getattr(split, name, None) for name in getattr(type(split), "__slots__", ()))


_LARGEST_SPLIT = 2**20
_ROWS_HELD = 32_768
_COPIED = 4_096
_FEW_COPIED = 256


class HeldSplit(SharedInProcess):
    """A split of the caller's items as of the start of the run, which are not pickled in this process.

    Args:
        split: has a list of copies of the items.
        copier: returns separate copies for each reader; None: the only reader gets the items.
        step: the source, as messages name it.
    """

    __slots__ = ("_copier", "_split", "_step")

    def __init__(self, split: Any, copier: Copier | None, step: Step) -> None:
        self._split: Any = split
        self._copier = copier
        self._step = step

    def read(self) -> Iterator[Any]:
        """Yield copies of the items, but for the immutable ones."""
        if self._copier is not None:
            return iter(self._copier(self._split.items))
        items, self._split = self._split.items, None
        return iter(items)

    def packed(self) -> bytes:
        """Pickle them for another process."""
        return packed_split(self._split, self._step)


class _LateCopies:
    """Copies parts of a list when they are read; an object that occurs twice is copied once, also across parts."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items
        self._known: dict[int, Any] | None = {}

    def __call__(self, part: list[Any]) -> list[Any]:
        found = copies(part)
        # Mostly the first part is the only one, so only later parts check for duplicates.
        if self._known and len(set(map(id, self._items))) == len(self._items):
            self._known = None
        known = self._known
        return (
            found
            if known is None
            else [known.setdefault(id(item), copy) for item, copy in zip(part, found, strict=True)]
        )


class SeenSplit(HeldSplit):
    """A split of the caller's items, parts of which are read by functions that cannot change or retain an item.

    Args:
        split: has a list of the items themselves.
        names: the names of the parts.
        step: the source, as messages name it.
    """

    __slots__ = ("_names",)

    def __init__(self, split: Any, names: frozenset[str], step: Step) -> None:
        super().__init__(split, copies, step)
        self._names = names

    def read(self) -> Iterator[Any]:
        """Yield the items, or copies where looking at a part may run a function of the user's."""
        items = self._split.items
        return iter(items) if have_plain_parts(items, self._names) else super().read()


def packed(piece: Piece) -> Piece:
    """Return a piece of a source as it travels to another process."""
    split = piece.split.packed() if isinstance(piece.split, HeldSplit) else piece.split
    return replace(piece, split=split, parts=tuple(map(packed, piece.parts)))


class ListedSplits:
    """The splits of one run of a graph.

    Args:
        counting: returns the operation that counts the items that tasks read; None if they are not counted.
        use: the use of the caller's items in this process, unless `packed` pickles them; None: they are pickled.
    """

    def __init__(self, counting: Callable[[], Operation | None], use: ItemUse | None = None) -> None:
        self._counting = counting
        self._use = use
        self._are_frozen = self._are_own = True
        self._listed: dict[int, Pieces] = {}
        self._whole: dict[int, tuple[Piece, ...]] = {}
        # Objects that are looked up by `id` must stay alive, so that the id is not reused.
        self._alive: list[object] = []

    @property
    def owns_results(self) -> bool:
        """Whether results so far share no mutable object with the caller."""
        use = self._use
        return use is not None and ((use.gives_items and self._are_frozen) or (use.is_pure and self._are_own))

    def pieces(self, splits: Splits) -> Iterator[Piece]:
        """Yield the pieces of splits, asking their sources for one after another."""
        for each in inputs_first(splits, Splits.inner):
            if (each.tasks or each.for_each) and id(each) not in self._whole:
                self._whole[id(each)] = self._all_of(each)
                self._alive.append(each)
        yield from self._whole[id(splits)] if id(splits) in self._whole else self._one_by_one(splits)

    def _all_of(self, splits: Splits) -> tuple[Piece, ...]:
        """Return the pieces of splits for which all of them must be known."""
        pieces = tuple(self._one_by_one(replace(splits, applied=(), tasks=None, for_each=None)))
        if splits.tasks is not None and len(pieces) != splits.tasks:
            pieces = tuple(_dealt(pieces, splits.tasks))
        if splits.for_each is not None:
            last = splits.for_each(pieces)
            pieces = tuple(_followed(each, last(number)) for number, each in enumerate(pieces))
        return tuple(_followed(each, *operations_of(splits.applied)) for each in pieces)

    def _one_by_one(self, splits: Splits) -> Iterator[Piece]:
        """Yield pieces through all levels of splits, each of which may leave some out, and adds its operations."""
        levels = [_Level(splits, iter(splits.parts))]
        while levels:
            part = next(levels[-1].parts, None)
            if part is None:
                levels.pop()
            elif isinstance(part, SourceSplits):
                levels.append(_Level(_AS_THEY_ARE, iter(self._listing(part))))
            elif isinstance(part, Splits):
                whole = self._whole.get(id(part))
                levels.append(_Level(part, iter(part.parts)) if whole is None else _Level(_AS_THEY_ARE, iter(whole)))
            elif (passed := _through(levels, part)) is not None:
                yield passed

    def _listing(self, source: SourceSplits) -> Pieces:
        """Return the pieces of a source, which is divided once."""
        if id(source) not in self._listed:
            counting = self._counting()
            operations = () if counting is None else (counting,)
            self._listed[id(source)] = Pieces(self._split(source, operations))
            self._alive.append(source)
        return self._listed[id(source)]

    def _split(self, source: SourceSplits, operations: tuple[Operation, ...]) -> Iterator[Piece]:
        node = source.node
        guards = tuple(guard.on_a_worker() for guard in node.guards)
        cut = _whole
        if node.source.in_caller and not guards:
            cut = _in_batches if self._use is None else partial(self._cut, self._use)
        else:
            self._are_frozen = self._are_own = False
        with naming(node.step):
            for split in node.source.splits(source.divisor):
                yield replace(_followed(cut(split, node.step), *operations), guards=guards)

    def _cut(self, use: ItemUse, split: Split[Any], step: Step) -> Piece:
        """Cut a split that contains its items, so that a task copies a part of them at a time."""
        items: Any = getattr(split, "items", None) if yields_its_items(split) else None
        if type(items) is not list:
            self._are_frozen &= type(items) is range
            self._are_own = False
            return _in_batches(split, step)
        if use.most is not None:
            items = items[: use.most]
        if use.copied == "when read":
            return self._parts_unseen(split, items, step)
        names = use.parts if use.copied == "if needed" else None
        cut, most = (self._parts_held, _ROWS_HELD) if names is None else (partial(self._parts_seen, names), _COPIED)
        starts = range(0, max(len(items), 1), most)
        parts = [part for start in starts for part in cut(split, items[start : start + most], step)]
        return parts[0] if len(parts) == 1 else Piece(None, tuple(parts), (), step)

    def _parts_unseen(self, split: Any, items: list[Any], step: Step) -> Piece:
        """Return a piece whose parts copy their items when they are read; the first part is small."""
        self._are_frozen = self._are_own = False
        starts = (0, *range(_FEW_COPIED, len(items), _COPIED))
        parts = (
            replace(split, items=items[start:stop]) for start, stop in zip(starts, (*starts[1:], None), strict=True)
        )
        copier = _LateCopies(items)
        return Piece(None, tuple(Piece(HeldSplit(each, copier, step), (), (), step) for each in parts), (), step)

    def _parts_seen(self, names: frozenset[str], split: Any, items: list[Any], step: Step) -> Iterator[Piece]:
        self._are_frozen = self._are_own = False
        yield Piece(SeenSplit(replace(split, items=items), names, step), (), (), step)

    def _parts_held(self, split: Any, items: list[Any], step: Step) -> Iterator[Piece]:
        copier, is_once = copier_of(items), self._use is not None and self._use.is_once
        self._are_frozen &= copier is list
        self._are_own &= is_once and copier is not None and self._share_nothing(copier, items)
        if copier is None:
            yield _in_batches(replace(split, items=items), step)
            return
        # A column may have all rows, but only some copies are in memory at once.
        most = _ROWS_HELD if copier is list else _COPIED
        for start in range(0, max(len(items), 1), most):
            part = replace(split, items=items if copier is list else copier(items[start : start + most]))
            yield Piece(HeldSplit(part, None if is_once else copier, step), (), (), step)

    def _share_nothing(self, copier: Copier, items: list[Any]) -> bool:
        """Return whether what read functions make of copies of items shares nothing that may be changed."""
        names = None if self._use is None else self._use.parts
        # An object of a class may hand on what others have, too, where a function looks at one of its attributes.
        return copier is copied_dicts or are_plain(items) or (names is not None and have_plain_parts(items, names))


@dataclass
class _Level:
    """Splits whose pieces are being read; `number` is the number of the next one."""

    splits: Splits
    parts: Iterator[Splits | SourceSplits | Piece]
    number: int = 0


_AS_THEY_ARE = Splits(())


def _through(levels: list[_Level], piece: Piece) -> Piece | None:
    """Apply the levels around a piece to it, innermost first; exhausted levels are left."""
    operations: list[Operation] = []
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        number, level.number = level.number, level.number + 1
        # A level is left with its last piece, so that its source is not asked for the next one.
        if level.number == level.splits.stop:
            del levels[depth:]
        if number < level.splits.start or number == level.splits.stop:
            return None
        operations += operations_of(level.splits.applied)
    return _followed(piece, *operations)


def _followed(piece: Piece, *operations: Operation) -> Piece:
    return replace(piece, operations=(*piece.operations, *operations)) if operations else piece


def _dealt(pieces: tuple[Piece, ...], tasks: int) -> Iterator[Piece]:
    """Yield a piece for each task, with consecutive pieces or none."""
    for task in range(tasks):
        first, last = (number * len(pieces) // tasks for number in (task, task + 1))
        yield Piece(None, pieces[first:last], (), None)


def _whole(split: Split[Any], step: Step) -> Piece:
    return Piece(packed_split(split, step), (), (), step)


def _in_batches(split: Split[Any], step: Step) -> Piece:
    """Cut a large split that contains its items, so that a worker unpickles a batch at a time."""
    # Pickled first, for the size: most splits are small, and not cut.
    whole = _whole(split, step)
    if whole.size() <= _LARGEST_SPLIT:
        return whole
    batches = Batcher().batches(split.read())
    return Piece(None, tuple(Piece(dumps(Batch(data)), (), (), step) for _, data in batches), (), step)
