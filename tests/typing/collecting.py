"""Every collector, seen through a stream; two type checkers read this file, nothing runs it."""

from __future__ import annotations

import operator
from collections import Counter, OrderedDict, deque
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import assert_type

from collectors import (
    AggregateOperation,
    all_of,
    approx_count_distinct,
    averaging,
    averaging_double,
    averaging_int,
    averaging_long,
    bottom_n,
    co_operation,
    collecting_and_then,
    concatenating,
    correlation,
    counting,
    covariance,
    filtering,
    flat_mapping,
    frequencies,
    grouping_by,
    grouping_by_concurrent,
    joining,
    linear_trend,
    mapping,
    max_by,
    median,
    min_by,
    mode,
    partitioning_by,
    percentiles,
    pick_any,
    quantiles,
    reducing,
    sorting,
    stddev,
    summarizing,
    summarizing_double,
    summarizing_int,
    summarizing_long,
    summing,
    summing_double,
    summing_int,
    summing_long,
    teeing,
    to_bags,
    to_collection,
    to_concurrent_map,
    to_list,
    to_map,
    to_set,
    to_unmodifiable_list,
    to_unmodifiable_map,
    to_unmodifiable_set,
    top_n,
    variance,
)
from dstream import Collector, Optional, Stream
from dstream.values import DoubleSummaryStatistics, IntSummaryStatistics, SummaryStatistics


def gathered(words: Stream[str]) -> None:
    """Containers hold the items."""
    assert_type(words.collect(to_list()), list[str])
    assert_type(words.collect(to_set()), set[str])
    assert_type(words.collect(to_collection(deque[str])), deque[str])
    assert_type(words.collect(to_unmodifiable_list()), tuple[str, ...])
    assert_type(words.collect(to_unmodifiable_set()), frozenset[str])
    assert_type(words.collect(joining(", ")), str)
    assert_type(words.collect(concatenating("-")), str)
    assert_type(words.collect(frequencies()), Counter[str])
    assert_type(words.collect(sorting(key=len)), list[str])
    assert_type(words.collect(top_n(3, len)), list[str])
    assert_type(words.collect(bottom_n(3)), list[str])


def calculated(words: Stream[str], prices: Stream[float]) -> None:
    """Numbers come out, whatever goes in."""
    assert_type(words.collect(counting()), int)
    assert_type(words.collect(approx_count_distinct()), int)
    assert_type(prices.collect(summing()), float)
    assert_type(words.collect(summing(len)), int)
    assert_type(words.collect(summing(lambda word: len(word) / 2)), float)
    assert_type(words.collect(summing_int(len)), int)
    assert_type(words.collect(summing_int(lambda word: len(word))), int)
    assert_type(words.collect(summing_long(len)), int)
    assert_type(words.collect(summing_double(len)), float)
    assert_type(prices.collect(averaging()), float)
    assert_type(words.collect(averaging(lambda word: len(word))), float)
    assert_type(words.collect(averaging(Decimal)), Decimal)
    assert_type(words.map(Decimal).collect(averaging(lambda price: price)), Decimal)
    assert_type(words.map(Fraction).collect(averaging(lambda share: share)), Fraction)
    assert_type(words.collect(median(len)), float)
    assert_type(prices.collect(percentiles([5, 95])), list[float])
    assert_type(prices.collect(quantiles([0.5], accuracy=0.01)), list[float])
    assert_type(words.collect(averaging(lambda word: Fraction(word))), Fraction)
    assert_type(words.collect(summing(Decimal)), Decimal)
    assert_type(words.collect(summing(lambda word: Fraction(word))), Fraction)
    assert_type(words.collect(averaging_int(len)), float)
    assert_type(words.collect(averaging_long(len)), float)
    assert_type(words.collect(averaging_double(len)), float)
    assert_type(words.collect(summarizing(len)), SummaryStatistics[int])
    assert_type(words.collect(summarizing_int(len)), IntSummaryStatistics)
    assert_type(words.collect(summarizing_long(len)), IntSummaryStatistics)
    assert_type(words.collect(summarizing_double(len)), DoubleSummaryStatistics)
    assert_type(words.collect(variance(len)), float)
    assert_type(prices.collect(stddev(sample=True)), float)
    assert_type(words.collect(linear_trend(lambda word: len(word), lambda word: float(word))), float)
    assert_type(words.collect(quantiles([0.5], len)), list[float])
    assert_type(words.collect(covariance(lambda word: len(word), lambda word: float(word))), float)
    assert_type(words.collect(correlation(lambda word: len(word), lambda word: float(word))), float)
    assert_type(words.collect(mode()), Optional[str])
    assert_type(words.collect(mode(lambda word: len(word))), Optional[int])
    assert_type(words.collect(summing(complex)), complex)


def longer(most: int, word: str) -> int:
    """Take a word in."""
    return max(most, len(word))


def longest(most: int, other: int) -> int:
    """Take the longer one."""
    return max(most, other)


def larger(most: int, number: float) -> int:
    """Take a number in."""
    return max(most, int(number))


def chosen(words: Stream[str], operation: AggregateOperation[tuple[str], int, str]) -> None:
    """One of the items, or what they fold to."""
    assert_type(words.collect(min_by(len)), Optional[str])
    assert_type(words.collect(max_by(lambda word: len(word))), Optional[str])
    assert_type(words.collect(pick_any()), Optional[str])
    assert_type(words.collect(reducing(operator.add)), Optional[str])
    assert_type(words.collect(reducing("", operator.add)), str)
    assert_type(words.collect(reducing(0, len, operator.add)), int)
    assert_type(words.collect(operation), str)
    assert_type(words.collect(operation.with_finish(lambda most: most / 2)), float)
    assert_type(words.collect(AggregateOperation(int, longer, longest)), int)
    assert_type(words.collect(AggregateOperation(int, longer, longest, finish=str)), str)


def co_aggregated(words: Stream[str], operation: AggregateOperation[tuple[str, int], int, str]) -> None:
    """One operation for each input, and all in one."""
    assert_type(operation.finish(1), str)
    assert_type(operation.arity, int)
    both = AggregateOperation(int, (longer, larger), finish=str)
    assert_type(both.on_input(1).finisher(3), str)
    assert_type(both.with_finish(float).finish(3), float)
    summed = co_operation(counting(), summing(len), finish=lambda count, total: (count, total))
    assert_type(summed.finish(None), tuple[int, int])
    assert_type(words.collect(all_of(counting(), summing(len), finish=lambda count, total: total / count)), float)
    assert_type(len(to_bags(3).finish([])), int)
    assert_type(co_operation(counting(), counting()).finish(None), tuple[int, int])


def a_collector_is_an_operation(
    words: Collector[str, int, float], other: AggregateOperation[tuple[str], int, str]
) -> None:
    """A collector has all that aggregate operations have."""
    assert_type(words.create(), int)
    assert_type(words.accumulates[0](1, "a"), int | None)
    assert_type(words.combine and words.combine(1, 2), int | None)
    assert_type(words.deduct and words.deduct(1, 2), int | None)
    assert_type(words.deducting and words.deducting(1, 2), int | None)
    assert_type(words.deducted(1, 2), int)
    assert_type(words.finish(1), float)
    assert_type(words.arity, int)
    assert_type(words.on_input(0), Collector[str, int, float])
    assert_type(other.as_collector().finisher(1), str)
    assert_type(words.as_collector().finisher(1), float)
    assert_type(words.with_finish(str), AggregateOperation[tuple[str], int, str])
    assert_type(words.with_accumulate(larger).finish(1), float)
    assert_type(words.called("longest"), AggregateOperation[tuple[str], int, float])


def grouped(words: Stream[str]) -> None:
    """A group for each key, with what is downstream."""
    assert_type(words.collect(grouping_by(len)), dict[int, list[str]])
    assert_type(words.collect(grouping_by(lambda word: word[0], counting())), dict[str, int])
    assert_type(words.collect(grouping_by(len, grouping_by(str.lower, counting()))), dict[int, dict[str, int]])
    assert_type(words.collect(grouping_by_concurrent(len, to_set())), dict[int, set[str]])
    assert_type(words.collect(partitioning_by(lambda word: word.isalpha())), dict[bool, list[str]])
    assert_type(words.collect(partitioning_by(str.isalpha, counting())), dict[bool, int])
    assert_type(words.collect(to_map(str.lower, len)), dict[str, int])
    pairs = words.map(lambda word: (word, len(word)))
    assert_type(pairs.collect(to_map()), dict[str, int])
    assert_type(pairs.collect(to_map(merge=max)), dict[str, int])
    assert_type(pairs.collect(to_map(map_factory=OrderedDict[str, int])), OrderedDict[str, int])
    assert_type(pairs.collect(to_concurrent_map()), dict[str, int])
    assert_type(pairs.collect(to_unmodifiable_map()), MappingProxyType[str, int])
    assert_type(words.collect(to_map(len, lambda word: word, lambda a, b: a)), dict[int, str])
    assert_type(words.collect(to_map(str.lower, len, map_factory=OrderedDict[str, int])), OrderedDict[str, int])
    assert_type(words.collect(to_concurrent_map(str.lower, len, max)), dict[str, int])
    assert_type(words.collect(to_unmodifiable_map(str.lower, len)), MappingProxyType[str, int])


def around(words: Stream[str]) -> None:
    """A collector around another one takes what the other needs."""
    assert_type(words.collect(mapping(len, summing_int(abs))), int)
    assert_type(words.collect(mapping(len, counting())), int)
    assert_type(words.collect(filtering(str.isalpha, to_list())), list[str])
    assert_type(words.collect(flat_mapping(lambda word: list(word), counting())), int)
    assert_type(words.collect(collecting_and_then(counting(), str)), str)
    assert_type(words.collect(teeing(counting(), joining(), lambda n, text: (n, text))), tuple[int, str])
    assert_type(words.collect(all_of(counting(), joining())), tuple[int, str])
    assert_type(words.collect(all_of()), tuple[()])
    assert_type(words.collect(list[str], list.append, list.extend), list[str])


def without_a_stream() -> None:
    """A collector works on any iterable."""
    assert_type(joining("-").collect("abc"), str)
    assert_type(grouping_by(len, counting()).collect(["a"]), dict[int, int])
    assert_type(counting().collect([1]), int)
