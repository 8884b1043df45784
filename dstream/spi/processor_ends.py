"""Sources and sinks made of processors.

In a plan, a graph of one vertex replaces it, so that its processors run as in a graph of the user's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from dstream.base.records import record
from dstream.errors import UnsupportedError

if TYPE_CHECKING:
    from dstream.spi.sink import Collections, Receipt
    from dstream.spi.suppliers import AnySupplier, ProcessorMetaSupplier

__all__ = ["Nowhere", "ProcessorSink", "ProcessorSource", "ProcessorStreamSource"]


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class _NamedProcessors:
    """Processors that are alike, under the name of their vertex."""

    name: str
    supplier: ProcessorMetaSupplier

    @classmethod
    def of(cls, name: str, supplier: AnySupplier) -> Self:
        """Return the processors of a supplier of any kind, under a name.

        Raises:
            TypeError: the name is no str, or the supplier none.
            ValueError: the name is empty.
        """
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        if not name.strip():
            raise ValueError("name must not be empty")
        from dstream.spi.suppliers import meta_supplier  # imported on use: few programs have processors

        try:
            return cls(name, meta_supplier(supplier))
        except TypeError as error:
            raise TypeError(f"supplier: {error}") from None

    def opened(self, context: Collections) -> Self:
        """Return the processors with a supplier that has the collections of a context's storage which it names."""
        return replace(self, supplier=self.supplier.opened(context))


@dataclass(frozen=True, slots=True, repr=False)
class ProcessorSource(_NamedProcessors, Generic[T_co]):
    """Items that processors emit until all of them are done."""

    def __repr__(self) -> str:
        return f"from_processor({self.name!r})"


@dataclass(frozen=True, slots=True, repr=False)
class ProcessorStreamSource(_NamedProcessors, Generic[T_co]):
    """Items that processors emit while a job runs: each epoch is a slice of time."""

    def __repr__(self) -> str:
        return f"stream_from_processor({self.name!r})"


@record
class Nowhere:
    """A sink, its target, the write job of one epoch, and the writer, none of which stores anything.

    Attributes:
        label: the name in pictures.
    """

    label: str = "nowhere"

    @property
    def collector(self) -> None:
        """None."""
        return None

    @property
    def job(self) -> None:
        """None."""
        return None

    @property
    def is_done(self) -> bool:
        """Return False: no job has written."""
        return False

    def open(self, context: Collections) -> Self:
        """Return the sink itself."""
        return self

    def begin(self, job: str | None, epoch: int = 1) -> Self:
        """Return the sink itself."""
        return self

    def result(self) -> None:
        """Return None."""

    @property
    def writer(self) -> Self:
        """The sink itself."""
        return self

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Consume the items; yield no receipts."""
        deque(items, maxlen=0)
        # Makes this a generator, which reads nothing before the first receipt is requested.
        yield from ()

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, repr=False)
class ProcessorSink(_NamedProcessors):
    """Processors that take items and emit none. A plan runs them before a `Nowhere`, which replaces it."""

    @property
    def label(self) -> str:
        """The call that made it."""
        return f"to_processor({self.name!r})"

    @property
    def collector(self) -> None:
        """None."""
        return None

    @property
    def job(self) -> None:
        """None."""
        return None

    def open(self, context: Collections) -> Nowhere:
        """Refuse: the processors are in no plan.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"{self.label} takes the items of stream.collect(...) and of stage.write_to(...), and none that came too "
            "late or failed in a job: sink_from(...) takes these; in a graph, dag.new_vertex(name, supplier) takes the "
            "processors themselves"
        )

    def __repr__(self) -> str:
        return self.label
