"""Values: what comes back is what was put, exactly, and the caller's own."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import math
import uuid
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from dstream.errors import NullElementError


class Color(enum.Enum):
    RED = 1


class Point(NamedTuple):
    x: int
    y: Any


@dataclass
class Order:
    id: int
    total: decimal.Decimal
    lines: list[str]


def nested(levels: int) -> Any:
    """Return a list within a list, and so on."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


VALUES: list[Any] = [
    *(True, False, 0, 1, -1, 2**63 - 1, -(2**63), 2**63, 2**100, 1.0, 0.5, -0.0, math.inf, math.nan, 1e-320),
    *("", "text", "ä\0", "\ud800", b"", b"\0bytes", bytearray(b"x"), 3 + 4j),
    *(
        [],
        [1, 2],
        [1, 2.5],
        [1, None],
        [[]],
        [True, 1],
        (),
        (1,),
        (1, [2]),
        Point(1, "y"),
        {},
        {"a": 1},
        {1: {2: None}},
    ),
    *({1, 2}, frozenset([1]), collections.Counter("aab"), collections.deque([1]), range(3), Color.RED),
    *(datetime.date(1, 1, 1), datetime.datetime(2024, 2, 29, 1, 2, 3, 4), datetime.time(1), datetime.timedelta(-1, 1)),
    *(datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), decimal.Decimal("1.50"), decimal.Decimal("NaN")),
    *(uuid.UUID(int=5), Order(1, decimal.Decimal("9.90"), ["a"]), int, Exception),
]


def same(left: Any, right: Any) -> bool:
    """Say whether two values are equal, all parts of exactly the same types; NaN is itself."""
    return type(left) is type(right) and repr(left) == repr(right)


@pytest.mark.parametrize(
    "first", [0, 0.5, "text", [1.5], Order(0, decimal.Decimal(0), [])], ids=lambda v: type(v).__name__
)
def test_values_of_every_kind_come_back_exactly(storage, use, first):
    """Whatever type the first value decided, a value comes back with the types of all its parts."""
    store = use.map(storage)
    use.put(store, {-1: first})
    use.put(store, dict(enumerate(VALUES)))
    read = use.content(store)

    for index, (point, value) in enumerate(zip(store.get_many(range(len(VALUES))), VALUES, strict=True)):
        assert same(point, value)
        assert same(read[index], value)


def test_values_of_every_kind_are_written_by_a_job(storage, use):
    """Values from tasks, each deciding a type of its own, come back exactly too."""
    store = use.map(storage)
    use.run(store, "job", dict(enumerate(VALUES)))

    assert all(map(same, store.get_many(range(len(VALUES))), VALUES))


def test_values_as_items_of_a_list_come_back_exactly(storage, use):
    """Lists keep items of every kind, None among them."""
    items = [None, *VALUES, None]
    store = use.list(storage, *items)

    assert all(map(same, store.read(0, 1000), items))
    assert all(map(same, use.items(store), items))


def test_values_none_is_refused_in_a_map(storage, use):
    """None means that there is no value: a job cannot write it."""
    store = use.map(storage)
    use.put(store, {"k": 1})
    with pytest.raises(NullElementError):
        use.tasks(store.begin("job"), {"k": None})

    assert use.content(store) == {"k": 1}


def test_values_that_a_merge_makes_none_are_removed(storage, use):
    """Alone, beside others, and where the value has changed since the tasks merged; a new key gets its value."""
    store = use.map(storage, journal=True)
    use.put(store, {"gone": 1, "kept": 2, "stays": 3})
    use.run(store, "job", {"gone": -1, "kept": 1, "new": 5}, merge=_sum_or_none)

    assert use.content(store) == {"kept": 3, "stays": 3, "new": 5}
    use.run(store, "another", {"new": -5}, merge=_sum_or_none)
    job = store.begin("raced", merge=_sum_or_none)
    receipts = use.tasks(job, {"kept": -4, "stays": -3})
    use.put(store, {"kept": 4, "stays": 1})
    job.commit(receipts)
    assert use.content(store) == {"stays": -2}
    kinds = [(event.kind, event.key, event.old_value) for event in store.journal(0) if event.new_value is None]
    assert sorted(kinds) == [("REMOVED", "gone", 1), ("REMOVED", "kept", 4), ("REMOVED", "new", 5)]


def _sum_or_none(old, new):
    return old + new or None


@pytest.mark.parametrize("value", [[1], {"a": [1]}, Order(1, decimal.Decimal(1), [])], ids=lambda v: type(v).__name__)
def test_values_that_are_handed_out_are_copies(storage, use, value):
    """Changing what was put, read, or given to a change changes nothing in the store."""
    store = use.map(storage)
    shown = repr(value)
    use.put(store, {"k": value})
    _spoil(value)
    for read in (*store.get_many(["k", "k"]), *use.content(store).values()):
        assert repr(read) == shown
        _spoil(read)
    [old] = store.update(["k"], lambda old: [_spoil(old[0])])

    assert repr(old) == shown
    assert repr(store.get_many(["k"])) == f"[{shown}]"


def _spoil(value: Any) -> Any:
    """Change a value, and say that the entry stays as it is."""
    from dstream.spi.store import UNCHANGED

    match value:
        case Order():
            value.lines.append("more")
        case dict():
            value["a"].append(2)
        case _:
            value.append(2)
    return UNCHANGED


def test_values_in_a_list_are_copies(storage, use):
    """Items too are the caller's own."""
    item = [1]
    store = use.list(storage, item)
    item.append(2)
    for read in (*store.read(0, 1), *use.items(store)):
        read.append(3)

    assert store.read(0, 9) == [[1]]


def test_values_that_cannot_be_kept_are_refused(storage, use):
    """The message names the value; the change that holds it does not happen."""
    store = use.map(storage)

    with pytest.raises(TypeError, match="generator"):
        use.put(store, {"a": 1, "b": (n for n in [])})
    with pytest.raises(TypeError, match="generator"):
        use.list(storage).extend([1, (n for n in [])])
    assert use.content(store) == {}
    assert use.list(storage).size() == 0


def test_values_are_not_unpickled_where_that_is_forbidden(backend, use):
    """With pickle="never" a value that needs a pickle is refused, plain ones are kept."""
    store = use.map(backend.open(pickle="never"))
    use.put(store, {"a": 1, "b": "text"})

    with pytest.raises(TypeError, match="Stubborn"):
        use.put(store, {"c": Stubborn(1)})
    assert use.content(store) == {"a": 1, "b": "text"}


class Stubborn:
    """Compares without an answer, as arrays do."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        raise ValueError("the truth value is ambiguous")

    __hash__ = None


def test_values_whose_comparison_fails_are_kept(storage, use):
    """Nothing compares values: arrays and their like can be put, read, replaced and appended."""
    store, items = use.map(storage), use.list(storage)
    for number in range(3):
        use.put(store, {"a": Stubborn(number), "b": Stubborn(number)})
        items.extend([Stubborn(number)])

    assert store.get_many(["a"])[0].number == 2
    assert [item.number for item in use.items(items)] == [0, 1, 2]


@pytest.mark.parametrize("levels", [15, 16, 17, 60, 200])
def test_a_first_value_may_be_nested_deep(storage, use, levels):
    """No column is made of it, which would take hours to describe and could not be read."""
    store, items = use.map(storage), use.list(storage, nested(levels))
    use.put(store, {"k": nested(levels)})

    assert use.content(store) == {"k": nested(levels)}
    assert list(use.items(items)) == [nested(levels)]


def test_a_value_that_is_nested_too_deep_names_its_collection(storage, use):
    """Also the first one, of which a column would be made."""
    store = use.map(storage)
    for _ in range(2):
        with pytest.raises(TypeError, match="map 'm': a list cannot be stored: maximum recursion depth"):
            use.put(store, {"k": nested(50_000)})
        use.put(store, {"a": 1})
