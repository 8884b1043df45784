"""Fusion: a run of element-wise steps as one loop."""

from __future__ import annotations

from itertools import count, islice

import pytest

from dstream.base.functions import many
from dstream.failures import failure
from dstream.operators.rows.loops import run_branches, run_chain
from dstream.plan.steps import unchanged


def test_steps_run_in_order(op):
    """Each step sees what the one before made."""
    seen = []
    steps = [
        op("map", lambda n: n + 1),
        op("filter", lambda n: n % 2),
        op("peek", seen.append),
        op("flat_map", lambda n: [n, -n]),
        op("map", str),
    ]

    assert (list(run_chain(steps, [0, 1, 2])), seen) == (["1", "-1", "3", "-3"], [1, 3])


def test_a_chain_of_no_steps_gives_the_items(op):
    """One step or none: the items pass."""
    assert list(run_chain([op("map", str)], [])) == []


def test_nothing_is_pulled_ahead(op):
    """An item is pulled when it is asked for, and no other, also from inner iterables."""
    pulled = []
    items = (pulled.append(n) or n for n in count())
    result = run_chain([op("map", lambda n: n), op("flat_map", lambda n: count(n * 10))], items)

    assert (pulled, list(islice(result, 3)), pulled) == ([0], [0, 1, 2], [0])


def test_a_last_step_that_gives_pairs_of_one_value_keeps_them_apart(op):
    """Whoever reduces by key takes the keys; all others get pairs, one when it is asked for."""
    pulled = []
    items = (pulled.append(n) or n for n in count())
    result = run_chain([op("map", lambda n: n + 1), op("map", lambda n: (n, "a"))], items)

    assert (next(result), [*pulled], next(result.keys), result.value) == ((1, "a"), [0], 2, "a")


@pytest.mark.parametrize("last", [("map", int), ("filter", None), ("peek", None)])
def test_only_a_plain_map_keeps_its_value_apart(op, last):
    """Other steps see, check or drop what the function gives."""
    action, kind = last
    result = run_chain([op(action, lambda n: (n, "a"), kind)], [1])

    assert not hasattr(result, "keys")


@pytest.mark.parametrize("loops", [11, 12, 13, 25, 40])
def test_nested_flat_maps_go_deeper_than_python_nests_blocks(op, loops):
    """However many `flat_map` steps there are, the items come through, in order."""
    steps = [op("flat_map", lambda n: (n, n)), *[op("flat_map", lambda n: [n])] * (loops - 1)]

    assert list(run_chain(steps, "ab")) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("position", [1, 2, 127, 128, 129, 130, 256, 257, 300])
def test_the_failing_step_is_blamed_in_a_long_chain(op, position):
    """The step that fails, and the item as it reached that step, wherever the chain is cut."""
    steps = [op("map", lambda n: n + 1, position=number) for number in range(1, 301)]
    steps[position - 1] = op("map", lambda n: 1 // (n - n), position=position)

    with pytest.raises(ZeroDivisionError) as caught:
        list(run_chain(steps, [0]))
    assert (failure(caught.value).step.position, failure(caught.value).item) == (position, position - 1)


@pytest.mark.parametrize("position", [1, 5, 12, 13, 14, 24, 25, 26, 30])
def test_the_failing_flat_map_is_blamed(op, position):
    """Inside nested loops too, with the item of its own level."""
    steps = [op("flat_map", lambda n: [n + 1], position=number) for number in range(1, 31)]
    steps[position - 1] = op("flat_map", lambda n: [][n], position=position)

    with pytest.raises(IndexError) as caught:
        list(run_chain(steps, [0]))
    assert (failure(caught.value).step.position, failure(caught.value).item) == (position, position - 1)


def test_a_generator_that_fails_midway_is_blamed(op):
    """The step whose iterable fails is blamed with its item, not the step behind it."""

    def some(n):
        yield n
        raise KeyError(n)

    with pytest.raises(KeyError) as caught:
        list(
            run_chain([op("map", abs, position=1), op("flat_map", some, position=2), op("map", abs, position=3)], [-7])
        )
    assert (failure(caught.value).step.position, failure(caught.value).item) == (2, 7)


def test_a_source_that_fails_blames_no_step(op):
    """An exception of the items themselves is not the fault of a step."""

    def items():
        yield 1
        raise OSError("torn")

    with pytest.raises(OSError, match="torn") as caught:
        list(run_chain([op("map", abs)], items()))
    assert failure(caught.value) is None


def test_a_consumer_that_fails_blames_no_step(op):
    """An exception that the reader of the items raises stays its own."""
    result = run_chain([op("map", abs)], [1, 2])
    next(result)
    with pytest.raises(ValueError, match="mine") as caught:
        result.throw(ValueError("mine"))

    assert failure(caught.value) is None


def test_results_are_checked_and_converted(op):
    """A step of a kind gives ints or floats; a wrong result is blamed on it."""
    steps = [op("map", lambda n: n, int, 1), op("flat_map", lambda n: [n, True], float, 2)]

    assert repr(list(run_chain(steps, [2]))) == "[2.0, 1.0]"
    with pytest.raises(TypeError, match="an int is needed here") as caught:
        list(run_chain(steps, ["x"]))
    assert failure(caught.value).step.position == 1


def test_chains_of_one_shape_do_not_share_their_functions(op):
    """The compiled loop is shared, what it runs is not, also when two run at the same time."""
    first, second = run_chain([op("map", lambda n: n + 1)], [1, 1]), run_chain([op("map", lambda n: n - 1)], [1, 1])

    assert [next(first), next(second), next(first), next(second)] == [2, 0, 2, 0]


@pytest.mark.parametrize("loops", [1, 2, 13, 40, 3000])
def test_timestamps_are_kept_aside_wherever_a_chain_is_cut(op, loops):
    """Steps see the items of pairs, and all that comes of one has its timestamp, also in nested loops."""
    steps = [op("unpair", abs), op("flat_map", lambda n: (n, -n)), *[op("flat_map", lambda n: [n])] * (loops - 1)]
    steps += [op("map", lambda n: n * 2), op("pair", abs)]

    assert list(run_chain(steps, [(7, 1), (8, 2)])) == [(7, 2), (7, -2), (8, 4), (8, -4)]


def test_a_failure_between_timestamps_has_the_item(op):
    """The pair is nothing that the user knows of."""
    steps = [op("unpair", abs), *[op("map", abs, position=n) for n in range(1, 200)]]
    with pytest.raises(TypeError) as caught:
        list(run_chain([*steps, op("map", len, position=200), op("pair", abs)], [(7, -1)]))

    assert (failure(caught.value).step.position, failure(caught.value).item) == (200, 1)


def test_items_without_a_timestamp_are_paired_with_none(op):
    """What was in no pair before is in one afterwards."""
    assert list(run_chain([op("map", str), op("pair", abs)], [1, 2])) == [(None, "1"), (None, "2")]


def test_branches_take_items_out_of_their_pairs(op):
    """One loop feeds several sinks, with and without timestamps."""
    taken = []
    branches = [[op("map", str)], [op("unpair", abs), op("map", str)]]

    assert (list(run_branches(branches, [(7, 1)], [taken.append])), taken) == (["(7, 1)"], ["1"])


def test_closing_the_result_closes_the_items(op):
    """A chain that is dropped midway lets go of its source."""
    closed = []

    def items():
        try:
            yield from range(9)
        finally:
            closed.append(True)

    result = run_chain([op("map", abs)], items())
    next(result)
    result.close()
    del result
    assert closed == [True]


def test_many_takes_what_flat_map_may_return():
    """None is empty; whatever can be walked over stands for itself."""
    assert [list(many(result)) for result in (None, "ab", {1: 2}, range(2))] == [[], ["a", "b"], [1], [0, 1]]


@pytest.mark.parametrize(
    ("fn", "kind", "expected"),
    [
        (float, None, [0.0, 1.0]),
        (str, None, ["0", "1"]),
        (unchanged, float, [0.0, 1.0]),
        (unchanged, int, [0, 1]),
        (unchanged, None, [0, 1]),
    ],
)
def test_what_cannot_fail_on_the_ints_of_a_range_is_no_loop(op, fn, kind, expected):
    """The first step is left to C code, the steps behind it are not; the types are those of the step."""
    first = op("map", fn, kind=kind)
    alone = run_chain([first], iter(range(2)))

    assert (type(alone), [*map(repr, alone)]) == (map, [*map(repr, expected)])
    assert list(run_chain([first, op("map", repr)], iter(range(2)))) == [*map(repr, expected)]


@pytest.mark.parametrize(
    ("items", "fn", "kind"),
    [
        (iter(range(2**70, 2**70 + 1)), lambda n: 1 // (n - 2**70), None),
        (iter([10**400]), float, None),
        (iter(range(3)), lambda n: 1 // n, None),
        (iter(range(3)), str, int),
    ],
)
def test_whatever_may_fail_names_its_item(op, items, fn, kind):
    """Large ints, other sources, other functions and results of a wrong type run in a loop that names the step."""
    with pytest.raises((ArithmeticError, TypeError)) as caught:
        list(run_chain([op("map", fn, kind=kind, position=7)], items))
    assert failure(caught.value).step.position == 7


@pytest.mark.parametrize(
    ("action", "fn", "expected"),
    [("filter", abs, [6, 12]), ("flat_map", str, ["0", "6", "1", "2"]), ("peek", str, [0, 6, 12])],
)
def test_only_map_is_left_to_c_code(op, action, fn, expected):
    """The same functions mean something else to other steps."""
    assert list(run_chain([op(action, fn)], iter(range(0, 13, 6)))) == expected


def divided(branches, items):
    """Return what each branch makes of the items."""
    taken = [[] for _ in branches[1:]]
    given = list(run_branches(branches, items, [each.append for each in taken]))
    return [given, *taken]


def test_branches_make_what_chains_make(op):
    """Each of the items as they come, whatever the others make of them."""
    branches = [
        [op("map", lambda n: n + 1), op("filter", lambda n: n % 2), op("map", str)],
        [op("flat_map", range), op("filter", bool), op("flat_map", lambda n: [n, -n])],
        [],
        [op("filter", lambda n: n > 1)] * 60,
        [op("flat_map", lambda n: [n])] * 9,
    ]

    assert divided(branches, range(4)) == [list(run_chain(ops, range(4))) for ops in branches]


def test_an_item_goes_through_all_branches_before_the_next_one_is_pulled(op):
    """The first branch gives its items last, so that the caller may stop there."""
    pulled, taken = [], []
    items = (pulled.append(n) or n for n in count())
    result = run_branches([[op("map", str)], []], items, [taken.append])

    assert (next(result), pulled, taken) == ("0", [0], [0])


@pytest.mark.parametrize("branch", [0, 1, 2])
@pytest.mark.parametrize("position", [0, 1, 2, 3])
@pytest.mark.parametrize("more", [0, 60])
def test_the_failing_step_of_a_branch_is_blamed(op, branch, position, more):
    """With the item as it reached that step, also in a branch that is too long for the loop of all of them."""
    branches = [
        [
            op("filter", lambda n: True, position=10 * number),
            op("flat_map", lambda n: [n + 1], position=10 * number + 1),
            op("map", lambda n: n + 1, position=10 * number + 2),
            op("flat_map", lambda n: (each for each in [n + 1]), position=10 * number + 3),
            *[op("map", abs, position=99)] * more,
        ]
        for number in range(3)
    ]
    action = branches[branch][position].action
    branches[branch][position] = op(action, lambda n: [][n], position=10 * branch + position)

    with pytest.raises(IndexError) as caught:
        divided(branches, [0])
    assert (failure(caught.value).step.position, failure(caught.value).item) == (
        10 * branch + position,
        max(position - 1, 0),
    )


def test_items_that_fail_blame_no_branch(op):
    """An exception of the items themselves is not the fault of a step."""
    with pytest.raises(ZeroDivisionError) as caught:
        divided([[op("map", abs)], [op("map", abs)]], (1 // n for n in [1, 0]))
    assert failure(caught.value) is None
