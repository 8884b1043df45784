"""Two sides of which one goes to disk past the memory bound, in plain functions."""

from __future__ import annotations

import pytest

from dstream.keys import canonical
from dstream.operators.joins.hash import Membership
from dstream.operators.joins.pairs import SideBySide, zipped_batches


def test_the_held_side_of_a_zip_comes_back_in_order(task, full):
    """Batches of the right side have the targets behind those of the left one."""
    task.bound = full
    batches = [(0, list(range(600))), (0, list(range(600, 900))), (1, list(range(900)))]

    pairs = zipped_batches(SideBySide("strict", None, None), 1, 900, iter(batches), task)

    assert list(pairs) == [(n, n) for n in range(900)]


@pytest.mark.parametrize(("batches", "before"), [([(3, [1, 2]), (7, [1])], 3), ([(7, [1])], 3), ([(0, [1])], 0)])
def test_a_side_that_is_longer_is_counted_with_the_places_before(task, step, batches, before):
    """The last target knows how many pairs the others have, also where one side has nothing there."""
    pairs = zipped_batches(SideBySide("strict", None, step), 4, 4 if before else 0, iter(batches), task)
    both = sum(1 for target, _ in batches if target < 4) == len(batches) or len(batches) == 1

    with pytest.raises(ValueError, match=f"one ended after {before if both else before + 1} item"):
        list(pairs)


@pytest.mark.parametrize("is_wanted", [True, False])
def test_keys_on_disk_are_found_again(full, is_wanted):
    """Also NaN, which comes back as another object; what passes by comes once, however often its key is held."""
    nan = canonical(float("nan"))
    held = [(n % 500, None) for n in range(1500)] + [(nan, None)]
    passing = [(n, n) for n in range(1000)] + [(nan, "nan")]

    found = list(Membership(is_wanted).joined(held, passing, full))

    inside = [*range(500), "nan"]
    assert sorted(found, key=str) == sorted(inside if is_wanted else range(500, 1000), key=str)
