"""Vertices at the end of a graph that write by themselves: into a buffer, and to the log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dstream.core.processors.library_supplier import LibrarySupplier, shown_call
from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext, Watermark
from dstream.spi.processor_suppliers import ProcessorMetaSupplier
from dstream.stream.stream_arguments import function, optional_function
from dstream.values.log_lines import tell

__all__ = ["write_buffered", "write_logger"]


def write_buffered(
    create: Callable[[ProcessorContext], Any],
    receive: Callable[[Any, Any], object],
    flush: Callable[[Any], object],
    destroy: Callable[[Any], object] | None = None,
) -> ProcessorMetaSupplier:
    """Return what makes processors that write into a buffer of their own, and flush it behind each block of items.

    **Guarantee**: at least once. What was flushed stays, also if the job fails; `write(sink)` writes exactly once.

    Args:
        create: makes the buffer of a processor, where it runs; takes its context.
        receive: takes (buffer, item).
        flush: takes the buffer; may wait: a processor has a thread of its own.
        destroy: takes the buffer at the end, also after a failure.

    Raises:
        TypeError: one of these is no function.

    Example:
        >>> from dstream.core import processors
        >>> processors.write_buffered(lambda context: [], list.append, print)
        write_buffered(lambda, list.append, print)
    """
    given = (function(create, "create"), function(receive, "receive"), function(flush, "flush"))
    create_all = partial(_Buffered, *given, optional_function(destroy, "destroy"))
    return LibrarySupplier(create_all, shown_call("write_buffered", *given, destroy=destroy))


def write_logger(to_string: Callable[[Any], str] = str) -> ProcessorMetaSupplier:
    """Return what makes a processor that logs all items and watermarks, at level INFO, under the name of its vertex.

    Args:
        to_string: gives the text of an item.

    Raises:
        TypeError: it is no function.

    Example:
        >>> from dstream.core import processors
        >>> processors.write_logger(repr)
        write_logger(repr)
    """
    create = partial(_Logging, function(to_string, "to_string"))
    return LibrarySupplier(create, shown_call("write_logger", to_string), preferred_local_parallelism=1)


class _Buffered(Processor):
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
        if self._buffers and self._destroy is not None:
            self._destroy(self._buffers.pop())


class _Logging(Processor):
    def __init__(self, to_string: Callable[[Any], str]) -> None:
        self._to_string = to_string

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        self._logger = context.logger

    def process(self, ordinal: int, inbox: Inbox) -> None:
        for item in inbox:
            tell(self._logger, self._to_string(item))

    def try_process_watermark(self, watermark: Watermark) -> bool:
        tell(self._logger, watermark)
        return True
