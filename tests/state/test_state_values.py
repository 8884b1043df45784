"""What collectors keep can be state, also in a storage that others can write to."""

from __future__ import annotations

import types
from decimal import Decimal

import pytest

import collectors as c
from dstream.storage import Settings, open_storage
from tests.state.epochs import JOB

COLLECTORS = [
    c.averaging(),
    c.bottom_n(2),
    c.correlation(lambda n: n, lambda n: n),
    c.counting(),
    c.frequencies(),
    c.grouping_by(lambda n: n > 1),
    c.linear_trend(lambda n: n, lambda n: n),
    c.mapping(str, c.joining(",")),
    c.max_by(),
    c.median(),
    c.mode(),
    c.partitioning_by(lambda n: n > 1),
    c.percentiles([50]),
    c.reducing(0, lambda left, right: left + right),
    c.sorting(),
    c.stddev(),
    c.summarizing(),
    c.summing(),
    c.teeing(c.counting(), c.to_list(), lambda left, right: left),
    c.to_map(lambda n: n, lambda n: n),
    c.to_set(),
    c.top_n(2),
]
NUMBERS = [[1, 2, 3], [1.5, 2.5, float("inf")]]


@pytest.mark.parametrize("items", NUMBERS, ids=["ints", "floats"])
@pytest.mark.parametrize("collector", COLLECTORS, ids=repr)
def test_state_values_of_collectors_are_loaded_where_only_plain_types_are(collector, items):
    """Users have no names for these classes, so they could not allow them."""
    files = open_storage("memory:", Settings(pickle="restricted")).state_files(JOB)
    one_by_one = collector.supplier()
    for item in items:
        one_by_one = collector.accumulator(one_by_one, item) or one_by_one

    for container in (one_by_one, collector.accumulated(collector.supplier(), items)):
        assert type(files.load(files.dump(container))) is type(container)


def test_state_values_of_decimals_are_loaded_where_only_plain_types_are():
    """Exact sums are classes of ours, too."""
    files = open_storage("memory:", Settings(pickle="restricted")).state_files(JOB)
    container = c.summing().accumulated(c.summing().supplier(), [Decimal("1.1"), Decimal("NaN"), 0.5])

    assert type(files.load(files.dump(container))) is type(container)


def test_state_values_of_others_are_refused_where_only_plain_types_are_loaded():
    """A class of a user is allowed by its name."""
    files = open_storage("memory:", Settings(pickle="restricted")).state_files(JOB)

    with pytest.raises(TypeError, match=r"connect\(allowed=\[\.\.\.\]\)"):
        files.dump({"a": types.SimpleNamespace(count=1)})
