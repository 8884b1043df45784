"""Gatherers and positions give what itertools and more_itertools give, for random items in random partitions."""

from __future__ import annotations

import functools
import itertools
import operator
import random
from collections.abc import Callable, Iterator
from typing import Any

import more_itertools
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dstream import Stream
from dstream.gatherers import fold, scan, window_fixed, window_sliding
from dstream.testing import Parts

ON_LOCAL = settings(max_examples=200, derandomize=True, deadline=None, print_blob=True)
ON_SPARK = settings(ON_LOCAL, max_examples=12, suppress_health_check=[HealthCheck.too_slow])

Case = tuple[Callable[[Stream[Any]], Stream[Any]], Callable[[list[Any]], Any]]


def slid(n: int, items: list[Any]) -> Any:
    """Say in plain Python what `window_sliding` gives."""
    return more_itertools.sliding_window(items, n) if len(items) >= n else filter(None, [tuple(items)])


CASES: list[Case] = [
    *((lambda s, n=n: s.gather(window_sliding(n)), functools.partial(slid, n)) for n in (1, 2, 3, 7, 25)),
    *(
        (lambda s, n=n: s.gather(window_fixed(n)), lambda items, n=n: more_itertools.batched(items, n))
        for n in (1, 2, 5)
    ),
    (lambda s: s.pairwise(), itertools.pairwise),
    (lambda s: s.enumerate(3), lambda items: enumerate(items, 3)),
    (lambda s: s.gather(scan(int, operator.add, operator.add)), itertools.accumulate),
    (
        lambda s: s.gather(scan(tuple, lambda seen, n: (*seen, n), operator.add)).map(len),
        lambda x: range(1, len(x) + 1),
    ),
    (lambda s: s.gather(fold(str, lambda text, n: f"{text}{n}", operator.add)), lambda x: ["".join(map(str, x))]),
    (
        lambda s: s.filter(bool).chunked(3).pairwise(),
        lambda x: itertools.pairwise(more_itertools.batched(filter(None, x), 3)),
    ),
    (lambda s: s.sample(0.5, seed=9).enumerate(), lambda x: enumerate(_sampled(x))),
]


def _sampled(items: list[Any]) -> Iterator[Any]:
    draw = random.Random("9:0").random
    return (item for item in items if draw() < 0.5)


@st.composite
def parts(draw: Any) -> Parts[int]:
    """Cut up to 30 numbers into 1 to 8 partitions, often empty ones and such of one item."""
    items = draw(st.lists(st.integers(0, 3), max_size=30))
    cuts = draw(st.lists(st.integers(0, len(items)), max_size=7).map(sorted))
    return Parts.cut(items, *cuts)


def check(context: Any, source: Parts[int], case: Case) -> None:
    """Compare what a stream gives with plain Python."""
    build, plain = case
    items = list(itertools.chain.from_iterable(source.parts))

    assert build(context.read(source)).to_list() == list(plain(items))


@ON_LOCAL
@given(source=parts(), case=st.sampled_from(CASES))
def test_gatherers_on_the_local_engine(local_context, source, case):
    """The local engine is the definition, and it is that of Python."""
    check(local_context, source, case)


@ON_LOCAL
@given(source=parts(), case=st.sampled_from(CASES))
def test_gatherers_in_graphs_in_this_process(moving_context, source, case):
    """However the items are divided."""
    check(moving_context, source, case)


@ON_SPARK
@given(source=parts(), case=st.sampled_from(CASES))
def test_gatherers_on_spark(spark_context, source, case):
    """However the items are divided."""
    check(spark_context, source, case)
