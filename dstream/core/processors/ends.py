"""Vertices at the ends of a graph: sources, sinks, buffered writers, and the log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dstream.arguments import checked_function, is_sink, kind_of, optional_running, running_function
from dstream.base.logging import log_line
from dstream.core.suppliers import LibrarySupplier, Reading, Writing, shown_call
from dstream.spi import ProcessorSink, ProcessorSource, ProcessorStreamSource, Sink, Source, StreamSource
from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext, Watermark
from dstream.spi.suppliers import ProcessorMetaSupplier

__all__ = ["read", "write", "write_buffered", "write_logger"]


def read(source: Source[Any] | StreamSource[Any]) -> ProcessorMetaSupplier:
    """Return a supplier of processors that emit the items of a source. No edge leads to it.

    Args:
        source: any of `sources`, or one of your own. The vertex has one processor for each part into which the source
            is divided; unset, the source and the engine decide.

    Raises:
        TypeError: it is no source.

    Example:
        >>> from dstream.core import DAG, processors
        >>> from sources import text_files
        >>> DAG().new_vertex("lines", processors.read(text_files("books/*.txt")))
        Vertex('lines')
    """
    if isinstance(source, ProcessorSource | ProcessorStreamSource):
        raise TypeError(f"read: {source!r} is made of processors: dag.new_vertex(name, supplier) takes them")
    if not isinstance(source, Source | StreamSource):
        raise TypeError(f"read: source must be a source, such as text_files(...), not {kind_of(source)}")
    return Reading(source=source)


def write(sink: Sink[Any, Any]) -> ProcessorMetaSupplier:
    """Return a supplier of processors that write their items into a sink. No edge leads away from it.

    Args:
        sink: any of `reducers`, or one of your own.

    Raises:
        TypeError: it is no sink.

    Example:
        >>> from dstream.core import DAG, processors
        >>> from reducers import to_ilist
        >>> DAG().new_vertex("sink", processors.write(to_ilist("lines")))
        Vertex('sink')
    """
    if isinstance(sink, ProcessorSink):
        raise TypeError(f"write: {sink.label} is made of processors: dag.new_vertex(name, supplier) takes them")
    if not is_sink(sink):
        raise TypeError(f"write: sink must be a sink, such as to_imap(...), not {kind_of(sink)}")
    return Writing(sink=sink)


def write_buffered(
    create: Callable[[ProcessorContext], Any],
    receive: Callable[[Any, Any], object],
    flush: Callable[[Any], object],
    destroy: Callable[[Any], object] | None = None,
) -> ProcessorMetaSupplier:
    """Return a supplier of processors that write into their own buffers, and flush them after each block of items.

    **Guarantee**: at least once. Flushed items remain written, also if the job fails; `write(sink)` writes exactly
    once.

    Args:
        create: makes the buffer of a processor, where it runs; takes its context.
        receive: takes (buffer, item).
        flush: takes the buffer; may wait: each processor has its own thread.
        destroy: takes the buffer at the end, also after a failure.

    Raises:
        TypeError: one of these is no function.

    Example:
        >>> from dstream.core import processors
        >>> processors.write_buffered(lambda context: [], list.append, print)
        write_buffered(lambda, list.append, print)
    """
    functions = (
        checked_function(create, "create"),
        running_function(receive, "receive"),
        running_function(flush, "flush"),
    )
    create_all = partial(_Buffered, *functions, optional_running(destroy, "destroy"))
    return LibrarySupplier(create_all, shown_call("write_buffered", *functions, destroy=destroy))


def write_logger(to_string: Callable[[Any], str] = str) -> ProcessorMetaSupplier:
    """Return a supplier of a processor that logs all items and watermarks, at level INFO, under its vertex's name.

    Args:
        to_string: returns the string of an item.

    Raises:
        TypeError: it is no function.

    Example:
        >>> from dstream.core import processors
        >>> processors.write_logger(repr)
        write_logger(repr)
    """
    create = partial(_Logging, running_function(to_string, "to_string"))
    return LibrarySupplier(create, shown_call("write_logger", to_string), preferred_local_parallelism=1)


class _Buffered(Processor):
    # `flush` may wait for a server, and the other processors of the run must not wait with it.
    is_cooperative = False

    def __init__(self, create: Any, receive: Any, flush: Any, destroy: Any) -> None:
        self._create, self._receive, self._flush, self._destroy = create, receive, flush, destroy
        self._buffers: list[Any] = []

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        self._buffers = [self._create(context)]

    def process(self, ordinal: int, inbox: Inbox) -> None:
        (buffer,), receive = self._buffers, self._receive
        for item in inbox:
            receive(buffer, item)
        self._flush(buffer)

    def close(self, error: BaseException | None) -> None:
        # There is no buffer if `create` has failed.
        if self._buffers and self._destroy is not None:
            self._destroy(self._buffers.pop())


class _Logging(Processor):
    def __init__(self, to_string: Callable[[Any], str]) -> None:
        self._to_string = to_string

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        self._logger = context.logger

    def process(self, ordinal: int, inbox: Inbox) -> None:
        for item in inbox:
            log_line(self._logger, self._to_string(item))

    def try_process_watermark(self, watermark: Watermark) -> bool:
        log_line(self._logger, watermark)
        return True
