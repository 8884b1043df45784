"""Small stages that jobs carry, while Spark runs a plan that it has made before."""

from __future__ import annotations

import sys
import threading
import zipfile
from types import SimpleNamespace

import pytest
from py4j.java_gateway import JavaGateway

import dstream as ds
from collectors import joining, mapping
from dstream.engine.spark.port.classic import ClassicPort
from dstream.engine.tasks.process import CARRIED, MOST_CARRIED
from reducers import to_ilist


@pytest.fixture
def known(spark_context):
    """Return how many plans are known, and how often one of them was asked for."""
    backend = spark_context.running_engine()._backend

    def read():
        info = backend.plans.carrying.cache_info()
        return info.currsize, info.hits + info.misses

    return read


def test_jobs_of_as_many_tasks_run_one_plan(spark_context, known):
    """Whatever they do."""
    assert spark_context.stream(range(10), 3).map(lambda n: n + 1).to_list() == list(range(1, 11))
    plans, asked = known()
    assert spark_context.stream("abc", 3).filter("b".__le__).to_list() == ["b", "c"]
    assert spark_context.stream("abab", 3).collect(mapping(str.upper, joining())) == "ABAB"

    assert known() == (plans, asked + 2)


def test_a_first_job_runs_the_plan_of_the_one_that_warms_up(spark_context, known):
    """So it is planned before anybody waits for it, where it has as many tasks."""
    spark_context.running_engine()._backend.plans.carrying.cache_clear()
    spark_context.running_engine().warm_up()
    plans, asked = known()
    assert spark_context.stream([1, 2], 2).map(str).to_list() == ["1", "2"]

    assert (plans, known()) == (1, (1, asked + 1))


def test_a_first_item_needs_no_plan(spark_context, known):
    """Few items are looked for in one task, then in four: each such job carries what it does."""
    numbers = spark_context.stream(range(20), 5)
    assert numbers.filter(lambda n: n > 15).first().get() == 16
    plans, asked = known()
    assert numbers.map(lambda n: -n).filter(lambda n: n < -15).first().get() == -16

    assert known() == (plans, asked + 2)


def test_dead_letters_of_a_first_item_come_by_a_job_of_their_own(spark_context, known):
    """Which reads the rows of the first one."""
    before, name = known(), "letters of a first item"
    halves = spark_context.stream([0, 2], 2).map(lambda n: 2 // n).on_error(ZeroDivisionError, into=to_ilist(name))
    assert halves.first().get() == 1

    assert (known(), [letter.item for letter in spark_context.get_list(name)]) == (before, [0])


def test_each_thread_carries_its_own(spark_context):
    """Jobs of several threads run one plan at the same time."""
    found: dict[int, list[list[int]]] = {}

    def run(number: int) -> None:
        stream = spark_context.stream(range(5), 2)
        found[number] = [stream.map(lambda n, each=each: 100 * number + 10 * each + n).to_list() for each in range(6)]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == {
        number: [[100 * number + 10 * each + n for n in range(5)] for each in range(6)] for number in range(4)
    }


def test_nothing_is_carried_on(spark_context):
    """Jobs of the user's own have no stage of ours, also after a failure."""
    spark = spark_context.spark.sparkContext
    spark_context.stream([1], 2).to_list()
    assert spark.getLocalProperty(CARRIED) is None
    with pytest.raises(ZeroDivisionError) as caught:
        spark_context.stream([1, 0], 2).map(lambda n: 1 / n).to_list()

    assert spark.getLocalProperty(CARRIED) is None
    assert ds.failure(caught.value).item == 0


def test_a_large_stage_has_a_plan_of_its_own(spark_context, known):
    """It would travel with each task."""
    before, large = known(), "x" * MOST_CARRIED
    assert spark_context.stream([1, 2], 2).map(lambda n: large[n]).to_list() == ["x", "x"]

    assert known() == before


def test_what_java_sends_along_needs_a_plan_of_its_own(spark_context, known):
    """A broadcast of the user's is read on a worker, which gets it with the plan."""
    before, words = known(), spark_context.spark.sparkContext.broadcast(["a", "b"])
    assert spark_context.stream([1, 0], 2).map(lambda n: words.value[n]).to_list() == ["b", "a"]

    assert known() == before


def test_what_the_user_adds_up_is_added_up(spark_context):
    """An accumulator is told by each task what to add."""
    total = spark_context.spark.sparkContext.accumulator(0)
    spark_context.stream(range(10), 2).map(lambda n: total.add(n)).to_list()

    assert total.value == 45


def test_two_ends_of_one_plan_are_read_again(spark_context):
    """Rows that are read twice are kept where they are, and no job carries what makes them."""
    frame = spark_context.stream([(1, "a"), (2, "b")], 2).to_df()

    assert sorted(map(tuple, frame.collect())) == [(1, "a"), (2, "b")]
    assert frame.count() == 2


def test_a_program_that_spark_brings_is_found_first(spark_context, tmp_path, monkeypatch):
    """Also by jobs of as many tasks as one that has run before it was added."""
    for version in ("installed", "added"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "found_by_carried_stages.py").write_text(f"VERSION = '{version}'")
    with zipfile.ZipFile(tmp_path / "added.zip", "w") as archive:
        archive.write(tmp_path / "added" / "found_by_carried_stages.py", "found_by_carried_stages.py")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "installed")])
    spark = spark_context.spark.sparkContext
    monkeypatch.setattr(spark, "_python_includes", [*spark._python_includes])
    one = spark_context.stream([1], 1)
    assert one.map(str).to_list() == ["1"]
    spark.addPyFile(str(tmp_path / "added.zip"))

    def version(n):
        import found_by_carried_stages

        return found_by_carried_stages.VERSION

    assert one.map(version).to_list() == [version(1)] == ["added"]


def test_an_interrupt_leaves_nothing_behind(spark_context, monkeypatch):
    """Ctrl-C comes when Java has the stage, and before the job begins."""
    spark = spark_context.spark.sparkContext
    put = spark.setLocalProperty

    def interrupted(key, value):
        put(key, value)
        if key == CARRIED and value is not None:
            raise KeyboardInterrupt

    monkeypatch.setattr(spark, "setLocalProperty", interrupted)
    with pytest.raises(KeyboardInterrupt):
        spark_context.stream([1], 1).to_list()

    assert spark.getLocalProperty(CARRIED) is None


def test_threads_of_python_that_share_one_of_java_carry_nothing(spark_context, monkeypatch):
    """A property of the one would be found by the jobs of the other."""
    session = spark_context.spark
    assert ClassicPort(session).may_carry()
    monkeypatch.setattr(session.sparkContext, "_gateway", JavaGateway.__new__(JavaGateway))

    assert not ClassicPort(session).may_carry()


def test_workers_log_where_the_user_says_so(spark_context):
    """Spark writes into the plan that they do, and for which session."""
    session = spark_context.spark
    assert ClassicPort(session).may_carry()
    session.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    try:
        assert not ClassicPort(session).may_carry()
    finally:
        session.conf.unset("spark.sql.pyspark.worker.logging.enabled")


def test_what_spark_writes_into_its_event_log_carries_nothing(spark_context, monkeypatch):
    """A stage knows what its functions know, such as a password."""
    session = spark_context.spark
    settings = {"spark.eventLog.enabled": "true"}
    monkeypatch.setattr(session.sparkContext, "_conf", SimpleNamespace(get=settings.get))

    assert not ClassicPort(session).may_carry()
