"""Rolling aggregates, as the plain functions that run on workers."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from collectors import AggregateOperation, all_of, co_operation, counting, max_by, summing_int, to_list, to_set
from dstream.pipeline.stateful_nodes import EmptyContainer, ResultSoFar, ResultSoFarOfKey
from dstream.plan.operations.keyed import Stateful
from dstream.values import Entry, Optional


def rolled(op: AggregateOperation[Any, Any, Any], items: list[Any]) -> list[Any]:
    """Return the results of all items, as a task would make them."""
    create, fn = pickle.loads(pickle.dumps((EmptyContainer(op), ResultSoFar(op))))
    state = create()
    return [fn(state, item) for item in items]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (counting(), [1, 2, 3]),
        (summing_int(abs), [3, 4, 8]),
        (to_list(), [[3], [3, 1], [3, 1, 4]]),
        (to_set(), [{3}, {1, 3}, {1, 3, 4}]),
        (max_by(), [Optional.of(3), Optional.of(3), Optional.of(4)]),
        (all_of(to_list(), counting()), [([3], 1), ([3, 1], 2), ([3, 1, 4], 3)]),
        (co_operation(to_list()), [([3],), ([3, 1],), ([3, 1, 4],)]),
    ],
    ids=repr,
)
def test_each_item_gives_the_result_so_far(op, expected):
    """What was given before does not change, whether the container is the result or a part of it."""
    assert rolled(op, [3, 1, 4]) == expected


def nested() -> dict[str, list[int]]:
    """Return a container that holds what changes."""
    return {"seen": []}


def put(container: dict[str, list[int]], item: int) -> None:
    """Change the inner part."""
    container["seen"].append(item)


def test_a_container_of_containers_is_copied_to_the_bottom():
    """Also one that cannot be combined."""
    assert rolled(AggregateOperation(nested, put), [1, 2]) == [{"seen": [1]}, {"seen": [1, 2]}]


def test_items_of_a_list_are_the_items_themselves():
    """A list that only gathers is copied flat: items are what the user gave."""
    items = [object(), object()]
    create, fn = EmptyContainer(to_list()), ResultSoFar(to_list())
    state = create()
    results = [fn(state, item) for item in items]

    assert results == [items[:1], items]


def test_a_keyed_one_gives_entries():
    """With the key of the item."""
    create, fn = EmptyContainer(counting()), ResultSoFarOfKey(counting())
    state = create()

    assert [fn(state, "k", item) for item in "ab"] == [Entry("k", 1), Entry("k", 2)]


def test_it_is_a_stateful_map(numbers):
    """Under the name of the call."""
    plain, keyed = numbers.rolling_aggregate(counting())._record.node, None
    keyed = numbers.grouping_key(abs).rolling_aggregate(counting())._record.node

    assert isinstance(plain, Stateful)
    assert [(node.action, node.key, node.label()) for node in (plain, keyed)] == [
        ("map", None, ".rolling_aggregate(counting())"),
        ("map", abs, ".grouping_key(abs).rolling_aggregate(counting())"),
    ]
