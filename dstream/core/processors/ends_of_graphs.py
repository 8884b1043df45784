"""Vertices that read a source or write to a sink; the job reads and writes for them, as for pipelines."""

from __future__ import annotations

from typing import Any

from dstream.core.end_supplier import Reading, Writing
from dstream.spi import ProcessorSink, ProcessorSource, ProcessorStreamSource, Sink, Source, StreamSource
from dstream.spi.processor_suppliers import ProcessorMetaSupplier
from dstream.stream.stream_arguments import is_sink, kind_of

__all__ = ["read", "write"]


def read(source: Source[Any] | StreamSource[Any]) -> ProcessorMetaSupplier:
    """Return what makes a vertex emit the items of a source. No edge leads to it.

    Args:
        source: any of `sources`, or one of your own. How many processors the vertex has says into how many parts it is
            divided; unless it says so, the source is, and the engine.

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
    """Return what makes a vertex write the items that come to it into a sink. No edge leads away from it.

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
