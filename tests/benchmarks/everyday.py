"""E1 to E3: words counted by key as a stream, two streams zipped, and a semi-join beside a join."""

from __future__ import annotations

import functools
import operator
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dstream as ds
from collectors import frequencies
from dstream import IntStream
from dstream.stream import Stream
from sources import text_files
from tests.benchmarks.corpus import corpus
from tests.benchmarks.harness import Bench, Case, Contestant, Detail

__all__ = ["reductions_by_key", "semi_joins", "zips"]

_CHECKED = 20_000


def reductions_by_key(bench: Bench) -> list[Case]:
    """Return the word count of B2 whose result is a stream of entries."""
    path = corpus(bench.folder, bench.size(120, 2))
    return [
        Case(
            "E1",
            "words by key",
            Contestant("dstream map, reduce_by_key", functools.partial(_reduced, bench.ctx, path)),
            [Contestant("dstream frequencies()", functools.partial(_counted, bench.ctx, path), goal=1.1)],
            also=[Contestant("dstream map, count_by_key", functools.partial(_counted_by_key, bench.ctx, path))],
        )
    ]


def _words(ctx: ds.Context, path: Path) -> Stream[str]:
    return ctx.read(text_files(path)).flat_map(str.split)


def _reduced(ctx: ds.Context, path: Path) -> dict[str, int]:
    return dict(_words(ctx, path).map(lambda word: (word, 1)).reduce_by_key(operator.add).to_list())


def _counted_by_key(ctx: ds.Context, path: Path) -> dict[str, int]:
    return dict(_words(ctx, path).map(lambda word: (word, 1)).count_by_key().to_list())


def _counted(ctx: ds.Context, path: Path) -> dict[str, int]:
    return _words(ctx, path).collect(frequencies())


def zips(bench: Bench) -> list[Case]:
    """Return two streams of numbers, mapped and zipped, beside the map alone."""
    count = bench.size(1_000_000, 20_000)

    def mapped() -> Stream[int]:
        return IntStream.range(0, count).map_to_obj(lambda number: number + 1)

    def zipped() -> Stream[tuple[int, int]]:
        return mapped().zip(IntStream.range(1, count + 1).map_to_obj(int))

    def jobs() -> Detail:
        alone, both = (_jobs(bench, stream) for stream in (mapped(), zipped()))
        return Detail(f"{both} jobs, a map {alone}", both <= alone + 1)

    return [
        Case(
            "E2",
            f"zip of {count / 1e6:g} M",
            Contestant("dstream zip", lambda: zipped().for_each_partition(_walk), check=lambda: count, detail=jobs),
            [Contestant("dstream map", lambda: mapped().for_each_partition(_walk), check=lambda: mapped().count())],
        )
    ]


def _jobs(bench: Bench, stream: Stream[Any]) -> int:
    """Return how many jobs a stream takes at most, as `explain()` says."""
    drawn = str(Stream(stream._node, bench.ctx).explain("mermaid"))
    found = re.search(r"(\d+) jobs?", drawn.partition("\n")[0])
    assert found is not None, "a plan has jobs"
    return int(found[1])


def semi_joins(bench: Bench) -> list[Case]:
    """Return the joins of B5 by id as semi-joins, of two sides of one size and with a small one."""
    count = bench.size(1_000_000, 20_000)
    return [_looked_up(count, count), _looked_up(count, 20_000)]


def _looked_up(left: int, right: int) -> Case:
    def sides(scale: float) -> tuple[Stream[tuple[int, str]], Stream[tuple[int, str]]]:
        lefts, rights = (IntStream.range(0, int(size * scale)) for size in (left, right))
        return lefts.map_to_obj(_record), rights.map_to_obj(_record)

    def semi(scale: float = 1.0) -> Stream[tuple[int, str]]:
        lefts, rights = sides(scale)
        return lefts.semi_join(rights)

    def joined(scale: float = 1.0) -> Stream[Any]:
        lefts, rights = sides(scale)
        return lefts.join(rights)

    checked = _CHECKED / left
    return Case(
        "E3",
        f"semi-join, {left / 1e6:g} M x {right / 1e6:g} M by id",
        Contestant(
            "dstream semi_join", lambda: semi().for_each_partition(_walk), check=lambda: sorted(semi(checked).to_list())
        ),
        [
            Contestant(
                "dstream join",
                lambda: joined().for_each_partition(_walk),
                goal=1.0,
                check=lambda: sorted((key, pair[0]) for key, pair in joined(checked).to_list()),
            )
        ],
    )


def _record(number: int) -> tuple[int, str]:
    """Make a pair; multiplying by an odd number modulo a power of two shuffles the keys, none twice."""
    return number * 2_654_435_761 % 2**32, f"record-{number}"


def _walk(items: Iterator[Any]) -> None:
    deque(items, maxlen=0)
