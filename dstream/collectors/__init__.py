"""Collectors: how the items of a stream, or of any iterable, become one result.

Each factory returns a `dstream.spi.Collector`, an immutable, picklable value that runs on any engine
and, with `collector.collect(iterable)`, on none.

- `containers`: lists, sets, strings and folds.
- `arithmetic`: counts, sums and averages.
- `moments`: variance, correlation and linear trend.
- `ranking`: least and greatest items, the first few in order, all in order.
- `grouping`: groups of items, each collected downstream.
- `maps`: dictionaries of keys and values.
- `adapting`: a collector around another.
- `compound`: a collector around several.
- `sketches`: estimates of quantiles and of distinct items, in little memory.
- `percentiles`: exact percentiles.
- `batches`: batches of items, and the base of collectors that take whole batches.
- `entries`: the collectors behind the operations on streams of entries.
- `groups`: the containers of groups by key.
- `totals`: the accumulators of sums and averages.
- `arguments`: checks of the arguments of factories.

Example:
    >>> grouping_by(len, counting()).collect(["call", "me", "Ishmael", "some"])
    {4: 2, 2: 1, 7: 1}
"""

import sys
from typing import TYPE_CHECKING, NoReturn

from dstream.collectors.adapting import collecting_and_then, filtering, flat_mapping, mapping
from dstream.collectors.arithmetic import (
    averaging,
    averaging_double,
    averaging_int,
    averaging_long,
    counting,
    summarizing,
    summarizing_double,
    summarizing_int,
    summarizing_long,
    summing,
    summing_double,
    summing_int,
    summing_long,
)
from dstream.collectors.compound import all_of, co_operation, teeing, to_bags
from dstream.collectors.containers import (
    concatenating,
    joining,
    pick_any,
    reducing,
    to_collection,
    to_list,
    to_set,
    to_unmodifiable_list,
    to_unmodifiable_set,
)
from dstream.collectors.grouping import frequencies, grouping_by, grouping_by_concurrent, mode, partitioning_by
from dstream.collectors.maps import to_concurrent_map, to_map, to_unmodifiable_map
from dstream.collectors.moments import correlation, covariance, linear_trend, stddev, variance
from dstream.collectors.percentiles import median, percentiles
from dstream.collectors.ranking import bottom_n, max_by, min_by, sorting, top_n
from dstream.collectors.sketches import approx_count_distinct, quantiles
from dstream.spi import AggregateOperation

__all__ = [
    "AggregateOperation",
    "all_of",
    "approx_count_distinct",
    "averaging",
    "averaging_double",
    "averaging_int",
    "averaging_long",
    "bottom_n",
    "co_operation",
    "collecting_and_then",
    "concatenating",
    "correlation",
    "counting",
    "covariance",
    "filtering",
    "flat_mapping",
    "frequencies",
    "grouping_by",
    "grouping_by_concurrent",
    "joining",
    "linear_trend",
    "mapping",
    "max_by",
    "median",
    "min_by",
    "mode",
    "partitioning_by",
    "percentiles",
    "pick_any",
    "quantiles",
    "reducing",
    "sorting",
    "stddev",
    "summarizing",
    "summarizing_double",
    "summarizing_int",
    "summarizing_long",
    "summing",
    "summing_double",
    "summing_int",
    "summing_long",
    "teeing",
    "to_bags",
    "to_collection",
    "to_concurrent_map",
    "to_list",
    "to_map",
    "to_set",
    "to_unmodifiable_list",
    "to_unmodifiable_map",
    "to_unmodifiable_set",
    "top_n",
    "variance",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # A type checker would take it for every name.

    def __getattr__(name: str) -> NoReturn:
        from dstream.suggestions.packages import no_such_name  # lazily: only a mistaken name needs it

        raise no_such_name("collectors", name, sys._getframe(1))
