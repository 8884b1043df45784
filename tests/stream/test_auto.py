"""`connect(engine="auto")`: small streams of the caller's items run here, others on Spark; both mean the same."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from itertools import chain

import pytest

import dstream as ds
from collectors import counting, grouping_by
from dstream.base.memory import Bound
from dstream.engine.auto import placement
from dstream.engine.auto.border import SparkStart
from dstream.engine.auto.engine import AutoEngine
from dstream.engine.auto.placement import AutoSettings
from dstream.engine.compiler import walk
from dstream.engine.local import LocalEngine
from dstream.engine.spark.session import launch
from dstream.operators.rows.caches import CachedItems, Caches, CacheSource
from dstream.plan import Step, ToList, nothing_kept, rewrite
from dstream.plan.operations.ends import Several
from dstream.session import connection
from dstream.session.warmup import WarmStart
from dstream.testing.engines import MASTER, SETTINGS
from reducers import to_ilist, to_imap
from sources import text_files
from tests.jobs.unbounded.streams import eventually

SMALL, LARGE = range(4), range(6)


@pytest.fixture(scope="module")
def context(spark_context):
    """A context that may use the Spark session of the test run."""
    with ds.connect(MASTER, engine="auto", config=SETTINGS, storage="memory:", local_limit=0) as context:
        yield context


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Draw the line between small and large at four items."""
    monkeypatch.setattr(placement, "MOST_ITEMS", len(SMALL))


def places(stream):
    """Return whether the functions of a stream run in this process, as far as its items tell."""
    return {place == os.getpid() for place in stream.map(lambda n: os.getpid()).to_list()}


def test_auto_runs_small_streams_here_and_others_on_spark(context):
    """Where a function runs, its process tells."""
    assert (places(context.stream(SMALL, 2)), places(context.stream(LARGE, 2))) == ({True}, {False})
    for items in (SMALL, LARGE):
        stream = context.stream(items, 2).map(lambda n: n)
        assert (stream.to_list(), stream.count()) == (list(items), len(items))


def test_auto_runs_here_what_is_sooner_done_here(spark_context):
    """Without a limit, the estimate decides: a few thousand items take this process less than a job takes Spark."""
    with ds.connect(MASTER, engine="auto", config=SETTINGS, storage="memory:") as context:
        assert places(context.stream(range(2_000), 2)) == {True}
        assert context.stream(range(100_000)).map_to_int(lambda n: n % 7).sum() == 299_995
        assert not context.running_engine()._spark.running


def test_auto_copies_what_a_function_may_change(context):
    """What it changes is its own copy, as on a worker, wherever it runs."""
    for items in (SMALL, LARGE):
        changed = []
        seen = [[n] for n in items]
        assert context.stream(items).map(lambda n, changed=changed: changed.append(n) or n).to_list() == [*items]
        assert context.stream(seen).map(lambda held: held.append(0) or held).to_list() == [[n, 0] for n in items]
        assert (changed, seen) == ([], [[n] for n in items])

        def counted(n):
            counted.calls += 1
            return n

        counted.calls = 0
        assert context.stream(items).map(counted).to_list() == [*items]
        assert counted.calls == 0


def test_auto_ends_streams_alike_on_both_sides(context):
    """Each way to end a stream goes through the same choice."""
    for items in (SMALL, LARGE):
        stream, size = context.stream(items, 2), len(items)
        assert list(stream) == list(items)
        assert stream.collect(grouping_by(lambda n: n % 2, counting())) == {0: size // 2, 1: size // 2}
        assert stream.to_arrow().num_rows == size
        assert stream.collect(to_imap(f"squares {size}", abs, lambda n: n * n))[3] == 9
        assert context.get_map(f"squares {size}").stream().count() == size


def test_auto_reads_collections_here(tmp_path):
    """Spark does not start for the entries of a lake that this process reads sooner."""
    with ds.connect(MASTER, engine="auto", storage=tmp_path) as context:
        numbers, names = context.get_map("numbers"), context.get_list("names")
        numbers.update({n: n for n in range(100)})
        names.extend(["Ada", "Grace"])
        for stream in (numbers.stream(), numbers.stream(lambda entry: entry.key < 50), names.stream()):
            stream.head(2)
            assert places(stream) == {True}
        assert context.running_engine()._spark.running is None


def test_auto_leaves_tables_to_spark(context):
    """A DataFrame is one of Spark, however few its rows."""
    assert [list(part) for part in context.stream(SMALL, 2).partitions()] == [[0, 1], [2, 3]]
    frame = context.stream(SMALL).map(lambda n: {"n": n}).to_df()
    assert sorted(row.n for row in frame.collect()) == [0, 1, 2, 3]
    assert (context.from_df(frame).count(), context.spark is frame.sparkSession) == (4, True)
    names = context.get_list("names of two", value_type=str)
    names.extend(["Ada", "Grace"])
    assert [row.value for row in names.to_df().collect()] == ["Ada", "Grace"]


def test_auto_refuses_what_spark_refuses(context):
    """A plan that takes along what cannot travel fails while it is small, not when its data grow."""
    lock = threading.Lock()

    for items in (SMALL, LARGE):
        with pytest.raises(ds.errors.SerializationError, match="captures the variable 'lock'"):
            context.stream(items).map(lambda n: lock).to_list()
    with pytest.raises(ds.errors.UnstableKeyError):
        context.stream(SMALL).map(lambda n: object()).distinct().to_list()


def test_auto_warns_of_what_travels_only_if_it_travels(context):
    """A large variable is no trouble in this process."""
    large = bytes(11 * 2**20)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert context.stream(SMALL).map(lambda n: len(large)).find_first().get() == 11 * 2**20
    with pytest.warns(ds.errors.LargeCaptureWarning, match="'large'"):
        context.stream(LARGE).map(lambda n: len(large)).skip(5).to_list()


def test_auto_tells_failures_and_dead_letters_alike(context):
    """Type, step and item of a failure; the letters of items that were sent away."""
    for items in (SMALL, LARGE):
        stream = context.stream(items, 2).map(lambda n: 1 // (n - 3))
        with pytest.raises(ZeroDivisionError) as caught:
            stream.to_list()
        failure = ds.failure(caught.value)
        assert (failure.item, failure.step.label) == (3, ".map(lambda)")
        letters = f"letters {len(items)}"
        assert stream.on_error(ZeroDivisionError, into=to_ilist(letters)).count() == len(items) - 1
        assert [letter.item for letter in context.get_list(letters)] == [3]


def test_auto_keeps_here_what_it_computed_here(context):
    """Later streams read it on either side, in order, and the steps before it run once."""
    seen = []
    kept = context.stream(SMALL).peek(seen.append).map(str).cache()

    assert kept.to_list() == ["0", "1", "2", "3"]
    both = kept + context.stream(LARGE).map(str)
    assert "2 tasks" in both.explain("dot")
    assert both.to_list() == [*map(str, SMALL), *map(str, LARGE)]
    assert (kept.count(), seen) == (4, [*SMALL])


def test_auto_runs_the_graph_of_its_estimate(tmp_path, monkeypatch):
    """A plan in one task is compiled once."""
    (tmp_path / "text").write_text("the sea\nthe ship\n")
    compiling, graphs = walk.Compiling, []
    monkeypatch.setattr(walk, "Compiling", lambda *given: graphs.append(given) or compiling(*given))
    monkeypatch.setattr(placement, "_LOADING", {})  # So that this process reads functions.
    with ds.connect(engine="auto", storage="memory:") as ctx:
        words = ctx.read(text_files(str(tmp_path / "text"))).flat_map(str.split)

        assert (words.count(), words.map(lambda word: word[0]).to_list()) == (4, ["t", "s", "t", "s"])
    assert len(graphs) == 2


def test_auto_reads_what_was_kept_behind_its_estimate(tmp_path, monkeypatch):
    """Such as by another thread: the run compiles the plan that reads it, and its steps run once."""
    (tmp_path / "text").write_text("the sea\nthe ship\n")
    monkeypatch.setattr(placement, "_LOADING", {})
    seen = []
    with ds.connect(engine="auto", storage="memory:") as ctx:
        kept = ctx.read(text_files(str(tmp_path / "text"))).peek(seen.append).cache()
        runs = [ctx.running_engine().submit(rewrite(ToList(kept._node))) for _ in range(2)]

        assert [each.result() for each in runs] == [["the sea", "the ship"]] * 2
    assert seen == ["the sea", "the ship"]


def test_auto_reads_on_spark_what_was_kept_there(context):
    """Also if the stream that was kept is small: it was computed with a larger one."""
    seen = []
    kept = context.stream(SMALL).peek(seen.append).cache()

    assert (kept + context.stream(LARGE)).count() == 10
    assert (kept.to_list(), seen) == ([*SMALL], [*SMALL])
    assert places(kept) == {False}
    here = LocalEngine(2**28, caches=context.running_engine()._local._caches)
    found = here.submit(rewrite(ToList(kept._node))).result()  # as a thread may find it that came too late
    assert found == [*SMALL]


@pytest.mark.parametrize(("count", "parallelism", "sizes"), [(0, 4, [0]), (3, 8, [1, 1, 1]), (7, 2, [4, 3])])
def test_kept_items_are_divided_for_workers(count, parallelism, sizes):
    """Into parts of nearly equal size, at least one, as many as it said; large ones stay bounded."""
    source = CacheSource(CachedItems(range(count), Bound(2**60)), ordered=True)

    parts = [list(split.read()) for split in source.splits(parallelism)]
    assert ([len(part) for part in parts], [*chain(*parts)]) == (sizes, [*range(count)])
    assert source.count_splits(parallelism) == len(sizes)


class Full(Bound):
    """A bound that is always exceeded."""

    def exceeded(self):
        return True


def test_kept_items_know_how_many_they_are_on_disk():
    """Those that were written are counted too, and no split is larger than it should be."""
    kept = CachedItems(range(40_000), Full())

    assert len(kept) == 40_000
    assert CacheSource(kept, ordered=True).count_splits(1) == 3


@pytest.mark.parametrize("form", ["dot", "mermaid", "svg", "html"])
def test_auto_explains_which_way_a_plan_goes(context, form):
    """Each form says where and why; contexts with one engine have nothing to choose."""
    assert "runs in this process: 4 items from the caller" in context.stream(SMALL).explain(form)
    shown = context.stream(LARGE).explain(form)
    assert "runs on Spark: 6 items of stream(range)" in shown
    with ds.connect(engine="local") as local:
        assert "runs in this process: 4" not in local.stream(SMALL).explain(form)


@pytest.mark.parametrize("steps", [lambda s: s.map(str), lambda s: s.sorted(), lambda s: s.distinct().sorted()])
def test_auto_explains_each_plan_that_it_runs_here_in_one_wording(context, capsys, steps):
    """Whichever of its engines runs the plan: both are this process."""
    steps(context.stream(SMALL, 2)).explain()

    assert capsys.readouterr().out.splitlines()[0].startswith("to_list() in this process")


def test_auto_is_not_for_workers(context):
    """A function that runs on Spark cannot connect: it would start another Spark there."""

    def connected(n):
        return ds.connect(engine="auto").engine

    with pytest.raises(ds.errors.IllegalStateError, match="on a Spark worker"):
        context.stream(LARGE, 1).map(connected).to_list()


class Noted:
    """An engine that notes what happens to it."""

    def __init__(self):
        self.closed = self.warmed = 0
        self.submitted = []

    def submit(self, end):
        self.submitted.append(end)

    def warm_up(self):
        self.warmed += 1

    def is_lost(self):
        return False

    def close(self):
        self.closed += 1


def test_auto_closes_what_it_started():
    """Spark only if it was started, and once."""
    local, here, there = Noted(), Noted(), Noted()
    spark = SparkStart(lambda: there, lambda: None, print)
    engine = AutoEngine(local, here, spark, lambda: 2, nothing_kept, AutoSettings())
    engine.close()
    assert (local.closed, here.closed, there.closed) == (1, 1, 0)

    assert engine.spark is None
    engine.close()
    engine.close()
    assert there.closed == 1


def auto(here, start, beside=lambda: None):
    """Return the engine over doubles of two others."""
    spark = SparkStart(start, beside, print)
    return AutoEngine(Noted(), here, spark, lambda: 2, nothing_kept, AutoSettings())


def test_auto_runs_an_epoch_on_the_engine_that_its_plan_names():
    """Spark starts for that, whatever the items are; without a name it runs on Spark."""
    here, there = Noted(), Noted()
    engine = auto(here, lambda: there)
    for each in ("inprocess", "spark", "inprocess"):
        engine.submit(Several((), is_epoch=True, engine=each, step=Step("", None, 0, 0)))

    assert (len(here.submitted), len(there.submitted)) == (2, 1)


def test_auto_starts_spark_in_the_background():
    """It runs when its workers do; a second call starts nothing."""
    there = Noted()
    engine = auto(Noted(), lambda: there, lambda: WarmStart(lambda: there, bool, lambda engine: engine.warm_up()))
    assert engine.spark_status(start=False) == "stopped"
    assert engine.spark_status(start=True) in ("starting", "running")
    eventually(lambda: engine.spark_status(start=True) == "running")

    assert (there.warmed, engine.spark is None) == (1, True)


def test_auto_does_not_wait_for_a_start_that_another_thread_asked_for():
    """Not if it wants one, too, as a job does whose load rises."""
    begun, goes_on = threading.Event(), threading.Event()

    def start():
        begun.set()
        goes_on.wait(60)
        return Noted()

    engine = auto(Noted(), start)
    other = threading.Thread(target=lambda: engine.spark)
    other.start()
    begun.wait(60)
    asked = threading.Timer(20, goes_on.set)
    asked.start()
    try:
        assert engine.spark_status(start=True) == "starting"
        assert not goes_on.is_set()
    finally:
        asked.cancel()
        goes_on.set()
        other.join()
    assert engine.spark_status(start=False) == "running"


def test_auto_goes_on_where_python_has_no_thread_for_a_start():
    """It is tried again."""

    def beside():
        raise RuntimeError("can't start new thread")

    assert auto(Noted(), Noted, beside).spark_status(start=True) == "stopped"


def test_auto_that_lost_its_spark_starts_another_when_it_is_needed(monkeypatch):
    """Not at once, though it was to be warm from the beginning: a small plan would wait for it."""
    starts = []
    monkeypatch.setattr(connection._AutoStart, "_spark", lambda start: starts.append(1) or Noted())
    monkeypatch.setattr(connection._AutoStart, "_beside", lambda start: WarmStart(Noted, bool, bool))
    settings = {"storage": "memory:", "progress": False, "warm": True}
    start = connection._AutoStart(connection.configured(settings), Caches())
    first = start()
    eventually(lambda: first.spark_status(start=False) == "running")
    monkeypatch.setattr(first, "is_lost", lambda: True)
    second = start()

    assert (second is first, second.spark_status(start=False), starts) == (False, "stopped", [])


@pytest.mark.parametrize("gateway", [None, "1"], ids=["server", "spark-submit"])
def test_auto_does_not_wait_for_a_spark_that_starts_elsewhere(monkeypatch, gateway):
    """A server, or the Java of `spark-submit`, may take seconds: epochs of a job go on meanwhile."""
    goes_on, there = threading.Event(), Noted()
    monkeypatch.setattr(connection._AutoStart, "_spark", lambda start: goes_on.wait(20) and there)
    monkeypatch.setattr(launch, "activate", lambda engine: None)
    monkeypatch.setattr(launch, "is_cluster", lambda master: True)
    monkeypatch.setattr(launch, "is_running", lambda master: False)
    if gateway is not None:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", gateway)
    master = "sc://host" if gateway is None else "local[2]"
    settings = {"storage": "memory:", "progress": False, "master": master}
    engine = connection._AutoStart(connection.configured(settings), Caches())()
    assert engine.spark_status(start=True) == "starting"

    goes_on.set()
    eventually(lambda: engine.spark_status(start=False) == "running")
    assert (engine.spark_status(start=True), there.warmed) == ("running", 1)


def test_auto_starts_nothing_beside_a_run_that_must_not_wait_for_it(tmp_path):
    """With `warm=False` Spark starts where a plan needs it, and nowhere else."""
    with ds.connect(MASTER, engine="auto", storage=tmp_path, warm=False) as context:
        engine = context.running_engine()
        assert {engine.spark_status(start=True) for _ in range(2)} == {"stopped"}
        assert engine._spark.running is None


def test_auto_says_why_spark_does_not_start(capsys):
    """Status and reason are kept for jobs, and told once; a plan that needs Spark tries again, and raises its error."""
    starts = []

    def start():
        starts.append(1)
        raise ds.errors.SetupError("no Java")

    engine = auto(Noted(), start, lambda: WarmStart(start, bool, bool))
    engine.spark_status(start=True)
    eventually(lambda: engine.spark_status(start=True) == "absent")

    assert (engine.spark_failure, len(starts)) == ("no Java", 1)
    with pytest.raises(ds.errors.SetupError, match="no Java"):
        engine.spark  # noqa: B018 - the property starts it


def test_auto_tries_a_start_again_that_has_failed():
    """A minute later, and then after twice as long: in the background for a job, and where a large plan begins."""
    now, starts, there = [0.0], [], Noted()

    def start():
        starts.append(now[0])
        if len(starts) < 4:
            raise ds.errors.SetupError("no memory")
        return there

    spark = SparkStart(start, lambda: WarmStart(start, bool, bool), bool, clock=lambda: now[0])
    for moment, begun in ((0, [0]), (59, [0]), (61, [0, 61]), (180, [0, 61]), (182, [0, 61, 182])):
        now[0] = moment
        spark.status(start=True)
        eventually(lambda: spark.status(start=False) == "absent")
        assert (starts, spark.failure, spark.offer()) == (begun, "no memory", None)
    now[0] = 423
    assert (spark.status(start=False), spark.offer(), spark.failure) == ("stopped", there, "")


def test_a_small_plan_loads_no_package_of_columns(tmp_path):
    """In a process that has none of them, they would take longer than the plan."""
    (tmp_path / "text").write_text("the sea\nthe ship\n" * 5_000)
    program = f"""
import sys
import dstream as ds
from collectors import frequencies
from sources import text_files
with ds.connect(engine="auto", storage="memory:") as ctx:
    words = ctx.read(text_files({str(tmp_path / "text")!r})).flat_map(str.split)
    assert words.collect(frequencies())["the"] == 10_000
    words.explain(routes=True)
print({{"pyspark", "pyarrow", "numpy", "pandas"}} & set(sys.modules))
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    assert "; functions are called, since columns would take longer to load\n" in printed
    assert printed.endswith("\nset()\n")


def test_a_new_map_does_without_functions_of_arrow():
    """They take as long to load as all other modules of the storage."""
    program = """
import operator, sys
import dstream as ds
from reducers import to_imap
with ds.connect() as ctx:
    counts = ctx.stream(["the", "sea", "the"]).collect(to_imap("counts", str, lambda word: 1, operator.add))
    counts.put("ship", 1)
    assert (counts["the"], len(counts)) == (2, 3)
    assert counts.stream().map(lambda entry: entry.value).sorted().to_list() == [1, 1, 2]
print("pyarrow.parquet" in sys.modules, "pyarrow.compute" in sys.modules)
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert printed.stdout == "True False\n", printed.stderr


def test_many_small_plans_load_the_packages_of_columns(tmp_path):
    """As soon as they have lost as much time as these take to load."""
    (tmp_path / "text").write_text("the sea\nthe ship\n" * 5_000)
    program = f"""
import sys
import dstream as ds
from collectors import frequencies
from sources import text_files
with ds.connect(engine="auto", storage="memory:") as ctx:
    words = ctx.read(text_files({str(tmp_path / "text")!r})).flat_map(str.split)
    for runs in range(200):
        assert words.collect(frequencies())["the"] == 10_000
        if "numpy" in sys.modules:
            break
    print(runs)
"""
    runs = int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout)
    assert 0 < runs < 199
