"""Batches of items, and the base of collectors that take whole batches at the speed of C.

A batch is a list of a few hundred items. `kinds` finds the types of its items in one quick pass, so
that the usual case (all strings, all floats) needs no check per item. `Prepared` does for a whole
batch the work that needs no container, and `Batched` is the base of containers for which adding one
number at a time would be expensive.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar

from dstream.base.memory import pieces
from dstream.base.records import record
from dstream.failures.attribution import each, traced
from dstream.spi import Collector, identity

__all__ = ["Batched", "Prepared", "Waiting", "applied", "batches", "kinds", "prepared", "steps_together"]

T = TypeVar("T")

_BATCH = 512
"""Items that do not start the garbage collector (every 700 new objects, CPython 3.11), and fit into the cache."""


def batches(items: Iterable[T]) -> Iterable[list[T]]:
    """Split `items` into lists of a few hundred, fewer if they are large; the lists must not be changed."""
    if type(items) is list:
        if len(items) <= _BATCH:
            return (items,) if items else ()
        return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))
    return pieces(items, _BATCH)


def kinds(batch: Iterable[object]) -> set[type]:
    """Return the types of the items."""
    return set(map(type, batch))


def applied(fn: Callable[[Any], Any] | None, batch: list[Any]) -> list[Any]:
    """Return the results of `fn` for each item; no function leaves the items as they are."""
    return batch if fn is None else each(fn, batch)


@record(slots=False)
class Prepared:
    """An `accumulate_all` in two steps; a grouping runs the first step for all its keys at once.

    Attributes:
        prepare: returns one value for each item of a batch.
        add: adds a value to a container; returns the same as a collector's `accumulator`.
        add_all: adds values to a container and returns the container.
        add_each: adds each value to the container of its key, creating containers for new keys, if one loop can do so
            for these values faster than `add`; returns whether it did.
        add_known: adds each value to the container of its key, which is not checked yet, if all keys have a container;
            returns whether it did. A key that equals a checked key needs no check.
        changes: returns for each value the int that it adds to a container that is an int, as it is at first; None if
            these values add no ints.
    """

    prepare: Callable[[list[Any]], list[Any]]
    add: Callable[[Any, Any], Any]
    add_all: Callable[[Any, list[Any]], Any]
    add_each: Callable[[dict[Any, Any], list[Any], list[Any]], bool] | None = None
    add_known: Callable[[dict[Any, Any], list[Any], list[Any]], bool] | None = None
    changes: Callable[[Sequence[Any]], Sequence[int] | None] | None = None

    def __call__(self, container: Any, items: Iterable[Any]) -> Any:
        """Take both steps."""
        for batch in batches(items):
            container = self.add_all(container, self.prepare(batch))
        return container


def prepared(collector: Collector[Any, Any, Any]) -> Prepared:
    """Return the two steps of `collector`; for most the first does nothing."""
    if isinstance(collector.accumulate_all, Prepared):
        return collector.accumulate_all
    if collector.supplier is list and collector.accumulator is list.append:
        return Prepared(identity, list.append, collector.accumulated, _append_each, _append_known)
    known = collector.on_columns()
    are_counted = known is not None and known.finds == "count"
    return Prepared(identity, collector.accumulator, collector.accumulated, changes=_ones if are_counted else None)


def _ones(values: Sequence[Any]) -> list[int]:
    """Return 1 for each value, which counts it."""
    return [1] * len(values)


def _append_each(groups: dict[Any, Any], keys: list[Any], values: list[Any]) -> bool:
    """Append each value to the list of its key."""
    # `map` looks each key up at its turn, so a key that was added before is found.
    for key, value, values_of_key in zip(keys, values, map(groups.get, keys), strict=True):
        if values_of_key is None:
            groups[key] = [value]
        else:
            values_of_key.append(value)
    return True


def _append_known(groups: dict[Any, Any], keys: list[Any], values: list[Any]) -> bool:
    """Append each value to the list of its key, if all keys have one."""
    try:
        lists: list[Any] = list(map(groups.get, keys))
    except Exception:  # A key has no hash, or a hash that fails: the check of the keys raises the error.
        return False
    # Each list has an item, so that only a missing one is false.
    if not all(lists):
        return False
    for values_of_key, value in zip(lists, values, strict=True):
        values_of_key.append(value)
    return True


@record(slots=False)
class _Together(Prepared):
    """The two steps of several collectors: the value of an item is the list of their values.

    Attributes:
        parts: the collectors.
    """

    parts: tuple[Collector[Any, Any, Any], ...] = ()

    def __call__(self, containers: list[Any], items: Iterable[Any]) -> list[Any]:
        # In lists, which every collector reads: only one of them could read an iterator.
        for batch in batches(items):
            pairs = zip(self.parts, containers, strict=True)
            containers[:] = [part.accumulated(container, batch) for part, container in pairs]
        return containers


def steps_together(parts: tuple[Collector[Any, Any, Any], ...]) -> Prepared:
    """Return the two steps of several collectors, whose containers are in a list."""
    steps = tuple(map(prepared, parts))
    add_each = partial(_add_changes, steps) if all(each.changes is not None for each in steps) else None
    return _Together(
        partial(_prepare_each, steps),
        partial(_add_values, steps),
        partial(_add_all_values, steps),
        add_each,
        parts=parts,
    )


def _prepare_each(steps: tuple[Prepared, ...], batch: list[Any]) -> list[Any]:
    return list(zip(*(each.prepare(batch) for each in steps), strict=True)) if steps else [()] * len(batch)


def _add_values(steps: tuple[Prepared, ...], containers: list[Any], values: tuple[Any, ...]) -> None:
    for index, (part, value) in enumerate(zip(steps, values, strict=True)):
        following = part.add(containers[index], value)
        if following is not None:
            containers[index] = following


def _add_all_values(steps: tuple[Prepared, ...], containers: list[Any], values: list[Any]) -> list[Any]:
    for index, (part, column) in enumerate(zip(steps, zip(*values, strict=True), strict=False)):
        try:
            containers[index] = part.add_all(containers[index], list(column))
        except Exception as error:
            traced(error, column, values)
            raise
    return containers


def _add_changes(steps: tuple[Prepared, ...], groups: dict[Any, list[Any]], keys: list[Any], values: list[Any]) -> bool:
    """Add values to the containers of their keys, where each adds an int to each container; return whether they do."""
    columns = zip(*values, strict=True)
    changes = [each.changes(column) for each, column in zip(steps, columns, strict=False) if each.changes is not None]
    if not changes or None in changes:
        return False
    for key, value, change in zip(keys, values, zip(*changes, strict=True), strict=True):
        containers = groups.get(key)
        if containers is None:
            groups[key] = list(change)
            continue
        try:
            containers[:] = map(operator.add, containers, change)
        except TypeError:  # A container is no longer an int, after another number: none of them has changed.
            _add_values(steps, containers, value)
    return True


_PENDING = 32


class Batched(ABC, Generic[T]):
    """A container that buffers a few values and adds them together.

    A grouping has one container for each key, so at most 32 values are buffered.
    """

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: list[T] = []

    def add(self, value: T) -> None:
        """Add one value."""
        pending = self._pending
        pending.append(value)
        if len(pending) >= _PENDING:
            self.settle()

    def add_all(self, values: Iterable[T]) -> Self:
        """Take a batch of values in, and return this container."""
        self._pending += values
        if len(self._pending) >= _PENDING:
            self.settle()
        return self

    def merge(self, other: Self) -> None:
        """Add the contents of `other`, in no particular order."""
        self._take_from(other)
        self.add_all(other._pending)

    def settle(self) -> None:
        """Take in the values that are buffered."""
        if self._pending:
            waiting, self._pending = self._pending, []
            self._take(waiting)

    @classmethod
    def of(cls, values: list[T]) -> Self:
        """Return a container of `values`, which may retain the list."""
        container = cls()
        container._pending = values
        return container

    @abstractmethod
    def _take(self, values: list[T]) -> None:
        """Take in the values that have waited."""

    @abstractmethod
    def _take_from(self, other: Any) -> None:
        """Add the contents of `other`, of the same class, except its buffered values."""


@record(slots=False)
class Waiting(Generic[T]):
    """Containers that are lists for the first few values, and a `Batched` afterwards.

    A grouping creates one container for each key, most of which remain small. A list is created, grown, sent
    and read several times faster than an object of a Python class.

    Attributes:
        kind: the class that replaces a full list.
    """

    kind: type[Batched[T]]

    supplier: ClassVar[type] = list

    def steps(self, prepare: Callable[[list[Any]], list[Any]]) -> Prepared:
        """Return the steps that add batches to containers; `prepare` returns the value of each item of a batch."""
        return Prepared(prepare, self.add, self.add_all)

    def add(self, container: Any, value: T) -> Any:
        """Add one value; return the container."""
        if type(container) is not list:
            container.add(value)
            return container
        container.append(value)
        return container if len(container) < _PENDING else self.kind.of(container)

    def add_all(self, container: Any, values: Iterable[T]) -> Any:
        """Take values in; return the container."""
        if type(container) is not list:
            return container.add_all(values)
        container += values
        return container if len(container) < _PENDING else self.kind.of(container)

    def merge(self, left: Any, right: Any) -> Any:
        """Return a container with the values of both, in no particular order."""
        if type(right) is list:
            return self.add_all(left, right)
        if type(left) is list:
            return right.add_all(left)
        left.merge(right)
        return left

    def finished(self, finisher: Callable[[Any], Any], container: Any) -> Any:
        """Return the result of `finisher` for the `Batched` that a container is, or becomes."""
        return finisher(self.kind.of(container) if type(container) is list else container)
