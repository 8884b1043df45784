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

__all__ = [
    "accumulate",
    "accumulate_by_key",
    "aggregate",
    "aggregate_by_key",
    "combine",
    "combine_by_key",
    "filter",
    "flat_map",
    "map",
    "noop",
]


def __dir__() -> list[str]:
    return sorted(__all__)
