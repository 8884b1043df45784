"""Verbs of every day say what they cost: what moves, and what is held."""

from __future__ import annotations

import re

import pytest

import collectors
from dstream import Stream

BY_KEY = "key_by map_values filter_values flat_map_values keys values swap reduce_by_key aggregate_by_key group_by_key"
TOGETHER = (
    "zip zip_longest intersection subtract semi_join anti_join join cogroup asof_join cross interleave concat union"
)
ENDS = "count_by_key top_by_key first last to_set to_dict to_map group_by count_by sample shuffle describe histogram"
NUMBERS = "summing averaging median percentiles mode correlation covariance"

COST = re.compile(
    r"\b(costs?|moves|shuffles?|travels?|holds?|held|keeps|memory|caller|reading no further|runs twice|reads? all|"
    r"otherwise as)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize(
    "verb",
    [getattr(Stream, name) for name in f"{BY_KEY} {TOGETHER} {ENDS}".split()]
    + [getattr(collectors, name) for name in NUMBERS.split()],
    ids=lambda verb: verb.__name__,
)
def test_a_verb_says_what_it_costs(verb):
    """In the words of its docstring, before the example."""
    assert COST.search(re.split("Args:|Raises:|Example:", verb.__doc__)[0])
