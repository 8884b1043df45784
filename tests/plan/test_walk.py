"""Walks: each node once, inputs first, without recursion."""

from __future__ import annotations

from dstream.plan import Concat, Limit, fold, topological


def test_topological_gives_inputs_before_their_readers(source):
    """The parts of a concat come in their order."""
    first, second = Limit(source, 1), Limit(source, 2)
    plan = Concat((first, second))

    assert topological(plan) == [source, first, second, plan]


def test_fold_visits_a_shared_node_once(source):
    """Both readers get the one value."""
    visited = []
    shared = Limit(source, 1)
    total = fold(Concat((shared, shared)), lambda node, inputs: visited.append(node) or 1 + sum(inputs))

    assert (total, len(visited)) == (5, 3)
