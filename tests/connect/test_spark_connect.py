"""A context on a server of Spark Connect: the same results, failures and ways to end a run as in one process."""

from __future__ import annotations

import gc
import itertools
import operator
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from uuid import uuid4

import pytest

import dstream as ds
from collectors import counting, grouping_by, joining, teeing, to_bags, to_list, to_map, top_n
from dstream.engine.spark.port.connect import ConnectJobs
from dstream.engine.spark.run import backend
from dstream.engine.spark.session import launch
from dstream.errors import CancelledError, SetupError, SourceError, UnsupportedError
from dstream.gatherers import window_sliding
from dstream.plan import ToList, rewrite
from dstream.plan.operations.calls import WithService
from dstream.plan.operations.keyed import Stateful
from dstream.plan.operations.pairs import HashJoin
from dstream.plan.operations.streams import Spread
from dstream.spi.runtime import Service
from dstream.stream import Stream
from dstream.stream.keyed import aggregated
from reducers import to_ilist, to_imap
from sources import items

SAMPLES = Path(__file__).parents[2] / "docs/samples"
SETTING = {"spark.sql.shuffle.partitions": "3"}


class Identified(NamedTuple):
    """A struct of a DataFrame."""

    id: int


class Linked(NamedTuple):
    """A row of a DataFrame."""

    id: int
    next: Identified


def co_aggregated(s, by_key):
    """Aggregate a stream with another one, in a container of both."""
    keys = [lambda n: n % 7, lambda text: int(text) % 7] if by_key else None
    return Stream(aggregated([s._node, s.map(str)._node], to_bags(2), keys), s._runtime)


def running(s, key):
    """Number the items, or those of each key."""
    counts = Stateful(s._node, lambda: [0], lambda state, *given: state.append(0) or len(state) - 1, "map", key)
    return Stream(counts, s._runtime)


def slowly(n):
    """Take a while for each item."""
    time.sleep(0.05)
    return n


RESULTS = {
    "chain": lambda s: s.map(str).filter(lambda t: "1" in t).flat_map(list).to_list(),
    "sorted": lambda s: s.sorted(key=lambda n: -n * 7 % 101).to_list(),
    "top": lambda s: s.sorted(reverse=True).limit(3).to_list(),
    "page": lambda s: s.skip(11).limit(7).to_list(),
    "take_while": lambda s: s.take_while(lambda n: n < 33).to_list(),
    "drop_while": lambda s: s.drop_while(lambda n: n < 77).to_list(),
    "infinite": lambda s: s.flat_map(lambda n: itertools.count(n)).limit(50).to_list(),
    "distinct": lambda s: s.map(lambda n: n % 7).distinct().to_list(),
    "windows": lambda s: s.gather(window_sliding(3)).map(sum).to_list(),
    "enumerate": lambda s: s.enumerate().to_list(),
    "groups": lambda s: s.map(str).collect(
        grouping_by(lambda t: t[-1:], teeing(counting(), joining(), lambda n, text: (n, text)))
    ),
    "map": lambda s: s.collect(to_map(lambda n: n % 5, lambda n: [n], operator.add)),
    "top_n": lambda s: s.collect(top_n(3)),
    "text": lambda s: s.map(str).collect(joining("-")),
    "join": lambda s: s.join(s.map(lambda n: n * 2), on=(str, str)).to_list(),
    "union": lambda s: (s + s.map(operator.neg)).to_list(),
    "reduce": lambda s: s.map(str).reduce(operator.add).get(),
    "ints": lambda s: s.map_to_int(lambda n: n).summary_statistics(),
    "partitions": lambda s: s.parallel(3).map(lambda n: n).count(),
    "arrow": lambda s: s.map(lambda n: {"n": n}).to_arrow().to_pylist(),
    "aggregate": lambda s: co_aggregated(s, by_key=False).to_list(),
    "aggregate by key": lambda s: co_aggregated(s, by_key=True).sorted().to_list(),
    "state": lambda s: running(s, None).to_list(),
    "states by key": lambda s: running(s, lambda n: n % 7).to_list(),
    "spread": lambda s: Stream(Spread(s._node, 3), s._runtime).map(str).to_list(),
    "in a loop": lambda s: [n for n, _ in zip(s.map(str), range(5), strict=False)],
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_those_of_the_local_engine(connect_context, local_context, name):
    """Operations of every kind: in place, by key, by range, in waves, pulled, with two sides."""
    found, expected = (RESULTS[name](context.stream(range(100), 5)) for context in (connect_context, local_context))

    assert repr(found) == repr(expected)


def test_what_travels_with_a_job_reaches_the_workers_of_a_server(connect_context, tmp_path):
    """A file, and a module by its path."""
    (tmp_path / "words").write_text("the whale")
    (tmp_path / "rules_of_server.py").write_text("def answer():\n    return 7\n")

    def told(item):
        import rules_of_server

        return ds.attached("words").read_text(), rules_of_server.answer(), item

    pipeline, out = ds.Pipeline(), f"told {uuid4()}"
    pipeline.read_from(items(1, 2)).map(told).write_to(to_ilist(out))
    config = ds.JobConfig(files=[tmp_path / "words"], modules=[tmp_path / "rules_of_server.py"])
    connect_context.new_job(pipeline, config=config).join(100)

    assert connect_context.get_list(out).copy() == [("the whale", 7, 1), ("the whale", 7, 2)]


def test_a_failure_names_step_line_and_item(connect_context):
    """The exception is the user's own."""
    with pytest.raises(ZeroDivisionError) as raised:
        connect_context.stream(range(9), 3).map(lambda n: 1 // (n - 4)).to_list()

    failure = ds.failure(raised.value)
    assert failure.item == 4
    assert "map" in str(failure.step.label)


def test_what_comes_beside_items_arrives(connect_context):
    """`peek` sees items in order, dead letters reach the caller once."""
    seen = []
    stream = connect_context.stream(range(8), 4).peek(seen.append).map(lambda n: 1 // (n % 4))

    assert stream.on_error(ZeroDivisionError, into=to_ilist("connect letters")).count() == 6
    assert seen == list(range(8))
    assert [letter.item for letter in connect_context.get_list("connect letters")] == [0, 4]


def test_what_a_cache_keeps_is_computed_once(connect_context, tmp_path):
    """Also where a run reads a part of it."""
    file = tmp_path / "calls"

    def noted(n):
        with file.open("a") as calls:
            calls.write("x")
        return n

    cached = connect_context.stream(range(10), 5).map(noted).cache()
    assert (cached.count(), cached.to_list(), cached.limit(3).to_list()) == (10, list(range(10)), [0, 1, 2])
    assert file.read_text() == "x" * 10


def test_settings_belong_to_a_run(connect_context):
    """A run with settings has a session of its own, into which nothing that is kept can go."""
    stream = connect_context.stream(range(10), 5).map(lambda n: n % 3)
    cached = stream.cache()

    assert stream.configure(SETTING).distinct().to_list() == [0, 1, 2]
    assert connect_context.spark.conf.get("spark.sql.shuffle.partitions") != "3"
    assert cached.count() == 10
    with pytest.raises(UnsupportedError, match=r"what cache\(\) keeps"):
        cached.configure(SETTING).count()


def test_frames_go_in_and_out(connect_context):
    """A DataFrame belongs to the session of the context."""
    spark = connect_context.spark
    frame = connect_context.stream(range(5), 2).map(lambda n: {"n": n}).to_df()

    assert sorted(row.n for row in frame.collect()) == list(range(5))
    assert sorted(connect_context.from_df(spark.range(6).repartition(3)).map(lambda row: row.id).to_list()) == [
        *range(6)
    ]
    pairs = spark.range(4).selectExpr("id", "named_struct('id', id + 1) as next")
    assert sorted(connect_context.from_df(pairs, Linked).to_list(), key=lambda each: each.id) == [
        Linked(number, Identified(number + 1)) for number in range(4)
    ]
    with pytest.raises(SourceError, match=r"from_df\(DataFrame, Linked\): column next: expected Identified"):
        connect_context.from_df(spark.range(1).selectExpr("id", "'a' as next"), Linked).to_list()
    with pytest.raises(UnsupportedError, match=r"make it with ctx\.spark"):
        connect_context.from_df(spark.newSession().range(3)).to_list()


def test_collections_are_written_by_the_workers_of_the_server(connect_context):
    """A map and a list, read again by anybody."""
    words = connect_context.stream(["a", "b", "a", "c"], 3)

    assert dict(words.collect(to_imap("connect counts", str, lambda word: 1, operator.add))) == {"a": 2, "b": 1, "c": 1}
    assert list(words.collect(to_ilist("connect words"))) == ["a", "b", "a", "c"]


def test_workers_have_the_packages_of_this_process(connect_context):
    """They travel, whatever is installed where the server runs."""

    def place(_):
        import dstream

        return dstream.__file__

    assert ".zip" in connect_context.stream([1]).map(place).find_first().get()


def test_cancelling_ends_one_run_and_no_other(connect_context):
    """Both are of one session."""
    engine, slow = connect_context.running_engine(), connect_context.stream(range(4000), 400).map(slowly)
    run, other = (engine.submit(rewrite(ToList(stream._node))) for stream in (slow, slow.limit(20)))
    run.start()
    other.start()
    time.sleep(1)
    begun = time.monotonic()
    run.cancel()

    with pytest.raises(CancelledError):
        run.result()
    assert time.monotonic() - begun < 30  # All of its items would take 100 s.
    assert other.result() == list(range(20))


def test_what_a_loop_waits_for_is_cancelled_too():
    """Between two items no job of it is being asked for, and one runs on the server."""
    asked = []
    ConnectJobs(SimpleNamespace(interruptTag=lambda tag: asked.append(tag) or ["one"]), "a run").cancel()

    assert asked == ["a run"]


def test_a_server_that_is_not_there_is_named():
    """Without the token that may follow its address."""
    with ds.connect("sc://127.0.0.1:1/;token=secret", storage="memory:") as context:
        with pytest.raises(SetupError, match=r"sc://127\.0\.0\.1:1 cannot run dstream.*cannot be reached") as raised:
            context.stream([1]).map(str).to_list()
        assert "secret" not in str(raised.value)


def test_a_server_that_cannot_run_dstream_keeps_no_session(connect_server, monkeypatch):
    """What was begun there ends, and the message is that of the server."""
    left = []
    monkeypatch.setattr(launch, "leave", lambda port: (left.append(port.session), port.session.stop()))
    with pytest.raises(SetupError, match="cannot run dstream"):
        launch.connected_port(connect_server, None, {"spark.sql.shuffle.partitions": "none"})

    assert [session.is_stopped for session in left] == [True]


@pytest.mark.parametrize("sample", ["employees", "primes"])
def test_samples_run_on_a_server(connect_server, sample, tmp_path):
    """They say what they say on the local engine; where they run is a variable of the environment."""
    command = [sys.executable, str(SAMPLES / f"{sample}.py")]
    found, expected = (
        subprocess.run(command, env={**os.environ, **where}, cwd=tmp_path, capture_output=True, text=True, timeout=240)
        for where in ({"DSTREAM_MASTER": connect_server}, {"DSTREAM_ENGINE": "local"})
    )

    assert (found.returncode, found.stdout, found.stderr) == (0, expected.stdout, "")


def test_what_is_kept_does_not_travel(connect_context):
    """A plan does, and is computed again."""
    cached = connect_context.stream(range(4), 2).cache()
    assert cached.count() == 4

    assert pickle.loads(pickle.dumps(cached.collect(to_list()))) == [0, 1, 2, 3]


def test_a_run_with_settings_ends_its_session(connect_context, monkeypatch):
    """The server would hold a session for each run, also after the context is closed."""
    from pyspark.sql.connect.client import SparkConnectClient

    ended = threading.Event()
    monkeypatch.setattr(SparkConnectClient, "release_session", lambda client: ended.set())
    assert connect_context.stream([1]).configure(SETTING).map(str).to_list() == ["1"]
    gc.collect()

    assert ended.wait(10)


def test_a_forked_process_leaves_everything_to_its_parent(connect_server, tmp_path):
    """It may drop what is kept, and close the context, whose session goes on in the parent."""
    with ds.connect(connect_server, storage="memory:") as context:
        held = [context.stream([1], 1).map(lambda n: (tmp_path / str(time.time_ns())).touch() or n).cache()]
        assert held[0].to_list() == [1]
        if (child := os.fork()) == 0:
            held.clear()
            context.close()
            gc.collect()
            os._exit(0)
        os.waitpid(child, 0)

        assert (held[0].count(), held[0].to_list(), len(list(tmp_path.iterdir()))) == (1, [1], 1)


@pytest.mark.parametrize("largest", [2**20, 0])
def test_the_right_side_of_a_hash_join_goes_to_all_tasks(connect_context, monkeypatch, largest):
    """With the function, or as a file that the server gives to its workers: a message to it holds 128 MB."""
    monkeypatch.setattr(backend, "LARGEST_PASSENGER", largest)
    left, right = connect_context.stream(range(4), 3), connect_context.stream([2, 0, 2], 2)
    joined = HashJoin(left._node, right._node, lambda n: n, lambda n: n, projecting=lambda n: n * 10)

    assert Stream(joined, connect_context).to_list() == [(0, 0), (1, None), (2, 20), (2, 20), (3, None)]


def test_a_shared_service_is_one_for_each_task(connect_context, tmp_path):
    """Workers do not reach the client, which would say when the run has ended; tasks say when they end."""
    notes = tmp_path / "notes"

    def note(what: str) -> str:
        with notes.open("a") as file:
            file.write(f"{what} ")
        return what

    service = Service(lambda: note("made"), lambda made: note("gone"))
    using = WithService(connect_context.stream([1, 2], 2)._node, service, lambda made, n: f"{made} {n}", "map")
    assert Stream(using, connect_context).to_list() == ["made 1", "made 2"]
    assert sorted(notes.read_text().split()) == ["gone", "gone", "made", "made"]
