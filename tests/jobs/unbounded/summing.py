"""A step over epochs that sums numbers by parity, and gives the sums when the watermark passes the end of a frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dstream.spi.epochs import EpochTime, ShardOutput, TaskPartials
from dstream.values.time import Timed

__all__ = ["FrameSums", "Lagging"]


@dataclass
class Lagging:
    """A watermark that stays behind the greatest timestamp; with a clock, it follows that as well."""

    lag: int = 0
    by_clock: bool = False
    greatest: int = -(2**62)
    greatest_only = True

    def report(self, timestamp: int, now: float) -> None:
        """Keep the greatest."""
        self.greatest = max(self.greatest, timestamp)

    def watermark(self, now: float) -> int:
        """Stay behind it."""
        return max(self.greatest, int(now) if self.by_clock else self.greatest) - self.lag


@dataclass(frozen=True)
class FrameSums:
    """Sums of numbers in frames of ten."""

    kind = "sums"
    signature = (10,)
    inputs = 1

    def partial(self, number: int, items: Iterator[Timed], moment: EpochTime, shards: int) -> TaskPartials:
        """Sum what is not late."""
        sums: dict[int, dict[int, int]] = {}
        count = late = 0
        for timestamp, item in items:
            assert timestamp is not None
            end = timestamp // 10 * 10 + 10
            count += 1
            if end <= moment.old:
                late += 1
                continue
            of_shard = sums.setdefault(item % 2 % shards, {})
            of_shard[end] = of_shard.get(end, 0) + item
        return TaskPartials(sums, count, late)

    def new(self) -> Sums:
        """Begin with nothing."""
        return Sums()


@dataclass
class Sums:
    """Sums by the end of their frame."""

    frames: dict[int, int] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)

    def apply(self, partials: Sequence[tuple[int, Any]], moment: EpochTime) -> ShardOutput:
        """Add, then close frames."""
        for _, partial in partials:
            for end, value in partial.items():
                self.frames[end] = self.frames.get(end, 0) + value
                self.touched.add(end)
        closed = sorted(end for end in self.frames if end <= moment.new)
        self.touched.update(closed)
        return ShardOutput([(end - 1, (end, self.frames.pop(end))) for end in closed])

    def delta(self) -> Any:
        """Give touched frames; None: closed."""
        touched, self.touched = self.touched, set()
        return {end: self.frames.get(end) for end in touched} or None

    def dump(self) -> Any:
        """Give all frames."""
        return dict(self.frames)

    def load(self, dumped: Any) -> None:
        """Take all frames."""
        self.frames = dict(dumped)

    def patch(self, delta: Any) -> None:
        """Take touched frames."""
        for end, value in delta.items():
            if value is None:
                self.frames.pop(end, None)
            else:
                self.frames[end] = value

    def deadline(self) -> int | None:
        """The end of the first frame."""
        return min(self.frames, default=None)

    def clock_deadline(self) -> float | None:
        """Nothing waits for the clock."""
        return None

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Give all frames."""
        return iter(self.frames.items())

    def __len__(self) -> int:
        return len(self.frames)
