"""Suppliers of processors: of generators, of sources and sinks, of the library, and of one processor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import length_hint
from typing import TYPE_CHECKING, Any, Self

from dstream.arguments import checked_function, kind_of
from dstream.core.block_processor import BlockProcessor, without_none
from dstream.errors import UnsupportedError
from dstream.failures.attribution import failed_on
from dstream.spi import AggregateOperation
from dstream.spi.processor import Processor
from dstream.spi.sink import Collections
from dstream.spi.suppliers import (
    Address,
    AnySupplier,
    GroupsByKey,
    MetaSupplierContext,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    SameEverywhere,
    TwoStages,
    meta_supplier,
)
from dstream.values.user_functions import shown_function

if TYPE_CHECKING:
    from dstream.core.processors.peeks import Peek

__all__ = [
    "EndSupplier",
    "LibrarySupplier",
    "Reading",
    "Writing",
    "force_total_parallelism_one",
    "processor_of",
    "shown_call",
]


@dataclass(frozen=True, slots=True, repr=False)
class EndSupplier(ProcessorMetaSupplier):
    """A source or a sink of a graph's plan, which has no processors.

    Attributes:
        peeks: which of the items that pass are logged, and how.
        preferred_local_parallelism: into how many parts the vertex is divided unless it sets that.
        is_only_one: the vertex must not set another number.
    """

    peeks: tuple[Peek, ...] = ()
    preferred_local_parallelism: int = -1
    is_only_one: bool = False

    passes_items = ""
    """Which of its items a peek may observe: "input" or "output"."""
    call = ""

    def peeked(self, peek: Peek) -> Self:
        """Return this supplier with logging of the items that pass.

        Raises:
            UnsupportedError: nothing of that kind does.
        """
        # Such an end has no processor: a peek can observe only the items that pass it.
        if peek.what != self.passes_items:
            raise UnsupportedError(
                f"peek_{peek.what}: {self!r} has no {peek.what} in a graph; peek_{self.passes_items}() logs its items"
            )
        return replace(self, peeks=(*self.peeks, peek))

    def only_one(self) -> Self:
        """Return this supplier with one processor."""
        return replace(self, preferred_local_parallelism=1, is_only_one=True)

    def parallelism(self, vertex: str, wanted: int) -> int:
        """Return the number of parts of a vertex; -1: neither the vertex nor its supplier has one.

        Raises:
            ValueError: `wanted` is more than one, and the supplier allows only one.
        """
        if self.is_only_one and wanted not in (-1, 1):
            raise ValueError(
                f"vertex {vertex!r} is to have {wanted} processors, and its supplier allows one in all: leave out "
                "local_parallelism, or set 1"
            )
        return self.preferred_local_parallelism if wanted == -1 else wanted

    def get(self, addresses: Sequence[Address]) -> Callable[[Address], ProcessorSupplier]:
        """Refuse: the job reads and writes."""
        raise UnsupportedError(
            f"processors.{self.call}() stands at the {'beginning' if self.call == 'read' else 'end'} of a graph that a "
            "job runs, and makes no processors of its own: give it to dag.new_vertex(...) as it is"
        )

    def __repr__(self) -> str:
        return (
            f"peek_{self.passes_items}(" * len(self.peeks) + f"{self.call}({self._arguments()})" + ")" * len(self.peeks)
        )

    def _arguments(self) -> str:
        """Return the arguments of the call as their user reads them."""
        return "..."


@dataclass(frozen=True, slots=True, repr=False)
class Reading(EndSupplier):
    """A vertex that reads a source."""

    source: Any = None

    passes_items = "output"
    call = "read"


@dataclass(frozen=True, slots=True, repr=False)
class Writing(EndSupplier):
    """A vertex that writes into a sink."""

    sink: Any = None

    passes_items = "input"
    call = "write"

    def _arguments(self) -> str:
        return str(self.sink.label)


def force_total_parallelism_one(supplier: AnySupplier) -> ProcessorMetaSupplier:
    """Return a supplier of one processor in all; a vertex with a higher parallelism is refused when it runs.

    Args:
        supplier: makes the processor.

    Raises:
        TypeError: it is no supplier.

    Example:
        >>> from dstream.core import DAG, force_total_parallelism_one, processors
        >>> dag = DAG()
        >>> only = dag.new_vertex("only", force_total_parallelism_one(processors.noop()))
        >>> only.supplier.preferred_local_parallelism
        1
    """
    inner = meta_supplier(supplier)
    return inner.only_one() if isinstance(inner, EndSupplier) else _OfOne(inner)


@dataclass(slots=True)
class _OfOne(ProcessorMetaSupplier):
    inner: ProcessorMetaSupplier
    preferred_local_parallelism: int = 1

    @property
    def inputs(self) -> int | None:  # type: ignore[override]
        return self.inner.inputs

    def init(self, context: MetaSupplierContext) -> None:
        if context.total_parallelism != 1:
            raise ValueError(
                f"vertex {context.vertex!r} is to have {context.total_parallelism} processors, and its supplier allows "
                "one in all: leave out local_parallelism, or set 1"
            )
        self.inner.init(context)

    def get(self, addresses: Sequence[Address]) -> Callable[[Address], ProcessorSupplier]:
        return self.inner.get(addresses)

    def close(self, error: BaseException | None) -> None:
        self.inner.close(error)

    def opened(self, context: Collections) -> ProcessorMetaSupplier:
        return _OfOne(self.inner.opened(context))


@dataclass(frozen=True, slots=True, repr=False)
class LibrarySupplier(ProcessorMetaSupplier):
    """A supplier of the processors that a function makes, shown as the call that made it.

    Attributes:
        create: makes a processor; it travels pickled.
        shown: the call.
        preferred_local_parallelism: how many processors there are unless the vertex sets that.
        two_stages: how others may do a part of their work.
        groups: their output, if these are results by key.
        inputs: how many inbound edges they take; None: any number.
    """

    create: Callable[[], Processor]
    shown: str
    preferred_local_parallelism: int = -1
    two_stages: TwoStages | None = None
    groups: GroupsByKey | None = None
    inputs: int | None = None

    def get(self, addresses: Sequence[Address]) -> Callable[[Address], ProcessorSupplier]:
        """Return a function from each address to a supplier of these processors."""
        return SameEverywhere(_LibraryProcessors(self.create, self.two_stages, self.groups))

    def __repr__(self) -> str:
        return self.shown


@dataclass(slots=True)
class _LibraryProcessors(ProcessorSupplier):
    create: Callable[[], Processor]
    two_stages: TwoStages | None
    groups: GroupsByKey | None

    def get(self, count: int) -> Sequence[Processor]:
        return [self.create() for _ in range(count)]

    def get_one(self, number: int, count: int) -> Processor:
        return self.create()


def shown_call(name: str, *given: Any, **named: Any) -> str:
    """Return a call as its user would write it; arguments that are None are left out."""
    parts = [_shown(each) for each in given if each is not None]
    parts += [f"{key}={_shown(value)}" for key, value in named.items() if value is not None]
    return f"{name}({', '.join(parts)})"


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return shown_function(value) if callable(value) and not isinstance(value, AggregateOperation) else repr(value)


def processor_of(fn: Callable[[int, Iterator[Any]], Iterable[Any]]) -> Callable[[], Processor]:
    """Return a factory of processors that emit the items of a generator function.

    It is called for each block of items that has arrived, of any size, and has no state between blocks. A processor
    with a state extends `AbstractProcessor`, which can also save it.

    Args:
        fn: takes the ordinal of the edge, and an iterator of items; those that it leaves are passed in another call.

    Raises:
        TypeError: it is no function.

    Example:
        >>> from dstream.core import processor_of
        >>> def both(ordinal, items):
        ...     for item in items:
        ...         yield item
        ...         yield -item
        >>> processor_of(both)
        processor_of(both)
    """
    return _MakerOfGenerators(checked_function(fn, "fn"))


@dataclass(frozen=True, slots=True)
class _MakerOfGenerators:
    fn: Callable[[int, Iterator[Any]], Iterable[Any]]

    def __call__(self) -> Processor:
        return _OfGenerator(self.fn)

    def __repr__(self) -> str:
        return f"processor_of({shown_function(self.fn)})"


class _OfGenerator(BlockProcessor):
    def __init__(self, fn: Callable[[int, Iterator[Any]], Iterable[Any]]) -> None:
        super().__init__()
        self._fn = fn

    def made_of(self, ordinal: int, items: list[Any]) -> Iterator[Any]:
        """Call the function until it has taken all items: one that stops early is called again with the others."""
        pending = iter(items)
        # The hint of a list's iterator is exact, so it shows which item was taken last, without a count of our own.
        while left := length_hint(pending):
            try:
                made = self._fn(ordinal, pending)
                if not isinstance(made, Iterable):
                    raise TypeError(f"{shown_function(self._fn)} must yield items, and gave {kind_of(made)}")
                yield from without_none(made)
            except Exception as error:
                if taken := len(items) - length_hint(pending):
                    failed_on(error, items[taken - 1])
                raise
            if length_hint(pending) == left:
                raise RuntimeError(f"{shown_function(self._fn)} took none of the items that it was given")
