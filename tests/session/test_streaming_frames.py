"""Batches of Structured Streaming go through streams into sinks."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

import dstream as ds
from dstream.errors import UnsupportedError
from dstream.session.streaming import StreamingFrame
from dstream.testing.engines import MASTER, SETTINGS
from reducers import to_ilist, to_imap


@dataclass
class Word:
    """A line of a file of JSON."""

    word: str


@pytest.fixture
def folder(tmp_path):
    """A folder with one file of words."""
    made = tmp_path / "words"
    made.mkdir()
    put(made, "first", "a", "b", "a")
    return made


def put(folder, name, *words):
    """Put a file of words into the folder."""
    (folder / f"{name}.json").write_text("".join(json.dumps({"word": word}) + "\n" for word in words))


def words_of(context, folder):
    """Return the streaming DataFrame of what comes into the folder."""
    return context.spark.readStream.schema("word string").json(str(folder))


def run_to_the_end(context, folder, tmp_path):
    """Count the words that came, merged with those of before."""
    sink = to_imap(tmp_path.name, lambda each: each.word, lambda each: 1, lambda a, b: a + b, on_existing="merge")
    frame = context.from_streaming_df(words_of(context, folder), Word)
    frame.collect(
        sink, lambda rows: rows.filter(lambda each: each.word != "c"), checkpoint=tmp_path / "at", until_now=True
    ).awaitTermination(60)
    return context.get_map(tmp_path.name).copy()


@pytest.fixture(params=["spark", "auto"])
def context(request, spark_context, data):
    """A context on Spark, and one that starts it for the DataFrame."""
    if request.param == "spark":
        yield spark_context
        return
    with ds.connect(MASTER, engine="auto", config=SETTINGS, storage=data) as context:
        yield context


def test_batches_go_into_a_map(context, folder, tmp_path):
    """Each file once, across queries with one checkpoint."""
    assert run_to_the_end(context, folder, tmp_path) == {"a": 2, "b": 1}
    put(folder, "second", "a", "c")
    assert run_to_the_end(context, folder, tmp_path) == {"a": 3, "b": 1}


def test_a_batch_that_comes_again_changes_nothing(spark_context, folder, tmp_path):
    """As after a crash before Spark has noted that it was done."""
    assert run_to_the_end(spark_context, folder, tmp_path) == {"a": 2, "b": 1}
    for note in (tmp_path / "at" / "commits").glob("*0*"):
        note.unlink()

    assert run_to_the_end(spark_context, folder, tmp_path) == {"a": 2, "b": 1}


def test_a_function_takes_batches(spark_context, folder):
    """Rows are dictionaries, as those of from_df."""
    got = []
    frame = spark_context.from_streaming_df(words_of(spark_context, folder))
    frame.for_each_batch(lambda rows, number: got.append((number, rows.count())), until_now=True).awaitTermination(60)

    assert got == [(0, 3)]


def test_a_failure_stops_the_query(spark_context, folder, tmp_path):
    """Spark's exception has the user's in its text; the sink is as it was."""
    frame = spark_context.from_streaming_df(words_of(spark_context, folder))
    query = frame.collect(to_ilist(tmp_path.name), lambda rows: rows.map(lambda row: 1 // 0), until_now=True)
    with pytest.raises(Exception, match="ZeroDivisionError"):
        query.awaitTermination(60)

    assert spark_context.get_list(tmp_path.name).copy() == []


async def awaited(*given):
    """Do nothing, since nobody awaits it."""


def yielding(*given):
    """Do nothing, since nobody asks for what it yields."""
    yield given


@pytest.mark.parametrize("fn", [awaited, yielding])
def test_a_function_that_would_not_run_is_refused(fn):
    """Spark would note that its batches are done."""
    frame = StreamingFrame(None, None, None)
    with pytest.raises(TypeError, match="fn must give a result"):
        frame.for_each_batch(fn)
    with pytest.raises(TypeError, match="through must give a result"):
        frame.collect(to_ilist("words"), fn)


def test_steps_through_which_rows_go_give_a_stream(local_context):
    """The message says so when the first batch comes."""
    rows, batches = local_context.stream([1]), []
    frame = StreamingFrame(local_context, None, None)
    frame._started = lambda take, *settings: batches.append(take)
    frame.collect(to_ilist("words"), lambda rows: None)
    with pytest.raises(TypeError, match="through must return a stream, not None"):
        batches[0]("id", rows, 0)


def test_what_has_no_batches_is_refused(spark_context):
    """Where streams of Spark are not, or the DataFrame is none."""
    with pytest.raises(TypeError, match="df must be a streaming DataFrame"):
        spark_context.from_streaming_df(spark_context.spark.range(2))
    with (
        ds.connect(engine="local", storage="memory:") as here,
        pytest.raises(UnsupportedError, match="the local engine has no DataFrames of Spark"),
    ):
        here.from_streaming_df(None)
