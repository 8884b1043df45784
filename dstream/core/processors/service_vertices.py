"""Vertices whose functions take a service beside the item."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dstream.core.processors.element_wise import Filtering, FlatMapping, Mapping
from dstream.core.processors.library_supplier import shown_call
from dstream.spi.processor import Processor
from dstream.spi.processor_suppliers import Address, ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from dstream.spi.service import OpenedLater, Service
from dstream.spi.sink import Collections
from dstream.stream.stream_arguments import function, kind_of, running

__all__ = ["filter_using", "flat_map_using", "map_using"]


def map_using(service: Service[Any], fn: Callable[[Any, Any], Any]) -> ProcessorMetaSupplier:
    """Return what makes processors that emit what a function makes of a service and each item, unless that is None.

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
    return _Using("map_using", Mapping, _checked(service, "map_using"), function(fn, "fn"))


def filter_using(service: Service[Any], predicate: Callable[[Any, Any], object]) -> ProcessorMetaSupplier:
    """Return what makes processors that emit the items which satisfy a predicate of a service and the item.

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
    return _Using("filter_using", Filtering, checked, running(predicate, "predicate"))


def flat_map_using(service: Service[Any], fn: Callable[[Any, Any], Iterable[Any] | None]) -> ProcessorMetaSupplier:
    """Return what makes processors that emit all that a function makes of a service and each item.

    Args:
        service: as `map_using` takes it.
        fn: takes (service, item); gives a traverser, anything that can be iterated, or None for no items.

    Raises:
        TypeError: one of these is of another kind.

    Example:
        >>> from dstream import Service
        >>> from dstream.core import processors
        >>> processors.flat_map_using(Service(dict), dict.get)
        flat_map_using(Service(dict), dict.get)
    """
    return _Using("flat_map_using", FlatMapping, _checked(service, "flat_map_using"), function(fn, "fn"))


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
    """Makes the services, and destroys each of them at the end."""

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
