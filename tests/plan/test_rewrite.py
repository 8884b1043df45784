"""Rewrites: from the calls of users to the operations that engines run."""

from __future__ import annotations

import pytest

from dstream.errors import UnsupportedError
from dstream.plan import (
    Collect,
    Concat,
    Distinct,
    Filter,
    FlatMap,
    ForEach,
    Limit,
    Map,
    MapMulti,
    Peek,
    Skip,
    Sorted,
    SourceLocation,
    TakeWhile,
    ToList,
    Unordered,
    called,
    rewrite,
    topological,
)
from dstream.plan.operations.calls import RewrittenCall, Tally
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.sort_limit import Top
from dstream.plan.operations.streams import Fork
from dstream.plan.steps import Step
from dstream.spi import Collector
from dstream.stream import Stream


def emit_twice(item, emit):
    """Emit an item twice."""
    emit(item)
    emit(item)


def test_element_wise_steps_become_one_chain(source, shape):
    """`map`, `filter`, `flat_map`, `map_multi`, `peek` in a row are one node."""
    core = rewrite(MapMulti(Peek(FlatMap(Filter(Map(source, str), bool), list), print), emit_twice))

    assert shape(core) == "Read Chain"
    assert [op.action for op in core.ops] == ["map", "filter", "flat_map", "peek", "flat_map"]
    assert core.ops[-1].fn("a") == ["a", "a"]


def test_a_chain_ends_where_another_node_stands(source, shape):
    """What is not element-wise cuts a chain in two."""
    core = rewrite(Map(Map(TakeWhile(Map(source, str), bool), str), len))

    assert shape(core) == "Read Chain TakeWhile Chain"
    assert core.label() == ".map(str).map(len)"


def test_a_chain_keeps_the_kind_of_number_of_each_step(source):
    """The checks of `map_to_int` and its kin travel with their steps."""
    core = rewrite(
        FlatMap(
            Map(source, abs, int, step=called("map_to_int", abs)), list, float, step=called("flat_map_to_double", list)
        )
    )

    assert [op.kind for op in core.ops] == [int, float]


def test_two_limits_become_the_lesser(source, shape):
    """The order of two limits does not matter."""
    lesser = [rewrite(Limit(Limit(source, first), second)) for first, second in [(3, 5), (5, 3)]]

    assert [(shape(core), core.count) for core in lesser] == [("Read Limit", 3), ("Read Limit", 3)]


def test_two_skips_add_up(source, shape):
    """`skip(2).skip(3)` leaves out five items."""
    core = rewrite(Skip(Skip(source, 2), 3))

    assert (shape(core), core.count) == ("Read Skip", 5)


def test_a_limit_behind_a_skip_moves_before_it(source, shape):
    """A page of 3 behind the first 2 ends at 5: nothing needs to look further."""
    core = rewrite(Limit(Skip(Limit(source, 9), 2), 3))

    assert (shape(core), core.count, core.upstream.count) == ("Read Limit Skip", 2, 5)


def test_sorted_and_limit_become_top(source, shape):
    """`sorted(key).limit(n)` keeps n items; a further limit narrows it."""
    core = rewrite(Limit(Limit(Sorted(source, abs, True), 7), 4))

    assert (shape(core), core.count, core.key, core.reverse) == ("Read Top", 4, abs, True)


def test_sorted_and_a_large_limit_stay_as_they_are(source, shape):
    """So many items are better sorted in parallel."""
    assert shape(rewrite(Limit(Sorted(source), 1_000_000))) == "Read Sorted Limit"


def test_a_shared_sort_is_not_turned_into_top(source):
    """If someone else needs all the sorted items, they are sorted once."""
    ordered = Sorted(source)
    core = rewrite(Concat((Limit(ordered, 1), ordered)))

    assert [type(each).__name__ for each in topological(core)] == ["Read", "Sorted", "Limit", "Concat"]


def test_nested_concats_become_flat(source):
    """Any nesting gives one node with all parts, in order."""
    parts = [Limit(source, n) for n in range(4)]
    core = rewrite(Concat((Concat((parts[0], parts[1])), Concat((parts[2], parts[3])))))

    assert [part.count for part in core.inputs()] == [0, 1, 2, 3]


def test_a_shared_concat_is_not_taken_apart(source):
    """A concat that is read twice stays one node."""
    both = Concat((Limit(source, 1), Limit(source, 2)))
    core = rewrite(Concat((both, both)))

    assert [type(part) for part in core.inputs()] == [Concat, Concat]
    assert core.inputs()[0] is core.inputs()[1]


def test_a_shared_node_stays_shared(source):
    """What two branches read from is one node after the rewrite, and a chain ends there."""
    shared = Map(source, str)
    core = rewrite(Concat((Map(shared, len), Filter(shared, bool))))
    left, right = core.inputs()

    assert left.inputs()[0] is right.inputs()[0]
    assert (type(left.inputs()[0]), len(left.ops), len(right.ops)) == (Chain, 1, 1)


def test_each_node_learns_its_step(source):
    """A step knows its number in the whole chain of calls, and their number."""
    plan = Collect(
        Distinct(Map(Map(source, str), len, step=Step(where=SourceLocation("a.py", 7)))),
        Collector(list, list.append, list.extend),
    )
    core = rewrite(plan)
    distinct = core.inputs()[0]

    assert str(distinct.inputs()[0].ops[1].step) == "step 3 of 5: .map(len) at a.py:7"
    assert (str(distinct.step), core.step.position) == ("step 4 of 5: .distinct()", 5)


def test_rewrite_leaves_the_plan_alone(source):
    """A plan is a value: rewriting it twice gives the same, and its nodes know nothing of it."""
    plan = Limit(Map(source, str), 3)

    assert [type(n) for n in topological(rewrite(plan))] == [type(n) for n in topological(rewrite(plan))]
    assert (plan.step, type(plan.upstream)) == (Step(), Map)


@pytest.mark.parametrize("wrap", [Unordered, Distinct])
def test_other_nodes_stay_what_they_are(source, shape, wrap):
    """There is nothing to make simpler of them."""
    assert shape(rewrite(wrap(source))) == f"Read {wrap.__name__}"


def test_top_is_ordered_as_the_sort_was(source):
    """The operation that replaces two of them carries the step of the sort."""
    core = rewrite(
        Limit(Sorted(source, step=Step(where=SourceLocation("a.py", 1))), 2, step=Step(where=SourceLocation("a.py", 2)))
    )

    assert (type(core), core.step.where, core.step.position) == (Top, SourceLocation("a.py", 1), 2)
    assert core.label() == ".sorted().limit(2)"


def test_what_is_no_operation_names_itself(source):
    """A node without a handler is refused; nothing falls through."""
    with pytest.raises(UnsupportedError, match=r"\.for_each\(print\)"):
        rewrite(ForEach(source, print))


def test_every_operation_of_a_plan_has_its_step():
    """Also a concat, what was merged of several calls, and an end."""
    numbers = Stream.of(1, 2)
    stream = (numbers + numbers.map(abs)).skip(1).skip(1).limit(3).sorted().limit(1).cache().distinct()
    steps = [each.step for each in topological(rewrite(ToList(stream._node)))]

    assert all(isinstance(step, Step) for step in steps)
    assert [step.position for step in steps] == [1, 2, 3, 6, 5, 7, 9, 10, 10]


def test_a_rewritten_plan_has_no_call_that_engines_do_not_know(source):
    """Calls become parts of other operations, wherever they stand."""
    numbers = Stream(Fork(Map(source, abs)), None).filter(bool).ignore(ValueError).shuffle(1).peek(print)
    plan = numbers.union(Stream(Tally(source, print), None)).flat_map(range).limit(2).map(abs)
    assert any(isinstance(each, RewrittenCall) for each in topological(plan._node))

    assert not any(isinstance(each, RewrittenCall) for each in topological(rewrite(ToList(plan._node))))
