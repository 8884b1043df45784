"""The library of processors: each name gives what `dag.new_vertex(name, ...)` takes."""

import sys
from typing import TYPE_CHECKING

from dstream.core.processors.element_wise import filter, flat_map, map, noop
from dstream.core.processors.ends_of_graphs import read, write
from dstream.core.processors.group_vertices import (
    accumulate,
    accumulate_by_key,
    aggregate,
    aggregate_by_key,
    combine,
    combine_by_key,
)
from dstream.core.processors.joining_vertices import hash_join
from dstream.core.processors.peeking_suppliers import peek_input, peek_output, peek_snapshot
from dstream.core.processors.service_vertices import filter_using, flat_map_using, map_using
from dstream.core.processors.watermark_insertion import insert_watermarks
from dstream.core.processors.window_vertices import (
    accumulate_by_frame,
    aggregate_to_session_window,
    aggregate_to_sliding_window,
    combine_to_sliding_window,
)
from dstream.core.processors.writing_vertices import write_buffered, write_logger

__all__ = [
    "accumulate",
    "accumulate_by_frame",
    "accumulate_by_key",
    "aggregate",
    "aggregate_by_key",
    "aggregate_to_session_window",
    "aggregate_to_sliding_window",
    "combine",
    "combine_by_key",
    "combine_to_sliding_window",
    "filter",
    "filter_using",
    "flat_map",
    "flat_map_using",
    "hash_join",
    "insert_watermarks",
    "map",
    "map_using",
    "noop",
    "peek_input",
    "peek_output",
    "peek_snapshot",
    "read",
    "write",
    "write_buffered",
    "write_logger",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # A type checker would take it for every name.

    def __getattr__(name):
        """Lead names of Jet's, and typing errors, to what there is."""
        if name.startswith("__"):
            raise AttributeError(name)
        from dstream.core.processors.library_names import no_such_processor

        raise AttributeError(no_such_processor(sys.modules[__name__], name))
