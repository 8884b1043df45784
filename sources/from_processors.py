"""`from_processor` and `stream_from_processor`: sources whose items the processors of a vertex emit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dstream.spi import ProcessorSource, ProcessorStreamSource

if TYPE_CHECKING:
    from dstream.spi.processor_suppliers import AnySupplier

__all__ = ["from_processor", "stream_from_processor"]


def from_processor(name: str, supplier: AnySupplier) -> ProcessorSource[Any]:
    """Read what processors emit to which nothing leads, such as a client of your own with a protocol.

    They run as a vertex of a graph does: each emits in `complete()` until that returns True, and several share the work
    by their `index` and `total_parallelism`. What they emit has no order. Where functions suffice, `source_from(...)`
    is shorter.

    **Parallelism**: one task for each processor: as many as there are cores, unless the supplier or, in a pipeline,
    `set_local_parallelism(n)` says otherwise; the local engine has one.
    **Guarantee**: every item once, in runs that succeed.
    **On re-run**: new processors emit again, also after a task was lost.

    Args:
        name: what the vertex, and in a pipeline its stage, is called.
        supplier: makes the processors: a class of processors, a function, a `ProcessorSupplier` or a
            `ProcessorMetaSupplier`.

    Raises:
        TypeError: `name` is no str, or `supplier` none.
        ValueError: `name` is empty.

    Example:
        >>> from dstream.core import AbstractProcessor, traverse
        >>> from sources import from_processor
        >>> class Numbers(AbstractProcessor):
        ...     def start(self, context):
        ...         self.numbers = traverse(range(context.index, 6, context.total_parallelism))
        ...
        ...     def complete(self):
        ...         return self.emit_from_traverser(self.numbers)
        >>> with connect(engine="local") as ctx:
        ...     sorted(ctx.read(from_processor("numbers", Numbers)))
        [0, 1, 2, 3, 4, 5]
    """
    return ProcessorSource.of(name, supplier)


def stream_from_processor(name: str, supplier: AnySupplier) -> ProcessorStreamSource[Any]:
    """Read what processors emit that go on for ever, in a pipeline; a job runs them epoch by epoch.

    In each epoch `complete()` has a slice of 50 ms, and at the end of the epoch a processor saves how far it has come,
    in `save_to_snapshot()`. What they emit has no timestamps, so that windows and what else needs time are refused
    behind them. Steps behind them hear of an end when all sources of the job have ended. Where functions suffice,
    `stream_source_from(...)` is shorter, and gives timestamps.

    **Parallelism**: one task for each processor, as `from_processor` says.
    **Guarantee**: exactly once, if they go on from what they have saved.
    **On re-run**: goes on where it stood; a new job begins anew.

    Args:
        name: what the vertex, and in a pipeline its stage, is called.
        supplier: makes the processors, as `from_processor` says.

    Raises:
        TypeError: `name` is no str, or `supplier` none.
        ValueError: `name` is empty.

    Example:
        >>> from sources import stream_from_processor
        >>> from dstream.core import AbstractProcessor
        >>> stream_from_processor("ticks", AbstractProcessor)
        stream_from_processor('ticks')
    """
    return ProcessorStreamSource.of(name, supplier)
