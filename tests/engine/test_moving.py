"""Runs that move from this process to Spark between two tasks: what is read, called, told and left behind."""

from __future__ import annotations

import os
import re
import tempfile
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pytest

import dstream as ds
import sources
from collectors import counting, grouping_by, to_list
from dstream import errors
from dstream.engine.inprocess import InProcessEngine
from dstream.gatherers import window_fixed
from dstream.keys import stable_hash
from dstream.keys.hashing import SPREADERS, hash_without_seed
from dstream.spi.runtime import Service
from reducers import to_ilist
from tests.engine.moving_here import MovingEngine


@pytest.fixture(scope="module")
def moving_to_spark(spark_context, data):
    """A context whose runs move to the Spark of the test run, at random, and its engine."""
    spark = spark_context.running_engine()
    engine = MovingEngine(lambda run, call, cancellation: spark.remote(run, call, cancellation))
    with ds.connect(engine="local", storage=data) as context:
        context._engine, context._engine_name = engine, engine.name
        yield context, engine


@pytest.fixture(params=["here", "spark"])
def moving(request):
    """A context whose runs move, to copies here or to Spark, and its engine."""
    if request.param == "here":
        context = request.getfixturevalue("moving_context")
        return context, context.running_engine()
    return request.getfixturevalue("moving_to_spark")


PLANS = {
    "list": lambda stream: stream.map(lambda n: n * n).to_list(),
    "sum": lambda stream: stream.map_to_int(lambda n: n % 7).sum(),
    "sorted": lambda stream: stream.sorted(lambda n: -n).limit(50).to_list(),
    "distinct": lambda stream: sorted(stream.map(lambda n: n % 13).distinct().to_list()),
    "groups": lambda stream: stream.collect(grouping_by(lambda n: n % 5, counting())),
    "lists of groups": lambda stream: stream.collect(grouping_by(lambda n: n % 3, to_list())),
    "loop": lambda stream: list(stream.filter(lambda n: n % 2)),
    "prefix": lambda stream: stream.take_while(lambda n: n > 30).to_list(),
    "rest": lambda stream: stream.drop_while(lambda n: n > 70).map(lambda n: -n).to_list(),
    "windows": lambda stream: stream.gather(window_fixed(7)).to_list(),
    "kept": lambda stream: stream.cache().map(lambda n: -n).to_list(),
    "joined": lambda stream: sorted(stream.join(stream.filter(lambda n: n % 9 == 0), on=lambda n: n).to_list()),
    "limit": lambda stream: stream.skip(30).limit(40).to_list(),
    "table": lambda stream: stream.map(lambda n: {"n": n}).to_arrow().column("n").to_pylist(),
    "two parts": lambda stream: (stream.sorted() + stream.map(lambda n: -n)).to_list(),
}


@pytest.mark.parametrize("name", PLANS)
def test_results_are_the_same_wherever_a_run_moves(moving, local_context, name):
    """A run that moves before any of its tasks gives what one gives that stays."""
    context, engine = moving
    items = [*range(100, 0, -1)]
    expected = PLANS[name](local_context.stream(items, 5))
    before = len(engine.borders)
    for _ in range(6):
        assert PLANS[name](context.stream(items, 5)) == expected
    assert sum(border.moves for border in engine.borders[before:]) > 0


def test_texts_meet_at_one_target_wherever_they_are_sent_from(moving):
    """The seed of the hashes of texts differs from process to process."""
    context, engine = moving
    words = [f"word {n % 50}" for n in range(500)]
    for _ in range(4):
        stream = context.stream(words, 5)
        assert stream.collect(grouping_by(lambda word: word, counting())) == dict.fromkeys(words, 10)
        assert stream.map(lambda word: (word, b"x", None)).distinct().count() == 50
    assert any(border.moves for border in engine.borders)


def test_the_hashes_of_this_process_change_before_the_first_task():
    """A task that puts groups into files finds each key where it was put."""
    hash_without_seed(False)
    InProcessEngine(2**20)
    assert stable_hash("a") == hash((crc32(b"a"), *SPREADERS))


@dataclass(frozen=True)
class Word:
    """A key with a hash of its own."""

    text: str

    def __hash__(self):
        return hash(self.text)


def test_keys_with_a_hash_of_their_own_stay_where_they_were_sent_to(moving):
    """Nobody else knows what a class makes of the seed of this process."""
    context, _ = moving
    words = [f"word {n % 50}" for n in range(500)]
    for _ in range(4):
        groups = context.stream(words, 5).collect(grouping_by(Word, counting()))
        assert {word.text: count for word, count in groups.items()} == dict.fromkeys(words, 10)


def test_no_function_is_called_twice_for_an_item(moving, tmp_path):
    """Each item leaves its mark once, in this process or in a worker."""
    context, engine = moving
    for number in range(4):
        marks = tmp_path / str(number)
        marks.mkdir()

        def marking(item, marks=str(marks)):
            os.close(os.open(os.path.join(marks, str(item)), os.O_CREAT | os.O_EXCL))
            return item

        assert context.stream(range(20), 5).map(marking).sorted().count() == 20
        assert len(os.listdir(marks)) == 20
    assert any(border.moves for border in engine.borders)


def test_an_iterator_is_asked_no_item_twice(moving):
    """The items of a generator that were not read here travel; those that were read stay where they are."""
    context, _ = moving
    for _ in range(4):
        asked = []

        def items(asked=asked):
            for n in range(5_000):
                asked.append(n)
                yield n

        assert context.stream(items()).map(lambda n: n + 1).to_list() == [*range(1, 5_001)]
        assert asked == [*range(5_000)]


def test_peek_and_letters_have_every_item_once(moving):
    """Actions run in this process, also for the items of tasks elsewhere, in their order."""
    context, _ = moving
    for number in range(4):
        seen, name = [], f"letters-{uuid.uuid4().hex}"
        stream = context.stream(range(40), 5).peek(seen.append).map(lambda n: 10 // (n % 4))
        found = stream.on_error(ZeroDivisionError, into=to_ilist(name)).to_list()
        assert (seen, len(found)) == ([*range(40)], 30)
        assert [letter.item for letter in context.get_list(name)] == [*range(0, 40, 4)], number


def test_an_error_elsewhere_names_the_step_and_the_item(moving):
    """It reads as one of a run that stays."""
    context, _ = moving
    for _ in range(4):
        with pytest.raises(ZeroDivisionError) as caught:
            context.stream(range(40), 5).map(lambda n: 1 // (39 - n)).sorted().to_list()
        assert "on the item 39" in "\n".join(caught.value.__notes__)


def test_a_limit_holds_where_the_run_moves_to(moving):
    """No task reads beyond it: what follows in its piece may fail, or have no end."""
    context, engine = moving
    for _ in range(4):
        stream = context.stream(range(40), 5).map(lambda n: n) + ds.Stream.iterate(40, lambda n: n + 1)
        assert stream.limit(60).to_list() == [*range(60)]
        assert len([*context.stream(range(40), 2).map(lambda n: 1 // (19 - n)).limit(15)]) == 15
    assert any(border.moves for border in engine.borders)


def test_services_end_on_both_sides(moving, tmp_path):
    """Each that was made is destroyed, in this process and in the workers."""
    context, _ = moving
    made, ended = tmp_path / "made", tmp_path / "ended"

    def mark(path):
        with path.open("a") as file:
            file.write("x")
        return path

    service = Service(lambda: mark(made), destroy=lambda _: mark(ended))
    for _ in range(4):
        name, pipeline = f"served-{uuid.uuid4().hex}", ds.Pipeline()
        stage = pipeline.read_from(sources.items(*range(40))).map_using(service, lambda _, n: n)
        stage.write_to(to_ilist(name))
        context.new_job(pipeline).join()
        assert [*context.get_list(name)] == [*range(40)]
    assert len(made.read_text()) == len(ended.read_text()) > 0


def test_nothing_is_left_of_the_rows_between_tasks(moving, monkeypatch, tmp_path):
    """The files of rows are removed at the end, also of a run that fails."""
    context, _ = moving
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for _ in range(3):
        assert context.stream(["x" * 100_000] * 40, 5).sorted().count() == 40
        with pytest.raises(ZeroDivisionError):
            context.stream(["x" * 100_000] * 40, 5).sorted().map(lambda _: 1 // 0).to_list()
    assert not [*Path(tmp_path).glob("dstream.rows-*")]


def test_what_cannot_travel_is_refused_before_it_runs(moving):
    """A capture that a worker could not have is refused, whether or not the run moves."""
    context, _ = moving
    lock = threading.Lock()
    with pytest.raises(errors.SerializationError, match="lock"):
        context.stream(range(40), 5).map(lambda n: lock.locked()).to_list()


def test_an_item_that_cannot_move_is_named(moving_to_spark):
    """As one that Spark reads from the beginning: the run fails, and gives no part of its results."""

    class Locked:
        lock = threading.Lock()

        def __init__(self, n):
            self.n = n

        def __repr__(self):
            return f"Locked({self.n})"

    def refusal(end):
        try:
            assert len(end(context.stream([Locked(n) for n in range(40)], 5))) == 40
        except errors.SerializationError as error:
            return "\n".join([str(error), *error.__notes__])
        return ""

    context, engine = moving_to_spark
    moved = len(engine.borders)
    ends = (lambda stream: stream.to_list(), lambda stream: stream.map(lambda each: each.n).sorted().to_list())
    refused = list(filter(None, map(refusal, ends * 8)))
    assert 0 < len(refused) <= sum(border.moves for border in engine.borders[moved:])
    for each in refused:
        assert re.search(r"Locked Locked\(\d+\) cannot be pickled: cannot pickle '_thread.lock' object", each)
        assert "stream(list)" in each
