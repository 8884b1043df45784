"""Nodes: immutable values that compare by identity."""

from __future__ import annotations

import pickle
from functools import partial

import pytest

from dstream.plan import (
    Concat,
    Filter,
    FlatMap,
    Join,
    Limit,
    Map,
    Parallel,
    Sorted,
    SourceLocation,
    Union,
    call_site,
    called,
    rewrite,
    unchanged,
)


def test_nothing_is_added_to_a_node(source):
    """Type checkers refuse to change what is there (`tests/typing/refused.py`)."""
    with pytest.raises(AttributeError):
        Limit(source, 3).extra = 1


def test_nodes_compare_by_identity(source):
    """Two nodes that say the same are two nodes: functions cannot be compared."""
    assert Limit(source, 3) != Limit(source, 3)
    assert len({Limit(source, 3), Limit(source, 3)}) == 2


def test_a_node_gives_its_inputs_in_order(source):
    """A source reads from nothing, a concat from each part."""
    first, second = Limit(source, 1), Limit(source, 2)

    assert (source.inputs(), first.inputs(), Concat((first, second)).inputs()) == ((), (source,), (first, second))


@pytest.mark.parametrize("make", [lambda *parts: Concat(parts), lambda *parts: Union(parts), Join])
def test_an_operation_takes_other_inputs(source, make):
    """It is another one of the same kind, which reads from those."""
    inputs, made = (rewrite(Limit(source, 1)), rewrite(Limit(source, 2))), rewrite(make(source, source))
    other = made.with_inputs(inputs)

    assert (type(other), other.step, other.inputs()) == (type(made), made.step, inputs)


@pytest.mark.parametrize(
    ("make", "label"),
    [
        (lambda s: Map(s, len), ".map(len)"),
        (lambda s: Map(s, unchanged, float, step=called("as_double_stream")), ".as_double_stream()"),
        (lambda s: Filter(s, lambda n: n), ".filter(lambda)"),
        (lambda s: FlatMap(s, partial(str.split, sep=",")), ".flat_map(partial(str.split))"),
        (lambda s: Sorted(s, str.lower, True), ".sorted(key=str.lower, reverse=True)"),
        (lambda s: Sorted(s), ".sorted()"),
        (lambda s: Limit(s, 7), ".limit(7)"),
        (lambda s: Parallel(s, 1), ".sequential()"),
        (lambda s: Parallel(s, None), ".parallel()"),
    ],
)
def test_a_node_is_labelled_as_the_user_wrote_the_call(source, make, label):
    """The label is the call, functions by their names."""
    assert (make(source).label(), repr(make(source))) == (label, f"<{label}>")


def test_where_is_the_line_of_the_users_call():
    """`call_site` passes over frames of dstream itself; the place prints as an editor reads it."""
    where = call_site()

    assert (where.file, str(SourceLocation("a.py", 3))) == (__file__, "a.py:3")


def test_a_node_without_functions_can_be_pickled(source):
    """Nodes are plain values."""
    assert pickle.loads(pickle.dumps(Limit(source, 3))).count == 3
