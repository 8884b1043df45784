"""Maps that functions on workers read: `imap_service`, and look-ups of some hundred keys at a time."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import dstream as ds
from dstream.errors import CollectionDestroyedError
from dstream.failures import failure
from dstream.plan import Node
from dstream.plan.operations.calls import WithService
from dstream.plan.walk import opened
from dstream.stream import Stream
from dstream.stream.services import MapView, look_ups
from dstream.testing.engines import MASTER, SETTINGS

AGES = {"Ada": 36, "Grace": 85, "Alan": 41}


@pytest.fixture(params=["local", "spark", "spark and memory"])
def context(request: pytest.FixtureRequest) -> Any:
    """Both engines on a lake, and Spark with a map in the memory of this process."""
    engine = request.param.split()[0]
    shared = request.getfixturevalue(f"{engine}_context")
    if not request.param.endswith("memory"):
        yield shared
        return
    with ds.connect(MASTER, config=SETTINGS, storage="memory:") as context:
        yield context


@pytest.fixture
def ages(context: Any) -> Any:
    """A map of three entries."""
    made = context.get_map("ages of look-ups")
    made.clear()
    made.update(AGES)
    return made


def run(node: Node, context: Any) -> list[Any]:
    """Open the plan of a node and run it."""
    return Stream(opened(node, context), context).to_list()


def test_a_function_reads_a_map_by_its_name(context, ages):
    """`get`, with a default, `get_all`, `[key]`, `in`, `len`."""
    names = context.stream(["Ada", "Bob", None], 2)

    def read(view: MapView[Any, Any], name: Any) -> Any:
        return view.get(name), view.get(name, 0), view.get_all([name, "Alan"]), name in view, len(view), view["Grace"]

    assert run(WithService(names._node, ds.imap_service(ages.name), read, "map"), context) == [
        (36, 36, {"Ada": 36, "Alan": 41}, True, 3, 85),
        (None, 0, {"Alan": 41}, False, 3, 85),
        (None, 0, {"Alan": 41}, False, 3, 85),
    ]


def test_look_ups_keep_the_order_of_the_items(context, ages):
    """A value or None for each item, however many have one key; None is a key that is never there."""
    names = context.stream(["Grace", "Bob", "Ada", "Grace", None] * 200, 3)
    node = look_ups(names._node, ages.name, lambda name: name, lambda name, age: (name, age), None)

    assert run(node, context) == [("Grace", 85), ("Bob", None), ("Ada", 36), ("Grace", 85), (None, None)] * 200
    assert node.label() == ".map_using_imap('ages of look-ups', lambda, lambda)"


@pytest.mark.parametrize("broken", ["key", "fn"])
def test_a_function_of_a_look_up_that_fails_names_the_item(context, ages, broken):
    """The key of an item, or what is made of its value."""
    functions: dict[str, Any] = {"key": lambda n: str(n), "fn": lambda n, value: value}
    functions[broken] = lambda n, *value: 1 // (n - 5)
    with pytest.raises(ZeroDivisionError) as raised:
        run(look_ups(context.stream(range(9), 1)._node, ages.name, functions["key"], functions["fn"], None), context)

    assert failure(raised.value).item == 5


def test_few_items_are_read_ahead(local_context):
    """A prefix of ten needs fifteen: one, then two, then four, then eight."""
    local_context.get_map("ages of look-ups").update(AGES)
    seen: list[int] = []
    numbers = Stream.iterate(0, lambda n: n + 1).peek(seen.append)
    node = look_ups(numbers._node, "ages of look-ups", str, lambda n, age: n, None)

    assert Stream(opened(node, local_context), local_context).limit(10).to_list() == list(range(10))
    assert len(seen) == 15


def test_a_view_of_a_lake_sees_what_is_written_later(local_context):
    """Also one that has travelled; a map that was destroyed says so."""
    ages = local_context.get_map("ages that change")
    view = pickle.loads(pickle.dumps(MapView(ages.store)))
    ages["Ada"] = 36
    assert view["Ada"] == 36
    ages["Ada"] = 37
    assert view.get_many(["Ada", None, "Bob", "Ada"]) == [37, None, None, 37]
    with pytest.raises(KeyError):
        view["Bob"]

    ages.destroy()
    with pytest.raises(CollectionDestroyedError):
        view.get("Ada")


@pytest.mark.parametrize("name", [1, ""])
def test_a_wrong_name_is_refused(name):
    """Where it is given."""
    with pytest.raises((TypeError, ValueError), match="imap_service: the name of a map"):
        ds.imap_service(name)
