"""Suppliers that log what goes through the processors of another one, at level INFO, under the name of its vertex.

Watermarks are always logged. The processors see no difference. What `read` emits, and what `write` takes, is logged in
the process that runs the job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from dstream.core.end_supplier import EndSupplier
from dstream.core.processors.peeking_processor import Peek, PeekingProcessor
from dstream.spi.processor import Processor
from dstream.spi.processor_suppliers import (
    Address,
    AnySupplier,
    MetaSupplierContext,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    SupplierContext,
    checked_count,
    meta_supplier,
)
from dstream.spi.sink import Collections
from dstream.stream.stream_arguments import function, running

__all__ = ["peek_input", "peek_output", "peek_snapshot"]

ToString = Callable[[Any], str]
ShouldLog = Callable[[Any], object]


def peek_input(
    supplier: AnySupplier, to_string: ToString = str, should_log: ShouldLog | None = None
) -> ProcessorMetaSupplier:
    """Return what makes the same processors, and logs the items that they take, with the ordinal of the edge.

    Args:
        supplier: makes processors, in any way that a vertex takes.
        to_string: gives the text of an item.
        should_log: says which items are logged; None: all.

    Raises:
        TypeError: one of these is of another kind.
        UnsupportedError: it reads a source, and takes no items.

    Example:
        >>> from dstream.core import processors
        >>> processors.peek_input(processors.map(str.upper))
        peek_input(map(str.upper))
    """
    return _peeking("input", supplier, to_string, should_log)


def peek_output(
    supplier: AnySupplier, to_string: ToString = str, should_log: ShouldLog | None = None
) -> ProcessorMetaSupplier:
    """Return what makes the same processors, and logs the items that they emit, once for each edge they go to.

    Args:
        supplier: makes processors, in any way that a vertex takes.
        to_string: gives the text of an item.
        should_log: says which items are logged; None: all.

    Raises:
        TypeError: one of these is of another kind.
        UnsupportedError: it writes to a sink, and emits no items.

    Example:
        >>> from dstream.core import processors
        >>> processors.peek_output(processors.map(str.upper), should_log=str.isalpha)
        peek_output(map(str.upper))
    """
    return _peeking("output", supplier, to_string, should_log)


def peek_snapshot(
    supplier: AnySupplier, to_string: ToString = str, should_log: ShouldLog | None = None
) -> ProcessorMetaSupplier:
    """Return what makes the same processors, and logs what they save.

    Args:
        supplier: makes processors, in any way that a vertex takes.
        to_string: gives the text of a pair (key, value).
        should_log: takes such a pair, and says which ones are logged; None: all.

    Raises:
        TypeError: one of these is of another kind.
        UnsupportedError: it reads a source or writes to a sink, and has no snapshot.

    Example:
        >>> from dstream.core import processors
        >>> processors.peek_snapshot(processors.noop()).preferred_local_parallelism
        -1
    """
    return _peeking("snapshot", supplier, to_string, should_log)


def _peeking(
    what: Literal["input", "output", "snapshot"], supplier: AnySupplier, to_string: Any, should_log: Any
) -> ProcessorMetaSupplier:
    inner = meta_supplier(supplier)
    peek = Peek(
        what, function(to_string, "to_string"), None if should_log is None else running(should_log, "should_log")
    )
    if isinstance(inner, EndSupplier):
        return inner.peeked(peek)
    shown = f"peek_{what}({getattr(supplier, '__qualname__', repr(supplier))})"
    return _PeekingSupplier(inner, peek, shown, inner.preferred_local_parallelism, inner.inputs)


@dataclass(frozen=True, slots=True, repr=False)
class _PeekingSupplier(ProcessorMetaSupplier):
    inner: ProcessorMetaSupplier
    peek: Peek
    shown: str
    preferred_local_parallelism: int
    inputs: int | None

    def init(self, context: MetaSupplierContext) -> None:
        self.inner.init(context)

    def get(self, addresses: Sequence[Address]) -> Callable[[Address], ProcessorSupplier]:
        return partial(_peeking_at, self.inner.get(addresses), self.peek)

    def close(self, error: BaseException | None) -> None:
        self.inner.close(error)

    def opened(self, context: Collections) -> ProcessorMetaSupplier:
        return replace(self, inner=self.inner.opened(context))

    def __repr__(self) -> str:
        return self.shown


def _peeking_at(get: Callable[[Address], ProcessorSupplier], peek: Peek, address: Address) -> ProcessorSupplier:
    return _Peeking(get(address), peek)


class _Peeking(ProcessorSupplier):
    def __init__(self, inner: ProcessorSupplier, peek: Peek) -> None:
        self._inner, self._peek = inner, peek

    def init(self, context: SupplierContext) -> None:
        self._inner.init(context)

    def get(self, count: int) -> Sequence[Processor]:
        return [PeekingProcessor(each, self._peek) for each in checked_count(self._inner.get(count), count)]

    def get_one(self, number: int, count: int) -> Processor:
        return PeekingProcessor(self._inner.get_one(number, count), self._peek)

    def close(self, error: BaseException | None) -> None:
        self._inner.close(error)
