"""Vertices that map, filter and flatten item by item, also with a service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from operator import length_hint
from typing import Any

from more_itertools import chunked

from dstream.arguments import checked_function, kind_of, running_function
from dstream.core.block_processor import BlockProcessor, kinds_of, without_none
from dstream.core.suppliers import shown_call
from dstream.core.traversers import Traverser
from dstream.failures.attribution import chosen, each, failed_on
from dstream.spi.processor import Inbox, Processor
from dstream.spi.runtime import OpenedLater, Service
from dstream.spi.sink import Collections
from dstream.spi.suppliers import Address, ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from dstream.values.user_functions import shown_function

__all__ = [
    "Filtering",
    "FlatMapping",
    "Mapping",
    "filter",
    "filter_using",
    "flat_map",
    "flat_map_using",
    "map",
    "map_using",
    "noop",
]


def map(fn: Callable[[Any], Any]) -> Callable[[], Processor]:
    """Return a factory of processors that emit the result of a function for each item; None is left out.

    Raises:
        TypeError: it is no function.

    Example:
        >>> from dstream.core import processors
        >>> processors.map(str.upper)
        map(str.upper)
    """
    return _Maker(Mapping, checked_function(fn, "fn"))


def filter(predicate: Callable[[Any], object]) -> Callable[[], Processor]:
    """Return a factory of processors that emit the items which satisfy a predicate.

    Raises:
        TypeError: `predicate` is no function, or cannot return a truth value.

    Example:
        >>> from dstream.core import processors
        >>> processors.filter(bool)
        filter(bool)
    """
    return _Maker(Filtering, running_function(predicate, "predicate"))


def flat_map(fn: Callable[[Any], Traverser[Any] | Iterable[Any] | None]) -> Callable[[], Processor]:
    """Return a factory of processors that emit all results of a function for each item.

    Args:
        fn: returns a traverser, an iterable, or None for no items; a generator is read as the outbox
            takes its items.

    Raises:
        TypeError: it is no function.

    Example:
        >>> from dstream.core import processors
        >>> processors.flat_map(str.split)
        flat_map(str.split)
    """
    return _Maker(FlatMapping, checked_function(fn, "fn"))


def noop() -> Callable[[], Processor]:
    """Return a factory of processors that consume all items and emit none."""
    return _Noop


@dataclass(frozen=True, slots=True)
class _Maker:
    """A factory of processors of one kind for a function."""

    kind: Callable[[Any], Processor]
    fn: Callable[[Any], Any]

    def __call__(self) -> Processor:
        return self.kind(self.fn)

    def __repr__(self) -> str:
        kind = getattr(self.kind, "name", "")
        return f"{kind}({shown_function(self.fn)})"


class Mapping(BlockProcessor):
    """A processor that emits the result of a function for each item; None is left out."""

    name = "map"

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        super().__init__()
        self._fn = fn

    def made_of(self, ordinal: int, items: list[Any]) -> list[Any]:
        """Return the results of the function for the items."""
        return [made for made in each(self._fn, items) if made is not None]


class Filtering(BlockProcessor):
    """A processor that emits the items which satisfy a predicate."""

    name = "filter"

    def __init__(self, predicate: Callable[[Any], object]) -> None:
        super().__init__()
        self._predicate = predicate

    def made_of(self, ordinal: int, items: list[Any]) -> list[Any]:
        """Return the items that satisfy it."""
        return chosen(self._predicate, items)


class FlatMapping(BlockProcessor):
    """A processor that emits all results of a function for each item."""

    name = "flat_map"

    def __init__(self, fn: Callable[[Any], Iterable[Any] | None]) -> None:
        super().__init__()
        self._fn = fn

    def made_of(self, ordinal: int, items: list[Any]) -> Iterator[Any]:
        """Yield the results of the function for each item."""
        return chain.from_iterable(self._blocks(items))

    def _blocks(self, items: list[Any]) -> Iterator[list[Any]]:
        """Yield the results in lists; those of several items are read together."""
        for few in chunked(items, _FEW):
            made = each(self._fn, few)
            kinds = kinds_of(made)
            if type(None) in kinds:
                made = [() if several is None else several for several in made]
                kinds = kinds_of(made)
            left = iter(made)
            if kinds <= _KEPT:  # What fails later finds its item in them.
                for block in _of_lists(made):
                    _check_no_none(block, made, few)
                    yield block
                continue
            flat = chain.from_iterable(without_none(several) for several in left)
            while block := self._next(flat, left, few):
                yield block

    def _next(self, flat: Iterator[Any], left: Iterator[Any], items: Sequence[Any]) -> list[Any]:
        try:
            return list(islice(flat, _AT_ONCE))
        except Exception as error:  # The results of an item are read here, so they may fail here.
            # The hint of a list's iterator is exact: it is the number of results that have not been begun.
            failed_on(error, items[len(items) - length_hint(left) - 1])
            raise


def _of_lists(made: list[Any]) -> Iterator[list[Any]]:
    flat = chain.from_iterable(made)
    return iter(lambda: list(islice(flat, _AT_ONCE)), [])


def _check_no_none(block: list[Any], made: list[Any], items: Sequence[Any]) -> None:
    """Refuse None among the results; the failure is attributed to its item."""
    if type(None) in kinds_of(block):
        for item, several in zip(items, made, strict=True):
            try:
                without_none(several)
            except TypeError as error:
                failed_on(error, item)
                raise


_KEPT = frozenset((list, tuple))
_FEW = 64
_AT_ONCE = 1024


class _Noop(Processor):
    def process(self, ordinal: int, inbox: Inbox) -> None:
        inbox.drain()


def map_using(service: Service[Any], fn: Callable[[Any, Any], Any]) -> ProcessorMetaSupplier:
    """Return a supplier of processors that emit the result of a function for a service and each item, unless None.

    Args:
        service: is made where the processors run: once for all of the vertex in a process, or for each processor if it
            is not shared; destroyed when they have closed, also after a failure. `imap_service(name)` reads a map.
        fn: takes (service, item).

    Raises:
        TypeError: one of these is of another kind.

    Example:
        >>> from dstream import Service
        >>> from dstream.core import processors
        >>> processors.map_using(Service(dict), dict.get)
        map_using(Service(dict), dict.get)
    """
    return _Using("map_using", Mapping, _checked(service, "map_using"), checked_function(fn, "fn"))


def filter_using(service: Service[Any], predicate: Callable[[Any, Any], object]) -> ProcessorMetaSupplier:
    """Return a supplier of processors that emit the items which satisfy a predicate of a service and the item.

    Args:
        service: as `map_using` takes it.
        predicate: takes (service, item).

    Raises:
        TypeError: one of these is of another kind.

    Example:
        >>> from dstream import Service
        >>> from dstream.core import processors
        >>> processors.filter_using(Service(set), set.__contains__)
        filter_using(Service(set), set.__contains__)
    """
    checked = _checked(service, "filter_using")
    return _Using("filter_using", Filtering, checked, running_function(predicate, "predicate"))


def flat_map_using(service: Service[Any], fn: Callable[[Any, Any], Iterable[Any] | None]) -> ProcessorMetaSupplier:
    """Return a supplier of processors that emit all results of a function for a service and each item.

    Args:
        service: as `map_using` takes it.
        fn: takes (service, item); returns a traverser, an iterable, or None for no items.

    Raises:
        TypeError: one of these is of another kind.

    Example:
        >>> from dstream import Service
        >>> from dstream.core import processors
        >>> processors.flat_map_using(Service(dict), dict.get)
        flat_map_using(Service(dict), dict.get)
    """
    return _Using("flat_map_using", FlatMapping, _checked(service, "flat_map_using"), checked_function(fn, "fn"))


def _checked(service: Any, name: str) -> Service[Any]:
    if not isinstance(service, Service):
        raise TypeError(f"{name}: service must be a Service, not {kind_of(service)}")
    return service


@dataclass(frozen=True, slots=True, repr=False)
class _Using(ProcessorMetaSupplier):
    name: str
    kind: Callable[[Any], Processor]
    service: Service[Any]
    fn: Callable[[Any, Any], Any]

    def opened(self, context: Collections) -> ProcessorMetaSupplier:
        return replace(self, service=self.service.opened(context)) if isinstance(self.service, OpenedLater) else self

    def get(self, addresses: Sequence[Address]) -> Callable[[Address], ProcessorSupplier]:
        return partial(_made_for, self.kind, self.service, self.fn)

    def __repr__(self) -> str:
        return shown_call(self.name, self.service, self.fn)


def _made_for(kind: Any, service: Service[Any], fn: Any, address: Address) -> ProcessorSupplier:
    return _ServiceSupplier(kind, service, fn)


class _ServiceSupplier(ProcessorSupplier):
    """The owner of the services: it makes them, and destroys each of them at the end."""

    def __init__(self, kind: Callable[[Any], Processor], service: Service[Any], fn: Callable[[Any, Any], Any]) -> None:
        self._kind, self._service, self._fn = kind, service, fn
        self._made: list[Any] = []

    def init(self, context: SupplierContext) -> None:
        if self._service.shared:
            self._make()

    def _make(self) -> Any:
        self._made.append(self._service.create())
        return self._made[-1]

    def get(self, count: int) -> Sequence[Processor]:
        shared = self._service.shared
        return [self._kind(partial(self._fn, self._made[0] if shared else self._make())) for _ in range(count)]

    def get_one(self, number: int, count: int) -> Processor:
        (made,) = self.get(1)  # No service is made for a processor that runs in another task.
        return made

    def close(self, error: BaseException | None) -> None:
        # All are destroyed, also after one that fails; its failure is raised at the end.
        destroy, failures = self._service.destroy, []
        while self._made:
            made = self._made.pop(0)
            try:
                if destroy is not None:
                    destroy(made)
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
