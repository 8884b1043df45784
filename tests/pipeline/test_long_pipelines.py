"""Pipelines of hundreds of stages that put their items aside run as short ones do."""

from __future__ import annotations

import pytest

from collectors import counting, to_bags, to_list

STEPS = {
    "aggregates": lambda stage: stage.grouping_key(abs).aggregate(to_list(), to=lambda key, items: key),
    "co_aggregates": lambda stage: stage.grouping_key(abs).co_aggregate(
        stage.limit(0).grouping_key(abs), op=to_bags(2), to=lambda key, bags: key
    ),
    "cogroups": lambda stage: stage.cogroup(stage.limit(0), on=abs).map(lambda entry: entry.key),
    "caches": lambda stage: stage.cache(),
    "states": lambda stage: stage.grouping_key(abs).map_stateful(list, lambda state, key, n: n),
}


@pytest.mark.parametrize("step", STEPS)
def test_hundreds_of_stages_run(numbers, given, step):
    """Whatever stands on the stack for each of them."""
    stage = numbers
    for _ in range(150):
        stage = STEPS[step](stage)

    assert given(stage.aggregate(counting())) == [6]
