"""The library of processors: the suppliers that `dag.new_vertex(name, ...)` accepts.

- `ends`: sources, sinks, buffered writers and the log.
- `items`: map, filter and flatten item by item, also with a service.
- `joins`: `hash_join`.
- `groups`: aggregates in one group or by key, in one stage or in two.
- `windows`: aggregates over windows of event time.
- `watermarks`: `insert_watermarks`.
- `peeks`: logs of the input, output or snapshot of other processors.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dstream.core.processors.ends import read, write, write_buffered, write_logger
from dstream.core.processors.groups import (
    accumulate,
    accumulate_by_key,
    aggregate,
    aggregate_by_key,
    combine,
    combine_by_key,
)
from dstream.core.processors.items import filter, filter_using, flat_map, flat_map_using, map, map_using, noop
from dstream.core.processors.joins import hash_join
from dstream.core.processors.peeks import peek_input, peek_output, peek_snapshot
from dstream.core.processors.watermarks import insert_watermarks
from dstream.core.processors.windows import (
    accumulate_by_frame,
    aggregate_to_session_window,
    aggregate_to_sliding_window,
    combine_to_sliding_window,
)

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
        """Redirect names of Jet's, and typing errors, to existing names."""
        if name.startswith("__"):
            raise AttributeError(name)
        from dstream.suggestions.streams import no_such_processor

        raise AttributeError(no_such_processor(sys.modules[__name__], name))
