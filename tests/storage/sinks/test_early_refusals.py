"""What a sink refuses by the shape of an item is told before everything is sorted for it."""

from __future__ import annotations

import sqlite3
from collections import deque

import pytest

import dstream as ds
from dstream.errors import SinkError
from reducers import to_file, to_files, to_icache, to_ilist, to_imap, to_sql
from reducers.kafka_messages import Making
from reducers.kafka_staging import StagingWriter

MANY = 100_000
REFUSED = {
    "csv of tuples": (lambda place: to_files(place, format="csv"), lambda n: (n, n), "no names for its columns"),
    "csv of lists": (lambda place: to_files(place, format="csv", columns=["n"]), lambda n: ([],), "no form for list"),
    "json": (lambda place: to_files(place, format="json"), lambda n: {"n": n, "of": 1j}, "JSON has no form"),
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
    with sqlite3.connect(tmp_path / "out.db") as database:
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
    making = Making(None, lambda n: called.append(n) or str(n), None)
    StagingWriter(making, "run", 1, None).check_item(3)

    assert called == [1, 2, 1, 2]


def test_an_item_that_is_no_message_of_kafka_is_refused():
    """Where no function makes one of it."""
    with pytest.raises(TypeError, match="must make bytes, a str or None, not int 3"):
        StagingWriter(Making(None, None, None), "run", 1, None).check_item(3)
