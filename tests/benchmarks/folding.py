"""What the rivals of U1 to U3 do with the state of one key: counts of frames, averages that slide, sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Averages", "Counts", "Folding", "Sessions"]


class Folding(Protocol):
    """What becomes of the state of a key, which `pickle` takes."""

    def new(self) -> Any:
        """Return the state of a key without events."""
        ...

    def fold(self, state: Any, timestamps: Iterable[int], values: Iterable[int]) -> None:
        """Take events."""
        ...

    def close(self, state: Any, watermark: int) -> Iterator[tuple[int, float]]:
        """Give (start, result) of windows that are over."""
        ...

    def is_over(self, state: Any) -> bool:
        """Say whether the key can be forgotten."""
        ...

    def wakes(self, state: Any) -> int:
        """Return the watermark at which a window is over."""
        ...


@dataclass(frozen=True)
class Counts:
    """How many events each frame has; the state is the counts by the start of their frame."""

    size: int

    def new(self) -> dict[int, int]:
        return {}

    def fold(self, state: dict[int, int], timestamps: Iterable[int], values: Iterable[int]) -> None:
        size = self.size
        for timestamp in timestamps:
            start = timestamp - timestamp % size
            state[start] = state.get(start, 0) + 1

    def close(self, state: dict[int, int], watermark: int) -> Iterator[tuple[int, float]]:
        for start in sorted(start for start in state if start + self.size <= watermark):
            yield start, state.pop(start)

    def is_over(self, state: dict[int, int]) -> bool:
        return not state

    def wakes(self, state: dict[int, int]) -> int:
        return min(state) + self.size


@dataclass
class _Sliding:
    """Sums by the start of their frame, and what is inside of the window that ended last."""

    frames: dict[int, list[int]]
    end: int = 0
    count: int = 0
    total: int = 0


@dataclass(frozen=True)
class Averages:
    """The average value in each window, which slides on by a frame: what leaves is taken off."""

    size: int
    by: int

    def new(self) -> _Sliding:
        return _Sliding({})

    def fold(self, state: _Sliding, timestamps: Iterable[int], values: Iterable[int]) -> None:
        frames, by = state.frames, self.by
        for timestamp, value in zip(timestamps, values, strict=True):
            frame = frames.setdefault(timestamp - timestamp % by, [0, 0])
            frame[0] += 1
            frame[1] += value

    def close(self, state: _Sliding, watermark: int) -> Iterator[tuple[int, float]]:
        while state.frames:
            end = state.end + self.by if state.count else min(state.frames) + self.by
            if end > watermark:
                return
            state.end = end
            self._move(state, +1, state.frames.get(end - self.by))
            self._move(state, -1, state.frames.pop(end - self.by - self.size, None))
            if state.count:
                yield end - self.size, state.total / state.count

    def is_over(self, state: _Sliding) -> bool:
        return not state.frames

    def wakes(self, state: _Sliding) -> int:
        return (state.end if state.count else min(state.frames)) + self.by

    @staticmethod
    def _move(state: _Sliding, sign: int, frame: list[int] | None) -> None:
        if frame is not None:
            state.count += sign * frame[0]
            state.total += sign * frame[1]


@dataclass(frozen=True)
class Sessions:
    """How many events each session has; the state is lists of (start, end, count), ascending."""

    timeout: int

    def new(self) -> list[list[int]]:
        return []

    def fold(self, state: list[list[int]], timestamps: Iterable[int], values: Iterable[int]) -> None:
        sessions = sorted([*state, *([timestamp, timestamp + self.timeout, 1] for timestamp in timestamps)])
        state.clear()
        for start, end, count in sessions:
            if state and start <= state[-1][1]:
                state[-1][1] = max(state[-1][1], end)
                state[-1][2] += count
            else:
                state.append([start, end, count])

    def close(self, state: list[list[int]], watermark: int) -> Iterator[tuple[int, float]]:
        while state and state[0][1] < watermark:
            start, _, count = state.pop(0)
            yield start, count

    def is_over(self, state: list[list[int]]) -> bool:
        return not state

    def wakes(self, state: list[list[int]]) -> int:
        return state[0][1] + 1
