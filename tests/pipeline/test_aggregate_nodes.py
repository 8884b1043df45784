"""Aggregates as nodes: their inputs, keys and names, and what is refused at the call."""

from __future__ import annotations

import re

import pytest

from collectors import AggregateOperation, co_operation, counting, to_bags, to_list
from dstream.plan import Distinct
from dstream.plan.operations.keyed import Aggregate, Stateful
from sources import Items


def keys_of(node, others=None, first=-3):
    """Return the keys of some item by which each input is grouped."""
    keyed = [each.keyed for each in node.reductions if each.keyed is not None]
    return [each.classifier(first if number == 0 else others) for number, each in enumerate(keyed)]


def test_all_items_are_reduced_to_one(numbers):
    """A collector is an operation of one input."""
    op = counting()
    node = numbers.aggregate(op)._record.node

    assert (type(node), node.upstreams, node.operation, keys_of(node)) == (Aggregate, (numbers._record.node,), op, [])
    assert node.label() == ".aggregate(counting())"


def test_items_of_each_key_are_reduced(numbers):
    """With the key function of the keyed stage, and what makes an item of the result."""
    keyed = numbers.grouping_key(abs)
    plain, shown = keyed.aggregate(counting())._record.node, keyed.aggregate(counting(), to=max)._record.node

    assert (keys_of(plain), plain.to, shown.to, keyed.key) == ([3], None, max, abs)
    assert shown.label() == ".grouping_key(abs).aggregate(counting(), to=max)"


def test_several_stages_are_reduced_together(pipeline, numbers):
    """In the order of the call; the stage that it is called on is the first."""
    others = [pipeline.read_from(Items([1])) for _ in range(3)]
    stage = numbers.co_aggregate(*others, op=to_bags(4))
    keyed = numbers.grouping_key(abs).co_aggregate(*(each.grouping_key(len) for each in others), op=to_bags(4), to=max)

    assert stage._record.node.upstreams == tuple(each._record.node for each in (numbers, *others))
    assert keys_of(keyed._record.node, "-3", -3) == [3, 2, 2, 2]
    assert [above.node for above in keyed._record.upstreams] == list(stage._record.node.upstreams)
    assert keyed._record.node.label() == ".grouping_key(abs).co_aggregate(to_bags(...), to=max)"


def test_a_state_is_that_of_a_key_or_of_all(numbers):
    """The three actions have one node."""
    nodes = [each.map_stateful(list, max)._record.node for each in (numbers, numbers.grouping_key(abs))]
    kept = numbers.filter_stateful(list, max)._record.node
    several = numbers.grouping_key(abs).flat_map_stateful(list, max)._record.node

    assert [type(node) for node in nodes] == [Stateful, Stateful]
    assert [node.key for node in nodes] == [None, abs]
    assert (kept.action, several.action, several.label()) == (
        "filter",
        "flat_map",
        ".grouping_key(abs).flat_map_stateful(list, max)",
    )


def test_the_first_and_the_greatest_of_each_key(numbers):
    """A distinct by the key, and an aggregate under the name of the call."""
    keyed = numbers.grouping_key(abs)
    first, top = keyed.distinct()._record.node, keyed.top(2, key=len)._record.node

    assert (type(first), first.key) == (Distinct, abs)
    assert (type(top), keys_of(top), top.label()) == (Aggregate, [3], ".grouping_key(abs).top(2, key=len)")
    assert top.operation.collect(["a", "ccc", "bb"]) == ["ccc", "bb"]


ONE_INPUT = AggregateOperation(list, list.append)
NO_OPERATIONS = {
    "op must be an aggregate operation or a collector, not None": (TypeError, lambda s: s.aggregate(None)),
    "op must be an aggregate operation or a collector, not function": (TypeError, lambda s: s.aggregate(to_list)),
    "to_bags(...) has 2 inputs, and aggregate() gives it one: co_aggregate(*others, op=...) takes": (
        TypeError,
        lambda s: s.aggregate(to_bags(2)),
    ),
    "to_bags(...) has 2 inputs, and rolling_aggregate() gives it one": (
        TypeError,
        lambda s: s.grouping_key(abs).rolling_aggregate(to_bags(2)),
    ),
    "to_bags(...) has 3 inputs, and co_aggregate() gives it 2 stages": (
        TypeError,
        lambda s: s.co_aggregate(s, op=to_bags(3)),
    ),
    "counting() has 1 input, and co_aggregate() gives it 3 stages": (
        TypeError,
        lambda s: s.grouping_key(abs).co_aggregate(s.grouping_key(abs), s.grouping_key(abs), op=counting()),
    ),
    "co_operation(...) has 2 inputs, and co_aggregate() gives it one": (
        TypeError,
        lambda s: s.co_aggregate(op=co_operation(counting(), counting())),
    ),
    "co_aggregate() of a keyed stage takes keyed stages, stage.grouping_key(fn), not BatchStage": (
        TypeError,
        lambda s: s.grouping_key(abs).co_aggregate(s, op=to_bags(2)),
    ),
    "fn must be a function, not str": (TypeError, lambda s: s.grouping_key("country")),
    "to must be a function, not int": (TypeError, lambda s: s.grouping_key(abs).aggregate(counting(), 3)),
    "n must not be negative: -1": (ValueError, lambda s: s.grouping_key(abs).top(-1)),
    "key must be a function, not int": (TypeError, lambda s: s.grouping_key(abs).top(1, 2)),
    "create must be a function, not list": (TypeError, lambda s: s.map_stateful([], max)),
}


@pytest.mark.parametrize("message", NO_OPERATIONS)
def test_what_cannot_be_reduced_is_refused_at_the_call(numbers, message):
    """Nothing is added."""
    error, call = NO_OPERATIONS[message]
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        call(numbers)

    assert repr(numbers.pipeline).startswith("Pipeline with 1 stage\n")
