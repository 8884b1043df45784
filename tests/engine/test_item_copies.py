"""Copies of the caller's items in this process: of those alone that somebody could change."""

from __future__ import annotations

import copyreg
import dataclasses
import enum
import functools
import gc
import threading
import time
from collections import OrderedDict, deque
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import pytest

import dstream as ds
from collectors import to_list
from dstream.errors import SerializationError
from dstream.operators.rows.batches import copies as copied


class Color(enum.Enum):
    RED = 1


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any
    other: Any = 0


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlots:
    value: Any


@dataclasses.dataclass
class Plain:
    value: Any


@dataclasses.dataclass(slots=True)
class Slots:
    value: Any


@dataclasses.dataclass(frozen=True)
class Cached:
    value: Any

    @functools.cached_property
    def words(self) -> list[Any]:
        return [self.value]


class Extended(Frozen):
    """Has an attribute beside the fields of its base."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.words = []  # type: ignore[misc]


@dataclasses.dataclass(frozen=True)
class Noting:
    value: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", [])


@dataclasses.dataclass(frozen=True)
class Counted:
    value: Any

    def count(self) -> int:
        object.__setattr__(self, "value", self.value + 1)
        return self.value


class Equal(type):
    """Makes classes that are all equal."""

    def __eq__(cls, other: object) -> bool:
        return isinstance(other, Equal)

    def __hash__(cls) -> int:
        return 1


class Left(metaclass=Equal):
    """One of two equal classes."""


class Right(metaclass=Equal):
    """The other one."""


class Changed(Plain):
    """Has a state of its own in pickles."""

    def __getstate__(self) -> dict[str, Any]:
        return {"value": "changed"}


class Reduced(Plain):
    """Is made of something else."""

    def __reduce__(self) -> Any:
        return Plain, ("reduced",)


class Registered(Plain):
    """Has a reducer of its own."""


class MyDict(dict[Any, Any]):
    """Has attributes beside its entries."""


class MyPoint(Point):
    """Has attributes beside its fields."""


copyreg.pickle(Registered, lambda item: (Plain, ("registered",)))


@pytest.mark.parametrize(
    "item",
    [1, "a", None, Decimal(1), Color.RED, (1, ("a", b"")), Point(1, (2,)), (Frozen(1, Point(1, 2)), 2),
     frozenset({1, "a"}), FrozenSlots("a"), (Frozen(Frozen(Color.RED)),)],
)  # fmt: skip
def test_items_that_nobody_can_change_are_not_copied(item):
    """Numbers, strings, and frozen values of such."""
    assert copied([item])[0] is item


@pytest.mark.parametrize(
    "item",
    [[1], {"a": 1}, {1}, Plain(1), Slots(1), (1, [2]), Point([1], 2), Frozen([1]), FrozenSlots({}), Plain([1]), [[1]],
     {"a": [1]}, {Frozen(1): 1}, deque([1]), OrderedDict(a=1), bytearray(b"a"), MyDict(a=1), Frozen(Frozen(Plain(1))),
     MyPoint(1, 2)],
)  # fmt: skip
def test_other_items_are_copied_in_value_and_type(item):
    """With all parts that may change."""
    (copy,) = copied([item])

    assert (type(copy), repr(copy)) == (type(item), repr(item))
    assert _changeable(copy).isdisjoint(_changeable(item))


@pytest.mark.parametrize("kind", [Changed, Reduced, Registered])
def test_a_class_that_pickles_in_its_own_way_is_copied_in_this_way(kind):
    """By its methods, or by what is registered for it."""
    (copy,) = copied([kind("here")])

    assert copy.value in ("changed", "reduced", "registered")


@pytest.mark.parametrize("item", [[1], {"a": 1}, Plain(1)])
def test_an_item_that_is_there_twice_is_one_copy(item):
    """As in a pickle."""
    first, second = copied([item, item])

    assert first is second
    assert first is not item


def test_attributes_beside_the_fields_are_copied():
    """Whoever has set them."""
    item = Plain(1)
    item.more = "more"  # type: ignore[attr-defined]

    assert vars(copied([item])[0]) == {"value": 1, "more": "more"}


@pytest.mark.parametrize("wrap", [lambda item: item, lambda item: (item,), lambda item: [item]])
@pytest.mark.parametrize("item", [Cached("a"), Extended("a"), Noting("a"), Counted(1)])
def test_a_frozen_object_that_can_be_changed_nevertheless_is_copied(item, wrap):
    """By a cached property, a subclass, what it holds beside its fields, or a method that gets around that."""
    (copy,) = copied([wrap(item)])

    assert (copy if wrap(item) is item else copy[0]) is not item


@dataclasses.dataclass(slots=True)
class SlotsOfBase:
    first: Any


@dataclasses.dataclass(slots=True)
class MoreSlots(SlotsOfBase):
    second: Any = 0


def test_slots_of_all_classes_are_copied():
    """Slots without a value stay without one."""
    whole, part = MoreSlots(1, "a"), MoreSlots(2)
    del part.second

    assert [(type(each), each.first, each.second) for each in copied([whole, MoreSlots(3)])] == [
        (MoreSlots, 1, "a"),
        (MoreSlots, 3, 0),
    ]
    assert not hasattr(copied([whole, part])[1], "second")


def test_the_setting_of_garbage_collection_remains():
    """Though it is paused meanwhile."""
    before = gc.isenabled()
    copied([{"a": 1}, {"a": 2}])

    assert gc.isenabled() == before


@dataclasses.dataclass
class Guarded:
    """Refuses all assignments, with a method that the decorator has not made."""

    value: Any

    def __init__(self, value: Any) -> None:
        vars(self)["value"] = value

    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError(name)


def test_no_method_of_a_class_is_called_to_copy_its_objects():
    """Such as one that refuses assignments."""
    item = Guarded(1)
    (copy,) = copied([item])

    assert copy is not item
    assert vars(copy) == {"value": 1}


def test_equal_classes_are_told_apart():
    """By their identity."""
    assert list(map(id, map(type, copied([Left(), Right()])))) == [id(Left), id(Right)]


def test_a_reducer_that_is_registered_later_is_used(monkeypatch):
    """Though objects of the class were copied before."""
    assert copied([Plain(1)])[0].value == 1
    monkeypatch.setitem(copyreg.dispatch_table, Plain, lambda item: (Slots, (item.value,)))

    assert type(copied([Plain(1)])[0]) is Slots


def test_a_part_of_many_items_is_looked_at_once():
    """Not for each of them."""
    words = frozenset(map(str, range(20_000)))
    deep: Any = (1,)
    for _ in range(6):
        deep = (deep,) * 40
    begun = time.process_time()

    assert copied([{"n": n, "words": words} for n in range(20_000)])[1]["words"] is words
    assert copied([deep])[0] is deep
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("seed", range(40))
def test_values_by_chance_share_nothing_that_may_change(seed):
    """And what is one object twice is one again."""
    random = Random(seed)
    made: list[Any] = []
    items = [_value(random, 3, made) for _ in range(random.randrange(1, 9))]
    found = copied(items)

    assert (repr(found), list(map(type, found))) == (repr(items), list(map(type, items)))
    assert _changeable(tuple(found)).isdisjoint(_changeable(tuple(items)))
    assert len(_changeable(tuple(found))) == len(_changeable(tuple(items)))


def _value(random: Random, depth: int, made: list[Any]) -> Any:
    if made and random.random() < 0.2:
        return random.choice(made)
    if depth == 0 or random.random() < 0.3:
        return random.choice([1, "a", None, 2.5, (1, 2), Frozen("b"), Color.RED])
    inner = [_value(random, depth - 1, made) for _ in range(random.randrange(3))]
    first = inner[0] if inner else 0
    kinds = [list, lambda i: dict(enumerate(i)), lambda _: Plain(first), lambda _: Frozen(first), tuple,
             lambda _: Point(first, 1), lambda _: Slots(first)]  # fmt: skip
    made.append(random.choice(kinds)(inner))
    return made[-1]


def _changeable(value: Any) -> set[int]:
    """Return the identities of the objects inside of a value that somebody could change."""
    found: set[int] = set()
    _collect(value, found, {})
    return found


def _collect(value: Any, found: set[int], seen: dict[int, Any]) -> None:
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, list | dict | set | deque | bytearray | Plain | Slots):
        found.add(id(value))
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = [*value, *value.values()]
    elif isinstance(value, list | tuple | set | frozenset | deque):
        parts = list(value)
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, each.name) for each in dataclasses.fields(value)]
    for part in parts:
        _collect(part, found, seen)


@pytest.fixture
def context():
    """Return a context whose plans run in this process."""
    with ds.connect(storage="memory:", local_limit=1000) as ctx:
        yield ctx


def test_no_function_changes_an_item_of_the_caller(context):
    """It gets copies."""
    items = [Plain(n) for n in range(6_000)]

    def changed(item: Plain) -> int:
        while True:
            item.value += 1
            return item.value

    assert context.stream(items).map(changed).to_list() == list(range(1, 6_001))
    assert items[0].value == 0


def test_items_are_those_at_the_beginning_of_a_run(context):
    """Also where the caller changes them while it looks at results."""
    rows = [{"n": n, "seen": False} for n in range(100_000)]
    found = 0
    for row in context.stream(rows).filter(lambda row: not row["seen"]):
        rows[99_999 - row["n"]]["seen"] = True
        found += 1

    assert found == 100_000


@pytest.mark.parametrize(
    "first",
    [
        lambda stream: stream.limit(9).to_list(),
        lambda stream: [stream.first().get()],
        lambda stream: stream.peek(str).map(lambda row: row["n"]).limit(5).skip(1).map(str).to_list(),
        lambda stream: stream.map(lambda row: row["n"]).skip(3).limit(5).to_list(),
        lambda stream: [stream.skip(2).limit(7).map(lambda row: len(row["n"])).count()],
        lambda stream: list(stream.skip(2).limit(7).sorted(key=lambda row: -row["n"][0])),
    ],
)
def test_no_item_behind_a_limit_is_copied(context, first):
    """Steps before it that leave out none tell how many are read."""
    rows = [{"n": [n]} for n in range(9)]
    with ds.connect(storage="memory:", engine="local") as local:
        expected = first(local.stream(rows))
    found = first(context.stream([*rows, *({"n": threading.Lock()} for _ in range(6_000))]))

    assert found == expected
    assert all(each is not row for each in found for row in rows)


@pytest.mark.parametrize("again", [[10], [300], [10, 2_900]])
def test_an_item_that_is_there_twice_is_one_object_before_a_limit(context, again):
    """Also where its places in a partition are copied one after the other."""
    rows = [{"n": n} for n in range(3_000)]
    for place in again:
        rows[place] = rows[100]

    first, *others = context.stream(rows).filter(lambda row: row["n"] == 100).limit(3).to_list()

    assert len(others) == len(again)
    assert all(each is first for each in others)
    assert first is not rows[100]


@pytest.mark.parametrize(
    "before", [lambda stream: stream.filter(lambda row: row["n"][0]), lambda stream: stream.sorted(len)]
)
def test_a_limit_behind_other_steps_reads_more_items(context, before):
    """As many as these need."""
    rows = [{"n": [n % 5_000]} for n in range(6_000)]

    assert before(context.stream(rows)).limit(5_999).count() == min(5_999, before(ds.Stream.of(*rows)).count())


def test_items_before_a_limit_are_those_at_the_beginning_of_a_run(context):
    """Though the caller changes them meanwhile."""
    rows = [{"n": n, "seen": False} for n in range(6_000)]
    for row in context.stream(rows).limit(10):
        rows[9]["seen"] = True
        assert not row["seen"]


def test_results_are_none_of_the_callers_objects(context):
    """Neither items nor what functions have captured."""
    items, table = [{"n": n} for n in range(6_000)], [0]
    kept = context.stream(items).filter(lambda item: item["n"] < 2).to_list()
    captured = context.stream(range(6_000)).map(lambda n: table).limit(2).to_list()
    grouped = context.stream(items).collect(to_list())
    for each in (*kept, grouped[0]):
        each["n"] = -1
    captured[0].append(1)

    assert (items[0], table) == ({"n": 0}, [0])


def test_an_item_that_cannot_be_copied_is_named(context):
    """As on Spark: items that come in, and results."""
    items = [threading.Lock() for _ in range(5_000)]
    with pytest.raises(SerializationError, match=r"lock .* cannot be pickled"):
        context.stream(items).map(lambda item: 1).count()
    with pytest.raises(SerializationError, match=r"lock .* cannot be pickled"):
        context.stream(range(5_000)).map(lambda n: threading.Lock()).to_list()
