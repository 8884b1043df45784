"""Opening splits: what names the source in an exception, and what needs no name."""

from __future__ import annotations

import pytest

from dstream.failures import failure
from dstream.operators.rows.guards import items_of
from sources import Items


class Failing:
    """A split that fails behind its first item."""

    def read(self):
        yield 1
        raise OSError("torn")


class Blocks(Failing):
    """A split that gives its items in lists, and keeps how many it gave."""

    given = 0

    def read_blocks(self):
        for block in ([1, 2], [], [3]):
            Blocks.given += 1
            yield block
        raise OSError("torn")


@pytest.mark.parametrize("split", [Failing(), Blocks()])
def test_a_split_that_fails_names_its_source(split, step):
    """Whether it gives items or lists of them."""
    items = items_of(split, step)

    assert next(items) == 1
    with pytest.raises(OSError, match="torn") as caught:
        list(items)
    assert failure(caught.value).step == step


def test_lists_of_a_split_are_asked_for_one_by_one(step):
    """Who wants two items causes one list to be made."""
    Blocks.given = 0
    items = items_of(Blocks(), step)

    assert (next(items), next(items), Blocks.given) == (1, 2, 1)


@pytest.mark.parametrize("items", [range(5), [1, None], ("a",), "ab", range(2**70, 2**70 + 2)])
def test_what_python_holds_is_given_as_it_is(items, step):
    """An iterator over a list or a range cannot fail, so nothing stands around it."""
    (split,) = Items(items, 1).splits(1)
    opened = items_of(split, step)

    assert (type(opened), list(opened)) == (type(split.read()), list(items))
