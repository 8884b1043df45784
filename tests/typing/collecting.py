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
    aggregating,
    all_of,
    approx_count_distinct,
    averaging,
    averaging_double,
    averaging_int,
    averaging_long,
    bottom_n,
    collecting_and_then,
    concatenating,
    counting,
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
from dstream import Optional, Stream
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


class Longest:
    """An aggregate operation: the length of the longest word."""

    def create(self) -> int:
        """Start at nothing."""
        return 0

    def accumulate(self, longest: int, word: str) -> int:
        """Take a word in."""
        return max(longest, len(word))

    def combine(self, left: int, right: int) -> int:
        """Take the longer one."""
        return max(left, right)

    def finish(self, longest: int) -> str:
        """Write it."""
        return str(longest)


def chosen(words: Stream[str], operation: AggregateOperation[str, int, str]) -> None:
    """One of the items, or what they fold to."""
    assert_type(words.collect(min_by(len)), Optional[str])
    assert_type(words.collect(max_by(lambda word: len(word))), Optional[str])
    assert_type(words.collect(pick_any()), Optional[str])
    assert_type(words.collect(reducing(operator.add)), Optional[str])
    assert_type(words.collect(reducing("", operator.add)), str)
    assert_type(words.collect(reducing(0, len, operator.add)), int)
    assert_type(words.collect(aggregating(operation)), str)
    assert_type(words.collect(aggregating(Longest())), str)


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
