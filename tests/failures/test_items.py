"""The item that a failure names: the right one, whatever kind of function failed, wherever it stands."""

from __future__ import annotations

import dataclasses
import functools
import operator
from typing import Any

import pytest

import collectors as c
import dstream as ds
from dstream.failures import MISSING
from dstream.gatherers import Gatherer
from reducers import grouping_by_to_imap, to_imap


class Parse:
    """A callable object, and one with a method."""

    def __call__(self, text: str) -> int:
        return int(text)

    def method(self, text: str) -> int:
        """Do the same."""
        return int(text)


def rebinding(text: Any) -> int:
    """Give its argument's name to something else."""
    text = text.strip()
    return int(text)


def with_an_item(text: str) -> int:
    """Have a variable of its own that is called as ours is."""
    item = "not this one"
    return int(text) if item else 0


@functools.wraps(int)
def wrapped(*args: Any, **named: Any) -> int:
    """Pass everything on."""
    return int(*args, **named)


FUNCTIONS: dict[str, Any] = {
    "lambda": lambda text: int(text),
    "default": lambda text, k=1: int(text) * k,
    "keyword default": lambda text, *, k=1: int(text) * k,
    "star": lambda *args: int(args[0]),
    "builtin": int,
    "partial": functools.partial(int, base=10),
    "partial of two": functools.partial(lambda k, text: int(text) * k, 1),
    "object": Parse(),
    "method": Parse().method,
    "rebinding": rebinding,
    "own item": with_an_item,
    "wrapped": wrapped,
    "in C": {"1": 1, "2": 2, "3": 3}.__getitem__,
}
GETTER = operator.itemgetter(1)


class Then:
    """Calls `fn`, and then `after` on what it gave."""

    def __init__(self, fn: Any, after: Any) -> None:
        self.fn, self.after = fn, after

    def __call__(self, item: Any) -> Any:
        return self.after(self.fn(item))


def listed(value: Any) -> list[Any]:
    """Return a list of it."""
    return [value]


def append(fn: Any, held: list[Any], item: Any) -> None:
    """Accumulate what `fn` gives."""
    held.append(fn(item))


def number_of(text: str) -> int:
    """Return 0: one group for all."""
    return 0


def quoted(text: str) -> str:
    """Return another object of the same digits."""
    return f" {text}"


COLLECTORS: dict[str, Any] = {
    "all_of": lambda fn: c.all_of(c.counting(), c.summing(fn)),
    "averaging": c.averaging,
    "averaging_double": c.averaging_double,
    "averaging_int": c.averaging_int,
    "bottom_n": lambda fn: c.bottom_n(2, fn),
    "collecting_and_then": lambda fn: c.collecting_and_then(c.summing(fn), str),
    "filtering": lambda fn: c.filtering(fn, c.to_list()),
    "flat_mapping": lambda fn: c.flat_mapping(Then(fn, listed), c.to_list()),
    "flat_mapping inner": lambda fn: c.flat_mapping(listed, c.mapping(fn, c.to_set())),
    "grouping_by": c.grouping_by,
    "grouping_by counting": lambda fn: c.grouping_by(fn, c.counting()),
    "grouping_by downstream": lambda fn: c.grouping_by(number_of, c.summing(fn)),
    "grouping_by nested": lambda fn: c.grouping_by(number_of, c.mapping(str, c.grouping_by(fn))),
    "grouping_by top_n": lambda fn: c.grouping_by(number_of, c.top_n(1, fn)),
    "grouping_by_concurrent": c.grouping_by_concurrent,
    "linear_trend": lambda fn: c.linear_trend(fn, float),
    "mapping": lambda fn: c.mapping(fn, c.to_list()),
    "max_by": c.max_by,
    "min_by": c.min_by,
    "partitioning_by": c.partitioning_by,
    "partitioning_by downstream": lambda fn: c.partitioning_by(bool, c.summing(fn)),
    "quantiles": lambda fn: c.quantiles([0.5], fn),
    "reducing": lambda fn: c.reducing(0, fn, operator.add),
    "sorting": c.sorting,
    "stddev": c.stddev,
    "summarizing": c.summarizing,
    "summarizing_double": c.summarizing_double,
    "summing": c.summing,
    "summing_int": c.summing_int,
    "teeing": lambda fn: c.teeing(c.counting(), c.max_by(fn), operator.is_),
    "to_concurrent_map": lambda fn: c.to_concurrent_map(fn, str),
    "to_map": lambda fn: c.to_map(fn, str),
    "to_map value": lambda fn: c.to_map(str, fn),
    "top_n": lambda fn: c.top_n(2, fn),
    "to_unmodifiable_map": lambda fn: c.to_unmodifiable_map(str, fn),
    "variance": c.variance,
    "of functions": lambda fn: ds.Collector(list, functools.partial(append, fn), list.extend),
}


def integrate(fn: Any, state: None, item: Any, downstream: Any) -> None:
    """Push what `fn` gives."""
    downstream.push(fn(item))


STEPS: dict[str, Any] = {
    "map": lambda s, fn: s.map(fn).to_list(),
    "map_to_int": lambda s, fn: s.map_to_int(fn).sum(),
    "filter": lambda s, fn: s.filter(fn).count(),
    "flat_map": lambda s, fn: s.flat_map(Then(fn, listed)).to_list(),
    "peek": lambda s, fn: s.peek(fn).to_list(),
    "distinct": lambda s, fn: s.distinct(key=fn).to_list(),
    "sorted": lambda s, fn: s.sorted(key=fn).to_list(),
    "top": lambda s, fn: s.top(2, key=fn).to_list(),
    "min": lambda s, fn: s.min(key=fn),
    "max": lambda s, fn: s.max(key=fn),
    "take_while": lambda s, fn: s.take_while(fn).to_list(),
    "drop_while": lambda s, fn: s.drop_while(fn).to_list(),
    "any_match": lambda s, fn: s.any_match(Then(fn, operator.not_)),
    "all_match": lambda s, fn: s.all_match(fn),
    "for_each": lambda s, fn: s.for_each(fn),
    "key_by": lambda s, fn: s.key_by(fn).to_list(),
    "join": lambda s, fn: s.join(s, on=fn).to_list(),
    "cogroup": lambda s, fn: s.cogroup(s, on=fn).to_list(),
    "partition_by": lambda s, fn: s.partition_by(2, key=fn).to_list(),
    "gather": lambda s, fn: s.gather(Gatherer.of(integrator=functools.partial(integrate, fn))).to_list(),
    "to_imap key": lambda s, fn: s.collect(to_imap("keys", fn, str)),
    "to_imap value": lambda s, fn: s.collect(to_imap("values", str, fn)),
    "grouping_by_to_imap": lambda s, fn: s.collect(grouping_by_to_imap("groups", fn, c.counting())),
    "three functions": lambda s, fn: s.collect(list, functools.partial(append, fn), list.extend),
}
PLACES = {**STEPS, **{f"collect {name}": made for name, made in COLLECTORS.items()}}
TEXTS = ["1", "2", "x", "3"]


def failing_item(run: Any) -> Any:
    """Return the item on which `run` fails."""
    with pytest.raises((ValueError, KeyError)) as caught:
        run()
    return ds.failure(caught.value).item


def run_at(place: str, stream: Any, fn: Any) -> Any:
    """Run a function in a place."""
    made = PLACES[place]
    return made(stream, fn) if place in STEPS else stream.collect(made(fn))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_the_item_is_right_for_every_kind_of_function(local_context, kind, place):
    """In every place where a function of one item may stand."""
    assert failing_item(lambda: run_at(place, local_context.stream(TEXTS), FUNCTIONS[kind])) == "x"


ON_WORKERS = [
    "grouping_by counting",
    "grouping_by downstream",
    "flat_mapping inner",
    "max_by",
    "sorting",
    "of functions",
]


@pytest.mark.parametrize("place", [*STEPS, *(f"collect {name}" for name in ON_WORKERS)])
def test_the_item_comes_from_a_worker(spark_context, place):
    """The same places, with the kind of function that has most parameters."""
    stream = spark_context.stream(TEXTS, 1)

    assert failing_item(lambda: run_at(place, stream, FUNCTIONS["default"])) == "x"


def test_the_item_is_that_of_the_step(engine):
    """What a collector was given, not what a function before made of it: a replay starts there."""
    pairs = engine.stream([("a", "1"), ("b", "x"), ("a", "x")], 1)
    nested = c.grouping_by(operator.itemgetter(0), c.mapping(GETTER, c.mapping(quoted, c.summing(int))))
    flat = c.flat_mapping(lambda pair: iter(pair[1]), c.reducing(0, int, operator.add))

    assert failing_item(lambda: pairs.collect(nested)) == ("b", "x")
    assert failing_item(lambda: pairs.collect(c.filtering(bool, flat))) == ("b", "x")
    assert failing_item(lambda: pairs.collect(c.teeing(c.counting(), nested, max))) == ("b", "x")


@pytest.mark.parametrize("classifier", [lambda n: next(iter(())) if n == 2 else n, Then(iter, next)])
def test_a_function_that_raises_stop_iteration_ends_no_batch(engine, classifier):
    """What iterates over a batch would take it for the end, and lose items."""
    with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
        engine.stream([[1], [], [2]] if isinstance(classifier, Then) else [1, 2, 3], 1).collect(
            c.grouping_by(classifier, c.counting())
        )
    assert ds.failure(caught.value).item in ([], 2)


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    """An exception that refuses every attribute, those of Python itself among them."""

    code: int


class Mute(Exception):
    """An exception that takes no notes."""

    def add_note(self, note: str, /) -> None:
        """Refuse it."""
        raise RuntimeError("no notes")


def raising(error: BaseException, on: int) -> Any:
    """Return a function that raises `error` on one number."""

    def fn(number: int, *_: Any) -> int:
        if number == on:
            raise error
        return number

    return fn


BLAMING: dict[str, Any] = {
    "map": lambda s, fn: s.map(fn).to_list(),
    "grouping_by": lambda s, fn: s.collect(c.grouping_by(fn)),
    "max_by": lambda s, fn: s.collect(c.max_by(fn)),
    "gather": lambda s, fn: s.gather(Gatherer.of(integrator=lambda _, item, downstream: fn(item))).to_list(),
    "map_concurrent": lambda s, fn: s.gather(ds.gatherers.map_concurrent(2, fn)).to_list(),
}


@pytest.mark.parametrize("error", [Frozen(1), Mute()], ids=["frozen", "mute"])
@pytest.mark.parametrize("place", BLAMING)
def test_an_exception_that_refuses_attributes_comes_out_as_it_is(local_context, place, error):
    """A frozen dataclass as an exception keeps its type, and has its notes."""
    with pytest.raises(type(error)) as caught:
        BLAMING[place](local_context.stream([1, 2, 3]), raising(error, 2))

    assert ds.failure(caught.value).item == 2
    assert any(note.startswith("Where: step 2 of 2") for note in caught.value.__notes__)


def test_an_exception_that_is_raised_again_has_the_item_of_this_time(local_context):
    """What one run found is no part of the next: an exception may be an object of a module, raised again and again."""
    error = ValueError("always the same")
    stream = local_context.stream([3, 1, 2, 5])
    for on in (2, 5):
        with pytest.raises(ValueError, match="always the same") as grouped:
            stream.collect(c.grouping_by(raising(error, on)))
        with pytest.raises(ValueError, match="always the same") as teed:
            stream.collect(c.teeing(c.counting(), c.counting(), lambda *_: raising(error, 7)(7)))

        assert ds.failure(grouped.value).item == on
        assert ds.failure(teed.value).item is MISSING
        assert ds.failure(teed.value).inner is None
        assert [note.partition(":")[0] for note in teed.value.__notes__] == ["What happened", "Where", "What to do"]


def test_the_item_of_a_collector_that_was_caught_is_not_that_of_a_step(local_context):
    """A collector that a function runs itself names no item of the stream."""

    def inner(items: list[int]) -> Any:
        return c.grouping_by(raising(ValueError("twenty"), 20)).collect([10, 20])

    with pytest.raises(ValueError, match="twenty") as caught:
        local_context.stream([1, 2]).collect(c.collecting_and_then(c.to_list(), inner))

    assert ds.failure(caught.value).item != 20


STOPPING: dict[str, Any] = {
    **{name: BLAMING[name] for name in ("map", "grouping_by", "max_by", "map_concurrent")},
    "flat_mapping": lambda s, fn: s.collect(c.flat_mapping(lambda item: [fn(item)], c.to_list())),
    "filtering": lambda s, fn: s.collect(c.filtering(fn, c.to_list())),
    "below": lambda s, fn: s.collect(c.grouping_by(bool, c.flat_mapping(lambda item: [fn(item)], c.to_list()))),
}


@pytest.mark.parametrize("place", STOPPING)
def test_a_function_that_raises_stop_iteration_is_blamed_with_its_item(local_context, place):
    """It is an error, loses no item in silence, and names the one it was raised on."""
    with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
        STOPPING[place](local_context.stream([1, 2, 3]), raising(StopIteration(), 2))

    assert ds.failure(caught.value).item == 2


COMPARING: dict[str, Any] = {
    "sorted": lambda s, fn: s.sorted(fn).to_list(),
    "top": lambda s, fn: s.top(1, fn).to_list(),
    "min": lambda s, fn: s.min(fn),
    "max": lambda s, fn: s.max(fn),
    **{name: lambda s, fn, name=name: s.collect(getattr(c, name)(fn)) for name in ("min_by", "max_by", "sorting")},
    **{name: lambda s, fn, name=name: s.collect(getattr(c, name)(1, fn)) for name in ("top_n", "bottom_n")},
}


@pytest.mark.parametrize("place", COMPARING)
def test_a_comparator_is_told_from_a_key_function(local_context, place):
    """Java's comparators take two items: `functools.cmp_to_key` makes a key function of one."""
    with pytest.raises(TypeError) as caught:
        COMPARING[place](local_context.stream([3, 1]), lambda a, b: a - b)

    assert "functools.cmp_to_key" in caught.value.__notes__[2]
    assert "cannot be compared" not in caught.value.__notes__[0]


KEYLESS: dict[str, Any] = {
    "reduce_by_key": lambda s, e: s.reduce_by_key(max).to_list(),
    "count_by_key": lambda s, e: s.count_by_key().to_list(),
    "aggregate_by_key": lambda s, e: s.aggregate_by_key(c.to_list()).to_list(),
    "join": lambda s, e: s.join(e.stream([("a", 1)], 2).key_by(lambda pair: pair[0])).to_list(),
    "semi_join": lambda s, e: s.semi_join(e.stream([("a", 1)], 2).key_by(lambda pair: pair[0])).to_list(),
    "distinct": lambda s, e: s.distinct(lambda entry: entry.key).to_list(),
    "grouping_by": lambda s, e: s.collect(c.grouping_by(lambda entry: entry.key)),
    "to_map": lambda s, e: s.collect(c.to_map(lambda entry: entry.key, lambda entry: entry.value)),
    "to_imap": lambda s, e: s.collect(to_imap("without", merge=max)),
    "to_imap of a key": lambda s, e: s.collect(to_imap("without", lambda entry: entry.key, lambda entry: 1)),
}


@pytest.mark.parametrize("place", KEYLESS)
def test_a_key_without_a_hash_is_told_with_its_item(engine, place):
    """Whatever brings items together by their keys."""
    pairs = engine.stream([("a", 1), ("b", 2), ([3], 3), ("c", 4)], 2)
    with pytest.raises(ds.errors.UnstableKeyError, match="has no hash") as caught:
        KEYLESS[place](pairs.key_by(lambda pair: pair[0]).map_values(lambda pair: pair[1]), engine)

    assert ds.failure(caught.value).item == ds.Entry([3], 3)


def test_a_key_without_a_hash_is_told_with_its_item_where_both_sides_of_a_join_travel(spark_context):
    """The right side is too large to be looked up in each task."""
    left = spark_context.stream([("a", 1), ([3], 3)], 2).key_by(lambda pair: pair[0])
    right = spark_context.stream(range(200_000), 2).key_by(lambda number: number)
    with pytest.raises(ds.errors.UnstableKeyError, match="has no hash") as caught:
        left.join(right).to_list()

    assert ds.failure(caught.value).item == ds.Entry([3], ([3], 3))
