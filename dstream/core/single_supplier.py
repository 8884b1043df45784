"""`force_total_parallelism_one`: a vertex that has one processor, whatever is said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dstream.core.end_supplier import EndSupplier
from dstream.spi.processor_suppliers import (
    Address,
    AnySupplier,
    MetaSupplierContext,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    meta_supplier,
)
from dstream.spi.sink import Collections

__all__ = ["force_total_parallelism_one"]


def force_total_parallelism_one(supplier: AnySupplier) -> ProcessorMetaSupplier:
    """Return what gives a vertex one processor in all; a vertex that asks for more of them is refused when it runs.

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
                "one in all: leave out local_parallelism, or say 1"
            )
        self.inner.init(context)

    def get(self, addresses: Sequence[Address]) -> Callable[[Address], ProcessorSupplier]:
        return self.inner.get(addresses)

    def close(self, error: BaseException | None) -> None:
        self.inner.close(error)

    def opened(self, context: Collections) -> ProcessorMetaSupplier:
        return _OfOne(self.inner.opened(context))
