"""What a sink refuses by the shape of an item is told before everything is sorted for it."""

from __future__ import annotations

import sqlite3
from collections import deque
from contextlib import closing

import pytest

import dstream as ds
from collectors import grouping_by, to_map
from dstream.connectors.kafka.sinks import MessageMaker, StagingWriter
from dstream.engine.tasks.routing import RouteGroups
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sorting import SortRuns
from dstream.errors import SinkError
from dstream.plan.steps import Step
from reducers import grouping_by_to_imap, to_file, to_files, to_icache, to_ilist, to_imap, to_iset, to_sql

MANY = 100_000
REFUSED = {
    "csv of tuples": (lambda place: to_files(place, format="csv"), lambda n: (n, n), "no names for its columns"),
    "csv of lists": (
        lambda place: to_files(place, format="csv", columns=["n"]),
        lambda n: ([],),
        "list cannot be stored",
    ),
    "json": (lambda place: to_files(place, format="json"), lambda n: {"n": n, "of": 1j}, "complex cannot be stored"),
    "parquet": (lambda place: to_files(place, format="parquet"), str, "has no columns"),
    "avro": (lambda place: to_files(place, format="avro"), str, "has no columns"),
    "delta": (lambda place: to_files(place, format="delta"), str, "has no columns"),
    "one file": (lambda place: to_file(f"{place}.csv"), lambda n: (n, n), "no names for its columns"),
    "a table": (lambda place: to_sql(f"sqlite:///{place}.db", "rows"), lambda n: {"m": n}, "'m'"),
    "a map of no pairs": (lambda place: to_imap("plain"), str, "must be an entry or a pair"),
    "a map of None": (lambda place: to_imap("plain"), lambda n: (None, n), "None"),
    "a strict map": (lambda place: to_imap("typed"), lambda n: (n, str(n)), "its values are int"),
    "a strict list": (lambda place: to_ilist("typed"), str, "its values are int"),
    "a cache of no pairs": (lambda place: to_icache("cache"), str, "must be an entry or a pair"),
}


@pytest.fixture(scope="module")
def ctx(tmp_path_factory):
    """A context of the local engine, with collections that are strict."""
    with ds.connect(engine="local", storage=tmp_path_factory.mktemp("early") / "lake") as made:
        strict_ones(made)
        yield made


def strict_ones(ctx):
    """Make the collections of the table."""
    ctx.get_map("typed", key_type=int, value_type=int, strict=True)
    ctx.get_list("typed", value_type=int, strict=True)
    ctx.get_cache("cache", ttl=600)


def failure(stream, sink):
    """Return what a sink refuses."""
    with pytest.raises((TypeError, ValueError, SinkError)) as refused:
        stream.collect(sink)
    return refused.value


@pytest.mark.parametrize("case", REFUSED)
def test_a_sink_refuses_the_first_item_before_all_are_sorted(ctx, tmp_path, case):
    """In the words that it has without the sort, and in the name of its own step."""
    make, shape, words = REFUSED[case]
    with closing(sqlite3.connect(tmp_path / "out.db")) as database, database:
        database.execute("CREATE TABLE rows (n INTEGER)")
    sink, last = make(tmp_path / "out"), deque(maxlen=1)
    items = ctx.stream(range(MANY)).peek(last.append).map(shape)
    refused = failure(items.sorted(key=repr), sink)
    assert last[0] < MANY - 1
    plain = failure(items.limit(1), sink)

    assert words in str(refused)
    assert (type(refused), str(refused)) == (type(plain), str(plain))
    assert "step 5 of 5" in "".join(refused.__notes__)
    assert f".collect({sink.label})" in "".join(refused.__notes__)


class NotOrdered:
    """Equal by value, without an order."""

    def __eq__(self, other):
        return isinstance(other, NotOrdered)

    def __hash__(self):
        return 1


class NoKey:
    """Equal by identity."""


KEYS = {
    "sorted": (lambda items: items.sorted().to_list(), lambda n: {"n": n}, "'<' not supported"),
    "sorted, mixed": (lambda items: items.sorted().to_list(), lambda n: n if n % 2 else str(n), "'<' not supported"),
    "sorted by key": (lambda items: items.sorted(key=complex).to_list(), int, "'<' not supported"),
    "top": (lambda items: items.sorted().limit(3).to_list(), lambda n: NotOrdered(), "'<' not supported"),
    "distinct": (lambda items: items.distinct().to_list(), lambda n: NoKey(), "cannot be a key"),
    "sorted and distinct": (lambda items: items.sorted(key=str).distinct().to_list(), lambda n: [n], "no hash"),
    "grouped": (lambda items: items.collect(grouping_by(lambda item: item)), lambda n: [n], "no hash"),
    "counted by key": (lambda items: items.key_by(list).count_by_key().to_list(), lambda n: (n,), "no hash"),
    "a dict": (lambda items: items.collect(to_map(lambda item: item, str)), lambda n: NoKey(), "cannot be a key"),
    "a map": (lambda items: items.collect(to_imap("keys", lambda item: item, id)), lambda n: NotOrdered(), "encoding"),
    "a map of groups": (
        lambda items: items.collect(grouping_by_to_imap("groups", lambda item: item)),
        lambda n: NotOrdered(),
        "encoding",
    ),
    "a set": (lambda items: items.collect(to_iset("set")), lambda n: NotOrdered(), "encoding"),
}


@pytest.mark.parametrize("case", KEYS)
def test_what_cannot_be_a_key_is_refused_among_the_first_items(ctx, case):
    """It was after the last one where the end compares keys, or divides them into buckets."""
    end, shape, words = KEYS[case]
    last = deque(maxlen=1)
    with pytest.raises(TypeError, match=words) as refused:
        end(ctx.stream(range(MANY)).peek(last.append).map(shape))

    assert last[0] < MANY // 10
    assert "step" in "".join(refused.value.__notes__)


def test_a_sort_asks_for_each_key_once(ctx):
    """Also for those that are compared before the others are read."""
    asked = []
    items = ctx.stream([3, 1, 2]).sorted(key=lambda n: asked.append(n) or n).to_list()

    assert (items, sorted(asked)) == ([1, 2, 3], [1, 2, 3])
    assert ctx.stream([{}]).sorted().to_list() == [{}]
    assert ctx.stream([float("nan"), 1, 0.5]).sorted(reverse=True).to_list()[-2:] == [1, 0.5]


def test_a_task_of_spark_compares_the_first_keys_first(monkeypatch):
    """Its first two items are enough."""
    step = Step(".sorted()", None, 1, 1)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    sinks = [SortRuns(None, False, step), RouteGroups(grouping_by(lambda item: item), 2, step)]
    for sink, shape in zip(sinks, (lambda n: {}, lambda n: Holding()), strict=True):
        last = deque(maxlen=1)
        with pytest.raises(TypeError):
            list(sink((last.append(n) or shape(n) for n in range(MANY)), StageTask(0, 2**40)))
        assert last[0] < MANY // 10


class Holding(NotOrdered):
    """A key that holds a list, which no key may."""

    __hash__ = None


def test_spark_refuses_before_the_sort_too(spark_context, tmp_path):
    """Its tasks write runs; a row of the first one is looked at, also where keys stand in columns."""
    items = spark_context.stream(range(1_000)).parallel(2).map(lambda n: (n, n))
    for key in (None, lambda pair: pair[1]):
        refused = failure(items.sorted(key), to_files(tmp_path / "out", format="csv"))
        assert "no names for its columns" in str(refused)
        assert "worker" in "".join(refused.__notes__)


@pytest.mark.parametrize(
    "between",
    [
        lambda items: items.sorted().map(lambda pair: {"n": pair[0]}),
        lambda items: items.sorted().filter(lambda pair: False),
        lambda items: items.sorted().limit(0),
        lambda items: items.sorted().map(lambda pair: {"n": pair[0]}).sorted(key=str),
    ],
)
def test_what_does_not_reach_the_sink_is_not_refused(ctx, tmp_path, between):
    """A step between changes items, or lets none through."""
    paths = between(ctx.stream([(1, 1), (2, 2)])).collect(to_files(tmp_path / "out", format="csv"))

    assert len(paths) <= 1


def test_no_function_of_the_user_is_called_to_look(ctx, tmp_path):
    """Each is called as often as there are items."""
    called = []
    items = ctx.stream([2, 1]).sorted()
    items.collect(to_files(tmp_path / "out", to_string=lambda n: called.append(n) or str(n)))
    items.collect(to_imap("plain", lambda n: called.append(n) or n, lambda n: n))
    making = MessageMaker(None, lambda n: called.append(n) or str(n), None)
    StagingWriter(making, "run", 1, None).check_item(3)

    assert called == [1, 2, 1, 2]


def test_an_item_that_is_no_message_of_kafka_is_refused():
    """Where no function makes one of it."""
    with pytest.raises(TypeError, match="must make bytes, a str or None, not int 3"):
        StagingWriter(MessageMaker(None, None, None), "run", 1, None).check_item(3)
