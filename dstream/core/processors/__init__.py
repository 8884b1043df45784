"""The library of processors: each name gives what `dag.new_vertex(name, ...)` takes."""

from dstream.core.processors.element_wise import filter, flat_map, map, noop

__all__ = [
    "filter",
    "flat_map",
    "map",
    "noop",
]


def __dir__() -> list[str]:
    return sorted(__all__)
