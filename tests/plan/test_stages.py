"""Amounts that may be known only later."""

from __future__ import annotations

import pytest

from dstream.plan.stages import Amount, exactly, total


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (exactly(1), "1 task"),
        (exactly(2_000), "2,000 tasks"),
        (Amount(0, 1), "0 to 1 task"),
        (Amount(1, 6, "one for each core"), "1 to 6 tasks (one for each core)"),
        (Amount(1, None), "1 or more tasks"),
        (Amount(0, 2**60), "0 to 1,152,921,504,606,846,976 tasks"),
        (exactly(2**20_000), "10^6020 tasks"),
    ],
)
def test_an_amount_says_what_it_counts(amount, text):
    """One number or a range, with what decides it."""
    assert amount.of("task") == text


def test_amounts_add_and_bound_each_other():
    """What has no upper bound has none in a sum, and takes that of the other otherwise."""
    assert total([exactly(2), Amount(0, 3)]) == Amount(2, 5)
    assert (exactly(2) + Amount(1, None)).most is None
    assert Amount(1, None).up_to(exactly(6)) == Amount(1, 6)
    assert (Amount(2, 9).up_to(Amount(3, None)), Amount(2, 5).or_none()) == (Amount(2, 9), Amount(0, 5))
