"""Hash joins as nodes: a row of them for several right sides, and what is made of their pairs."""

from __future__ import annotations

import pickle

import pytest

from dstream import JoinClause
from dstream.pipeline.joins import FirstOfPairs, Unnested
from dstream.plan import Map, topological
from dstream.plan.operations.pairs import HashJoin
from sources import Items


@pytest.fixture
def right(pipeline):
    """A stage of entries, to join with."""
    return pipeline.read_from(Items([(1, "one"), (2, "two")]))


def test_a_pair_of_functions_gives_the_keys(numbers, right):
    """The pair of items goes on; an outer join is the default."""
    node = numbers.hash_join(right, on=(abs, len))._record.node

    assert (type(node), node.left_key, node.right_key, node.projecting) == (HashJoin, abs, len, None)
    assert (node.is_inner, node.broadcast_limit, node.label()) == (False, None, ".hash_join(..., on=(abs, len))")


def test_an_inner_one_says_so(numbers, right):
    """In its node and its label; the limit is handed on."""
    node = numbers.inner_hash_join(right, on=(abs, len), broadcast_limit=1000)._record.node

    assert (node.is_inner, node.broadcast_limit) == (True, 1000)
    assert node.label() == ".inner_hash_join(..., on=(abs, len))"


def test_a_function_takes_the_two_of_a_pair(numbers, right):
    """It is a step behind the join, which names the function if that fails."""
    stage = numbers.hash_join(right, on=(abs, len), to=max)

    assert isinstance(stage._record.node, Map)
    assert (stage._record.node.fn((3, 5)), stage._record.node.label()) == (5, ".hash_join(to=max)")
    assert (stage.name, [above.node for above in stage._record.upstreams]) == (
        "hash_join",
        [numbers._record.node, right._record.node],
    )


def test_several_right_sides_are_a_row_of_joins(numbers, right):
    """The key of a later one is that of the item inside of the pairs."""
    clause = JoinClause.join_map_entries(abs)
    stage = numbers.hash_join_all([(right, (abs, len)), (right, clause)], to=lambda *items: items)
    last, second, first = topological(stage._record.node)[:-4:-1]

    assert (type(first), type(second), type(last)) == (HashJoin, HashJoin, Map)
    assert (second.left_key((-3, "a")), second.right_key((1, "one")), second.projecting((1, "one"))) == (
        3,
        1,
        "one",
    )
    assert last.fn(((-3, "a"), "b")) == (-3, "a", "b")
    assert last.label() == ".hash_join_all(to=lambda)"


def test_matches_stand_in_the_order_of_the_joins():
    """Also without a function, which leaves a tuple; both travel."""
    pairs = ((("x", 0), 1), 2)
    unnested, first = pickle.loads(pickle.dumps((Unnested(3, None), FirstOfPairs(3, str.upper))))

    assert (unnested(pairs), first(pairs)) == (("x", 0, 1, 2), "X")


def test_a_clause_shows_how_it_was_made():
    """Also when it has travelled."""
    made = [
        JoinClause.on_keys(abs, len),
        JoinClause.on_keys(abs, len).projecting(str),
        JoinClause.join_map_entries(abs),
    ]

    assert [repr(each) for each in pickle.loads(pickle.dumps(made))] == [
        "JoinClause.on_keys(abs, len)",
        "JoinClause.on_keys(abs, len).projecting(str)",
        "JoinClause.join_map_entries(abs)",
    ]


WRONG = {
    "on must be a pair of key functions or a JoinClause, not 3 functions": {"on": (abs, abs, abs)},
    "on must be a pair of key functions (of_left, of_right) or a JoinClause, not builtin_function_or_method": {
        "on": abs
    },
    "on[0] must be a function, not int": {"on": (1, abs)},
    "on[1] must be a function, not None": {"on": (abs, None)},
    "to must be a function, not int": {"on": (abs, abs), "to": 3},
    "broadcast_limit must be an int, not str": {"on": (abs, abs), "broadcast_limit": "1 MB"},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_are_refused_by_their_names(numbers, right, message):
    """At the call; no stage is added."""
    with pytest.raises(TypeError) as caught:
        numbers.hash_join(right, **WRONG[message])

    assert str(caught.value) == message
    assert "hash_join" not in repr(numbers.pipeline)


def test_wrong_joins_are_refused(numbers, right):
    """The message names the place in the list."""
    with pytest.raises(ValueError, match="joins must not be empty"):
        numbers.hash_join_all([])
    with pytest.raises(TypeError, match=r"^joins\[1\]\[1\]\[0\] must be a function, not int"):
        numbers.hash_join_all([(right, (abs, abs)), (right, (3, abs))])
    with pytest.raises(TypeError, match=r"a list of \(stage, on\), and one of them is BatchStage"):
        numbers.hash_join_all([right])
    with pytest.raises(ValueError, match="broadcast_limit must be at least 1: 0"):
        numbers.inner_hash_join(right, on=(abs, abs), broadcast_limit=0)
