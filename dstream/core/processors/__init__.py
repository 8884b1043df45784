"""The library of processors: each name gives what `dag.new_vertex(name, ...)` takes."""

from dstream.core.processors.element_wise import filter, flat_map, map, noop
from dstream.core.processors.group_vertices import (
    accumulate,
    accumulate_by_key,
    aggregate,
    aggregate_by_key,
    combine,
    combine_by_key,
)
from dstream.core.processors.window_vertices import (
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
    "flat_map",
    "map",
    "noop",
]


def __dir__() -> list[str]:
    return sorted(__all__)
