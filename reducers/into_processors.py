"""`to_processor`: a sink whose items the processors of a vertex take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dstream.spi import ProcessorSink

if TYPE_CHECKING:
    from dstream.spi.processor_suppliers import AnySupplier

__all__ = ["to_processor"]


def to_processor(name: str, supplier: AnySupplier) -> ProcessorSink:
    """Give the items to processors of your own that emit none, such as a client with a protocol.

    They run as a vertex of a graph does: items come in blocks, to any of them, `complete()` is called behind the last
    item, and `close(error)` at the end. In a job without an end they save what they need to go on, epoch by epoch. What
    they emit goes nowhere. Where functions suffice, `sink_from(...)` is shorter, and may be exactly once.

    **Parallelism**: one task for each processor: as many as there are cores, unless the supplier or, in a pipeline,
    `set_local_parallelism(n)` says otherwise; the local engine has one.
    **Guarantee**: at least once: a task that runs again gives its items again.
    **On re-run**: all items are given again.

    Args:
        name: what the vertex, and in a pipeline its stage, is called.
        supplier: makes the processors: a class of processors, a function, a `ProcessorSupplier` or a
            `ProcessorMetaSupplier`.

    Raises:
        TypeError: `name` is no str, or `supplier` none.
        ValueError: `name` is empty.

    Example:
        >>> from dstream.core import AbstractProcessor
        >>> from reducers import to_processor
        >>> class Printing(AbstractProcessor):
        ...     def try_process(self, ordinal, item):
        ...         print("got", item)
        ...         return True
        >>> with connect(engine="local") as ctx:
        ...     ctx.stream([1, 2]).collect(to_processor("printing", Printing))
        got 1
        got 2
    """
    return ProcessorSink.of(name, supplier)
