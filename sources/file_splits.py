"""Dividing the work of reading files among tasks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from sources.file_access import File

__all__ = ["OPENING", "Part", "group", "plan"]

U = TypeVar("U")

SMALLEST_SPLIT = 1 << 20
LARGEST_SPLIT = 64 << 20
"""A split is about 1/parallelism of all bytes, but neither below 1 MiB nor above 64 MiB."""
OPENING = 64 << 10
"""What opening a file costs, in bytes that could be read instead: 10,000 empty files are work too."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a file: the bytes from `start` up to `end`, or up to the end of the file."""

    file: File
    start: int = 0
    end: int | None = None


def plan(files: Iterable[File], parallelism: int, divisible: Callable[[File], bool]) -> list[tuple[Part, ...]]:
    """Divide the files among splits: large files are cut by bytes, small neighbours share a split.

    Args:
        files: in the order of the items.
        parallelism: how many splits keep every core busy.
        divisible: whether the file may be cut at any byte; one that may not is read by one task.

    Returns:
        For each split the parts that it reads one after another, in order.
    """
    files = list(files)
    total = sum(OPENING + (file.size or 0) for file in files)
    target = _target(total, parallelism)
    placed: list[tuple[int, Part]] = []
    position = 0
    for file in files:
        position += OPENING
        cuts: list[int | None] = [0, None]
        if file.size and divisible(file):
            cuts = [0, *range(target - position % target, file.size, target), file.size]
        for start, end in itertools.pairwise(cuts):
            placed.append((min(position + (start or 0), total - 1), Part(file, start or 0, end)))
        position += file.size or 0
    return _bins(placed, target)


def group(units: Iterable[tuple[int, U]], parallelism: int) -> list[tuple[U, ...]]:
    """Divide indivisible units, given as (bytes, unit), among splits in the same manner as `plan`."""
    units = list(units)
    starts = itertools.accumulate((size for size, _ in units), initial=0)
    placed = [(start, unit) for start, (_, unit) in zip(starts, units, strict=False)]
    return _bins(placed, _target(sum(size for size, _ in units), parallelism))


def _target(total: int, parallelism: int) -> int:
    """Return how many bytes a split should have."""
    fewest, most = -(-total // LARGEST_SPLIT), max(1, total // SMALLEST_SPLIT)
    return max(1, -(-total // min(max(parallelism, fewest, 1), most)))


def _bins(placed: Iterable[tuple[int, U]], target: int) -> list[tuple[U, ...]]:
    bins = itertools.groupby(placed, key=lambda pair: pair[0] // target)
    return [tuple(unit for _, unit in members) for _, members in bins]
