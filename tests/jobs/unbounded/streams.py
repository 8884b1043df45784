"""Sources without an end that tests feed, and pipelines that read them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import dstream as ds
from dstream.errors import SourceError, SourceUnavailableError
from dstream.pipeline.plan import PipelinePlan

__all__ = ["Breaking", "Feed", "Opening", "eventually", "pipeline_of", "read_stream"]

LONGEST = 240.0
"""Seconds: on a machine that does other work the first job of a new Spark has taken more than 60."""


@dataclass(frozen=True)
class _Stretch:
    items: tuple[Any, ...]

    def read(self) -> Iterator[Any]:
        return iter(self.items)


@dataclass(eq=False)
class Feed:
    """Partitions as lists, to which a test adds; an offset is a number of items."""

    partitions: dict[str, list[Any]] = field(default_factory=lambda: {"0": []})
    ends: bool = False
    is_over: bool = False
    asked: int = 0
    lost_before: int = 0
    label: str = "feed()"

    def begin(self) -> Mapping[str, int]:
        """Start at the first item."""
        return dict.fromkeys(self.partitions, 0)

    def reach(self, offsets: Mapping[str, int], most: int | None = None) -> Mapping[str, int]:
        """Say how many there are."""
        self.asked += 1
        if any(offset < self.lost_before for offset in offsets.values()):
            raise SourceError(f"feed(): the items before {self.lost_before} are gone")
        names = offsets if self.is_over else self.partitions
        found = {name: self._reached(name, offsets.get(name) or 0, most) for name in names}
        return {name: n for name, n in found.items() if not (self.is_over and offsets[name] == n)}

    def _reached(self, name: str, offset: int, most: int | None) -> int:
        there = len(self.partitions[name])
        return there if most is None else min(there, offset + most)

    def split(self, partition: str, start: int | None, stop: int) -> _Stretch:
        """Take a copy of a range."""
        return _Stretch(tuple(self.partitions[partition][start or 0 : stop]))

    def give(self, *items: Any, to: str = "0") -> None:
        """Add items to a partition, which may be new."""
        self.partitions.setdefault(to, []).extend(items)

    def end(self) -> None:
        """Give no more."""
        self.ends = self.is_over = True


class Opening(Feed):
    """A source that is slow to open: it waits until a test lets it."""

    was_reached, is_open = threading.Event(), threading.Event()

    def opened(self, context: Any) -> Opening:
        """Wait."""
        self.was_reached.set()
        assert self.is_open.wait(LONGEST)
        return self


class Breaking(Feed):
    """A source that does not answer once, so that a job waits for its restart."""

    def __init__(self) -> None:
        super().__init__({"0": [1, 2]})
        self.is_down = False

    def reach(self, offsets: Mapping[str, int], most: int | None = None) -> Mapping[str, int]:
        """Fail while it is down."""
        if self.is_down:
            raise SourceUnavailableError("the source does not answer")
        return super().reach(offsets, most)


def read_stream(pipeline: ds.Pipeline, source: Any) -> Any:
    """Return the stage that reads a source without an end."""
    return pipeline.read_from(source)


def pipeline_of(source: Any, *sinks: Any, through: Callable[[Any], Any] = lambda stage: stage) -> PipelinePlan:
    """Return the plan of a pipeline from a source through some steps into sinks."""
    pipeline = ds.Pipeline()
    stage = through(read_stream(pipeline, source))
    for sink in sinks:
        stage.write_to(sink)
    return pipeline.plan()


def eventually(is_so: Callable[[], object], longest: float = LONGEST) -> None:
    """Wait until something holds."""
    until = time.monotonic() + longest
    while not is_so():
        assert time.monotonic() < until, "it does not become so"
        time.sleep(0.005)
