"""Random pipelines of forks, joins and several sinks give on both engines what plain lists give."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import accumulate

import pytest

from collectors import co_operation, counting, summing, to_list
from dstream.pipeline import BatchStage, Pipeline
from sources import Items
from tests.pipeline.conftest import Noted, run

Pair = tuple[BatchStage[int], list[int]]
"""A stage of ints, and what it gives."""


def counts(items: list[int]) -> list[int]:
    """Return the key and the number of the items of each key, put into one int, sorted."""
    return sorted(key * 100 + n for key, n in Counter(item % 3 for item in items).items())


ALONE: list[Callable[[BatchStage[int], list[int]], Pair]] = [
    lambda stage, items: (stage.map(lambda n: n * 3 + 1), [n * 3 + 1 for n in items]),
    lambda stage, items: (stage.filter(lambda n: n % 3), [n for n in items if n % 3]),
    lambda stage, items: (stage.flat_map(range).limit(30), [i for n in items for i in range(n)][:30]),
    lambda stage, items: (stage.sorted(lambda n: n % 7), sorted(items, key=lambda n: n % 7)),
    lambda stage, items: (stage.distinct(), list(dict.fromkeys(items))),
    lambda stage, items: (stage.skip(2), items[2:]),
    lambda stage, items: (stage.top(4), sorted(items, reverse=True)[:4]),
    lambda stage, items: (stage.chunked(3).map(sum), [sum(items[at : at + 3]) for at in range(0, len(items), 3)]),
    lambda stage, items: (
        stage.map(lambda n: 12 // (n % 4)).ignore(ZeroDivisionError),
        [12 // (n % 4) for n in items if n % 4],
    ),
    lambda stage, items: (stage.enumerate().starmap(lambda at, n: at - n), [at - n for at, n in enumerate(items)]),
    lambda stage, items: (stage.set_local_parallelism(3), items),
    lambda stage, items: (stage.rebalance().map(abs).set_local_parallelism(2), [abs(n) for n in items]),
    lambda stage, items: (stage.aggregate(summing(abs)), [sum(map(abs, items))]),
    lambda stage, items: (stage.rolling_aggregate(summing(int)), list(accumulate(items))),
    lambda stage, items: (
        stage.grouping_key(lambda n: n % 3).aggregate(counting(), to=lambda key, n: key * 100 + n).sorted(),
        counts(items),
    ),
    lambda stage, items: (
        stage.grouping_key(lambda n: n % 3).map_stateful(list, lambda seen, key, n: seen.append(n) or len(seen)),
        [sum(other % 3 == n % 3 for other in items[: at + 1]) for at, n in enumerate(items)],
    ),
]


def joined(left: list[int], right: list[int]) -> list[int]:
    """Return the sum of each pair with equal remainders, sorted."""
    return sorted(a + b for a in left for b in right if a % 5 == b % 5)


TOGETHER: list[Callable[[BatchStage[int], list[int], BatchStage[int], list[int]], Pair]] = [
    lambda a, left, b, right: (a + b, left + right),
    lambda a, left, b, right: (a.merge(b).sorted(), sorted(left + right)),
    lambda a, left, b, right: (
        a.limit(9).join(b.limit(9), on=lambda n: n % 5).map(lambda entry: sum(entry.value)).sorted(),
        joined(left[:9], right[:9]),
    ),
    lambda a, left, b, right: (
        a.limit(9).inner_hash_join(b.limit(5), on=(lambda n: n % 5, lambda n: n % 5), to=lambda n, m: n * m),
        [n * m for n in left[:9] for m in right[:5] if n % 5 == m % 5],
    ),
    lambda a, left, b, right: (
        a.co_aggregate(
            b, a, op=co_operation(counting(), summing(int), to_list(), finish=lambda n, m, last: n + m + sum(last))
        ),
        [len(left) + sum(right) + sum(left)],
    ),
]


def grown(seed: int) -> tuple[Pipeline, list[Noted], list[list[int]]]:
    """Return a random pipeline, its sinks, and what they are to be given."""
    chosen = random.Random(seed)
    pipeline = Pipeline()
    stages: list[Pair] = []
    for _ in range(2):
        items = [chosen.randrange(-9, 20) for _ in range(chosen.randrange(14))]
        stages.append((pipeline.read_from(Items(items, chosen.randint(1, 8))), items))
    for _ in range(chosen.randint(4, 12)):
        first, second = chosen.choice(stages), chosen.choice(stages)
        stages.append(
            chosen.choice(TOGETHER)(*first, *second) if chosen.random() < 0.3 else chosen.choice(ALONE)(*first)
        )
    read = {id(above) for record in pipeline._records for above in record.upstreams}
    ends = [(stage, items) for stage, items in stages if id(stage._record) not in read]
    sinks = [Noted() for _ in ends]
    for (stage, _), sink in zip(ends, sinks, strict=True):
        stage.write_to(sink)
    return pipeline, sinks, [items for _, items in ends]


@pytest.mark.parametrize("seed", range(60))
def test_random_pipelines_give_what_lists_give(local_context, seed):
    """Every end gets its items, in order."""
    pipeline, _, expected = grown(seed)

    assert run(local_context, pipeline.plan()) == expected


@pytest.mark.parametrize("seed", range(100, 102))
def test_random_pipelines_give_the_same_on_spark(spark_context, seed):
    """Whatever the partitions, which may be empty."""
    pipeline, _, expected = grown(seed)

    assert run(spark_context, pipeline.plan()) == expected
