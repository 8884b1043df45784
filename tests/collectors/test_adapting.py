from functools import partial

import pytest

from collectors import collecting_and_then, counting, filtering, flat_mapping, grouping_by, mapping, median, to_list
from dstream.errors import IllegalStateError
from dstream.spi import Characteristics


def test_mapping_applies_the_function_and_keeps_none():
    """Each item goes through the function; a None result is an item."""
    assert mapping({1: "a"}.get, to_list()).collect([1, 2]) == ["a", None]


def test_mapping_inside_mapping_applies_the_outer_first():
    """The outer function sees the item, the inner one what the outer gave."""
    assert mapping(str, mapping(len, to_list())).collect([7, 123]) == [1, 3]


def test_filtering_keeps_a_key_with_nothing_in_it():
    """Unlike a filter before the grouping."""
    collector = grouping_by(len, filtering(str.isupper, to_list()))

    assert collector.collect(["a", "BB", "c"]) == {1: [], 2: ["BB"]}


def test_filtering_goes_by_truth():
    """Any true value passes."""
    assert filtering(str.strip, counting()).collect(["a", " ", ""]) == 1


@pytest.mark.parametrize("around", [lambda each: each, lambda each: grouping_by(type, each)])
def test_filtering_asks_for_the_truth_of_an_item_before_the_next_one(around):
    """A later item on which the predicate fails is not reached."""

    class Neither:
        def __bool__(self):
            raise ValueError("neither")

    with pytest.raises(ValueError, match="neither"):
        around(filtering(lambda item: 1 // item and Neither(), counting())).collect([1, 0])


def test_flat_mapping_takes_iterables_and_none():
    """A list, a string, a generator, a dictionary; None is empty."""
    opened = {1: [1, 2], 2: "ab", 3: (n for n in [3]), 4: {"k": 0}, 5: None, 6: []}

    assert flat_mapping(opened.get, to_list()).collect([1, 2, 3, 4, 5, 6]) == [1, 2, "a", "b", 3, "k"]


def test_flat_mapping_refuses_what_is_not_iterable():
    """The message names the item and what the function gave."""
    with pytest.raises(TypeError, match=r"flat_mapping\(\) needs .* for 'abc' it gave int"):
        flat_mapping(len, to_list()).collect(["abc"])


def test_flat_mapping_counts_what_is_inside():
    """The items downstream are the inner ones."""
    assert flat_mapping(str.split, counting()).collect(["a b", "c"]) == 3


def test_flat_mapping_closes_streams(local_context):
    """As `flat_map` does: each of them behind its last item."""
    closed = []

    def inner(n):
        return local_context.stream(range(n)).on_close(partial(closed.append, n))

    collector = flat_mapping(inner, counting())
    assert collector.collect([3, 0, 1000]) == 1003
    assert collector.accumulator(0, 2) == 2
    assert closed == [3, 0, 1000, 2]


def test_flat_mapping_refuses_a_stream_that_is_used_twice(local_context):
    """As `flat_map` does."""
    stream = local_context.stream([1, 2])

    with pytest.raises(IllegalStateError):
        flat_mapping(lambda item: stream, counting()).collect("ab")


def test_collecting_and_then_finishes_once():
    """The function gets the whole result, once, and may return None."""
    seen = []

    assert collecting_and_then(to_list(), seen.append).collect([1, 2]) is None
    assert seen == [[1, 2]]


def test_collecting_and_then_keeps_the_parts_of_a_container():
    """Containers that travel in parts do so below it, too."""
    assert collecting_and_then(median(), round).parts is median().parts


def test_collecting_and_then_has_a_finisher():
    """Its container is not its result."""
    collector = collecting_and_then(to_list(), len)

    assert Characteristics.IDENTITY_FINISH not in collector.characteristics


def test_collecting_and_then_stays_keyed():
    """An engine still combines the groups where the data is; the function runs on the whole result."""
    keyed = collecting_and_then(grouping_by(len, counting()), sorted).keyed

    assert keyed.classifier("ab") == 2
    assert keyed.assemble([(2, 1), (1, 5)]) == [1, 2]


@pytest.mark.parametrize("around", [mapping, filtering, flat_mapping])
def test_a_grouping_behind_another_function_is_not_keyed(around):
    """Its classifier would see items that the engine does not have."""
    assert around(str, grouping_by(len)).keyed is None
