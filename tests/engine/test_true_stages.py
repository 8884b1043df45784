"""What `explain()` says of a plan is what Spark then does: its jobs, its shuffles, its stages of Python."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import reducers
from collectors import counting, grouping_by, to_bags
from dstream.arguments import explained_end
from dstream.connectors.memory import Range
from dstream.engine.spark.port.classic import ClassicPort
from dstream.engine.spark.run.stage_runner import CarriedStage, StageRunner
from dstream.gatherers import Gatherer, fold, map_concurrent, scan, window_sliding
from dstream.plan.operations.keyed import Stateful
from dstream.plan.operations.pairs import HashJoin
from dstream.plan.operations.streams import Spread
from dstream.plan.stages import Stages
from dstream.session.connection import stages_on
from dstream.spi import AggregateOperation
from dstream.stream import Stream
from dstream.stream.keyed import aggregated

_groups = itertools.count()


def small(n: int) -> bool:
    """Say whether a number is one of the first five."""
    return n < 5


def last_digit(n: int) -> int:
    """Return the last digit of a number."""
    return n % 10


def said_of(stream: Stream[Any], into: Any = None) -> Stages:
    """Return what is said of a stream on two cores."""
    return stages_on(2, stream._node, into)


class Measured:
    """What ran: jobs and shuffles as Spark counts them, stages of Python as its executed plans show them."""

    jobs = 0
    shuffles = 0
    python_stages = 0


@contextmanager
def measuring(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Measured]:
    """Count what Spark does meanwhile."""
    measured, group = Measured(), f"explained {next(_groups)}"
    for name in ("rows", "places", "rows_one_partition_at_a_time"):
        monkeypatch.setattr(StageRunner, name, _counting(getattr(StageRunner, name), measured))
    monkeypatch.setattr(ClassicPort, "pinned", _counting(ClassicPort.pinned, measured))
    context = spark.sparkContext
    context.setJobGroup(group, group)
    try:
        yield measured
    finally:
        # The thread runs other tests, too, whose jobs would belong to this group.
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    context._jsc.sc().listenerBus().waitUntilEmpty()  # The tracker hears of a job after the job's own end.
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    measured.jobs = len(jobs)
    # Each shuffle of a job cuts off one stage; the last stage has none behind it.
    measured.shuffles = sum(max(len(job.stageIds) - 1, 0) for job in jobs)


def _counting(method: Callable[..., Any], measured: Measured) -> Callable[..., Any]:
    def counted(where: Any, rows: Any) -> Any:
        frame = rows.plan if isinstance(rows, CarriedStage) else rows
        measured.python_stages += frame._jdf.queryExecution().executedPlan().toString().count("MapInArrow")
        return method(where, rows)

    return counted


def last(item: Any, error: Exception) -> int:
    """Return what takes the place of an item."""
    return -1


def inverse(n: int) -> int:
    """Fail on one number."""
    return 1 // n


def twice(s: Stream[int]) -> Stream[int]:
    """Read a stream twice."""
    return s.map(abs) + s


DEAD = reducers.to_ilist("dead")


def prime(s: Stream[int]) -> Stream[int]:
    """Read a stream twice, once shuffled."""
    shared = s.map(abs)
    return shared.sorted() + shared.distinct()


def twice_distinct(s: Stream[int]) -> Stream[Any]:
    """Read what a shuffle gave twice."""
    shared = s.unordered().distinct()
    return shared.map(abs) + shared.map(str)


def push(state: Any, item: Any, downstream: Any) -> None:
    """Hand an item on."""
    downstream.push(item)


own = Gatherer.of(list, integrator=push, combiner=list.extend, finisher=lambda state, downstream: None)


def joined(how: str, **settings: str) -> Callable[[Stream[int]], Stream[Any]]:
    """Join a stream with another one that was shuffled before."""
    return lambda s: s.join(s.map(abs).unordered().distinct(), on=last_digit, how=how).configure(settings)


def hash_joined(s: Stream[int]) -> Stream[Any]:
    """Join a stream with one that was shuffled before, which goes to every task."""
    right = s.map(abs).unordered().distinct()
    return Stream(HashJoin(s._node, right._node, last_digit, last_digit), s._runtime)


def reduced(op: Any, *keys: Callable[[Any], Any], **others: Callable[[Stream[int]], Stream[Any]]) -> Any:
    """Aggregate a stream, and others that are made of it."""

    def aggregate(s: Stream[int]) -> Stream[Any]:
        inputs = [s._node, *(other(s)._node for other in others.values())]
        return Stream(aggregated(inputs, op, keys or None), s._runtime)

    return aggregate


def newest(*given: Any) -> Any:
    """Return the item, which stands behind its state and its key."""
    return given[-1]


def seen(s: Stream[int], key: Callable[[int], Any] | None) -> Stream[int]:
    """Map a stream with a state, or with one for each key."""
    return Stream(Stateful(s._node, list, newest, "map", key), s._runtime)


def shuffled(s: Stream[int]) -> Stream[int]:
    """Group equal items."""
    return s.unordered().distinct()


def spread(s: Stream[int], count: int | None) -> Stream[int]:
    """Spread a stream over partitions."""
    return Stream(Spread(s._node, count), s._runtime)


NEVER_SMALL = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
LARGE = {"spark.sql.autoBroadcastJoinThreshold": "0"}


# Name, pipeline, then what must be said: jobs, shuffles, stages of Python.
ACROSS = [
    ("read", lambda s: s, "1", "0", "1"),
    ("fused", lambda s: s.map(abs).filter(bool).flat_map(range).peek(id), "1", "0", "1"),
    ("unordered", lambda s: s.unordered().parallel(3).configure({}), "1", "0", "1"),
    ("sorted", lambda s: s.map(abs).sorted(), "2", "1", "2 to 3"),
    ("sorted twice", lambda s: s.sorted().sorted(key=last_digit), "2 to 3", "1 to 2", "2 to 5"),
    ("top", lambda s: s.sorted(reverse=True).limit(3), "1", "1", "2"),
    ("top, then more", lambda s: s.sorted().limit(3).map(str).distinct(), "1", "1", "2"),
    ("distinct", lambda s: s.distinct(), "1", "2", "3"),
    ("unordered distinct", lambda s: s.unordered().distinct(), "1", "1", "2"),
    ("distinct twice", lambda s: s.unordered().distinct().distinct(key=last_digit), "1", "2", "3"),
    ("distinct sorted", lambda s: s.distinct().sorted(), "2", "3", "4 to 5"),
    ("limit", lambda s: s.limit(3), "1 to 2", "0", "1 to 2"),
    ("limit 0", lambda s: s.limit(0), "0", "0", "0"),
    ("limit 0, then more", lambda s: s.limit(0).map(abs), "1", "0", "1"),
    ("limit, then more", lambda s: s.limit(3).map(abs), "2 to 3", "0", "2 to 3"),
    ("page", lambda s: s.skip(3).limit(4), "1 to 2", "0", "1 to 2"),
    ("skip", lambda s: s.skip(3), "2 to 3", "0", "2 to 4"),
    ("skip 0", lambda s: s.skip(0), "1", "0", "1"),
    ("take while", lambda s: s.take_while(small), "2 to 3", "0", "2 to 3"),
    ("drop while", lambda s: s.drop_while(small), "2 to 3", "0", "2 to 4"),
    ("drop while, then distinct", lambda s: s.drop_while(small).distinct(), "2 to 3", "2", "4 to 6"),
    ("concat", lambda s: s.map(abs) + s.map(str) + s, "1", "0", "1"),
    ("concat of a shuffle", lambda s: s.map(abs) + s.unordered().distinct() + s, "1", "1", "4"),
    ("concat, then sorted", lambda s: (s + s.unordered().distinct()).sorted(), "2", "2", "4 to 5"),
    ("limit of a shuffle", lambda s: s.unordered().distinct().limit(3), "1", "1", "2"),
    ("limit of both", lambda s: (s + s.unordered().distinct()).limit(20), "1 to 5", "0 to 1", "1 to 6"),
    ("cache", lambda s: s.map(abs).cache().sorted().map(str), "3", "1", "3 to 4"),
    ("cache, read twice", lambda s: (lambda c: c + c.map(abs))(s.sorted().cache()), "3", "1", "4 to 5"),
    ("guarded", lambda s: s.map(abs).ignore(ValueError).resolve(OSError, last), "1", "0", "1"),
    ("letters", lambda s: s.map(inverse).on_error(ArithmeticError, into=DEAD), "2 to 6", "0", "1"),
    (
        "letters before a shuffle",
        lambda s: s.map(inverse).on_error(ArithmeticError, into=DEAD).sorted(),
        "3 to 7",
        "1",
        "2 to 3",
    ),
    ("calls", lambda s: s.gather(map_concurrent(2, abs)), "1", "0", "1"),
    ("calls with a rate", lambda s: s.gather(map_concurrent(2, abs, rate=5000)), "1", "1", "2"),
    ("calls with a cache", lambda s: s.gather(map_concurrent(2, abs, cache=True)), "1", "2", "3"),
    ("unordered calls with a cache", lambda s: s.unordered().gather(map_concurrent(2, abs, cache=True)), "1", "1", "2"),
    ("shared calls", lambda s: twice(s.gather(map_concurrent(2, abs, cache=True))), "2", "2", "5"),
    ("shared calls with a rate", lambda s: twice(s.gather(map_concurrent(2, abs, rate=5000))), "2", "1", "4"),
    ("union", lambda s: s.map(abs).union(s).union(s.map(str)), "1", "0", "1"),
    ("union of a shuffle", lambda s: s.union(s.unordered().distinct()), "1", "1", "3"),
    ("greatest", lambda s: s.top(3, key=last_digit), "1", "1", "2"),
    ("partition by", lambda s: s.partition_by(3).map(abs), "1", "1", "2"),
    ("cogroup", lambda s: s.cogroup(s.map(abs), on=last_digit), "1", "1", "3"),
    ("inner join", joined("inner"), "3 to 4", "1 to 2", "3 to 5"),
    ("left join", joined("left"), "2 to 3", "1 to 2", "3 to 5"),
    ("right join", joined("right"), "2 to 3", "1 to 2", "3 to 5"),
    ("full join", joined("full"), "1", "2", "4"),
    ("inner join of large sides", joined("inner", **LARGE), "3 to 4", "1 to 2", "3 to 5"),
    ("left join with a large side", joined("left", **LARGE), "2 to 3", "1 to 2", "3 to 5"),
    ("right join with a large side", joined("right", **LARGE), "2 to 3", "1 to 2", "3 to 5"),
    ("join that never broadcasts", joined("inner", **NEVER_SMALL), "1", "2", "4"),
    ("join, then more", lambda s: joined("left")(s).map(str).sorted(), "3 to 4", "2 to 3", "4 to 7"),
    ("join, limited", lambda s: joined("inner")(s).limit(2), "3 to 8", "1 to 2", "3 to 8"),
    ("join in the middle", lambda s: s.map(str) + joined("inner")(s) + s, "3 to 4", "1 to 2", "3 to 7"),
    ("hash join", hash_joined, "3", "1", "3"),
    ("hash join, then more", lambda s: hash_joined(s).map(str).sorted(), "4", "2", "4 to 5"),
    ("join of joins", lambda s: joined("left")(s).join(s.key_by(last_digit)), "4 to 6", "1 to 3", "4 to 9"),
    ("shared", prime, "2", "3", "5 to 6"),
    ("shared shuffle", twice_distinct, "1", "1", "3"),
]
ACROSS += [
    ("sliding windows", lambda s: s.map(abs).gather(window_sliding(3)), "2", "0", "2"),
    ("chunks of a shuffle", lambda s: s.unordered().distinct().chunked(2), "2", "1", "3"),
    ("numbers, then more", lambda s: s.zip_with_index().map(str).sample(0.5, 1), "3", "0", "3"),
    ("scan", lambda s: s.gather(scan(int, operator.add)), "1", "1", "2"),
    ("parallel scan", lambda s: s.gather(scan(int, operator.add, operator.add)), "2", "0", "2"),
    ("parallel fold", lambda s: s.gather(fold(int, operator.add, operator.add)), "1", "1", "2"),
    ("own gatherer", lambda s: s.gather(Gatherer.of(integrator=push)), "1", "1", "2"),
    ("own gatherer in parallel", lambda s: s.gather(own).map(str), "2", "1", "3"),
    ("own gatherer, then windows", lambda s: s.gather(own).pairwise(), "3", "1", "4"),
    ("own gatherer, then concat", lambda s: s.gather(own) + s, "2", "1", "4"),
    ("windows of both", lambda s: (s + s.unordered().distinct()).pairwise(), "2", "1", "4"),
    ("windows of what a limit left", lambda s: s.limit(3).pairwise(), "2 to 4", "0", "2 to 4"),
    ("windows of nothing", lambda s: s.limit(0).pairwise(), "2", "0", "2"),
    ("own gatherer of nothing", lambda s: s.limit(0).gather(own), "2", "1", "3"),
]
ACROSS += [
    ("zip", lambda s: s.zip(s.map(abs)), "2", "1", "4 to 5"),
    (
        "zip of shuffles, then more",
        lambda s: s.sorted().zip(s.sorted()).map(str).sorted(),
        "3 to 5",
        "3 to 4",
        "5 to 11",
    ),
    ("zip, limited", lambda s: s.zip(s).limit(2), "3 to 6", "1", "5 to 9"),
    ("semi-join", lambda s: s.semi_join(s.map(abs), on=last_digit), "2 to 3", "0 to 1", "2 to 4"),
    ("intersection", lambda s: s.intersection(s.map(abs)), "2 to 3", "1 to 2", "3 to 5"),
    ("as-of join", lambda s: s.asof_join(s.map(abs), on=abs, by=last_digit), "1", "1", "3"),
    ("cross", lambda s: s.cross(s.limit(1)), "4 to 5", "0", "3 to 4"),
]
ACROSS += [
    ("aggregate", reduced(counting()), "1", "1", "2"),
    ("aggregate, then more", lambda s: reduced(counting())(s).map(str).sorted().distinct(), "1", "1", "2"),
    ("aggregate by key", reduced(counting(), last_digit), "1", "1", "2"),
    ("aggregate by key, then more", lambda s: reduced(counting(), last_digit)(s).sorted(), "2", "2", "3 to 4"),
    ("aggregate of what cannot combine", reduced(AggregateOperation(list, list.append), last_digit), "1", "1", "2"),
    ("co-aggregate", reduced(to_bags(2), other=lambda s: s.map(str)), "1", "1", "2"),
    ("co-aggregate by key", reduced(to_bags(2), abs, last_digit, other=lambda s: s), "1", "1", "2"),
    (
        "co-aggregate of a shuffle",
        reduced(to_bags(2), abs, abs, other=lambda s: s.unordered().distinct()),
        "1",
        "2",
        "4",
    ),
    ("aggregate of a prefix", lambda s: reduced(to_bags(2), other=lambda s: s.limit(3))(s), "2 to 3", "1", "4 to 5"),
    ("aggregate of an aggregate", reduced(to_bags(2), other=reduced(counting())), "1", "2", "4"),
    ("state", lambda s: seen(s, None), "1", "1", "2"),
    ("states by key", lambda s: seen(s, last_digit), "1", "2", "3"),
    ("unordered states by key", lambda s: seen(s.unordered(), last_digit).map(abs), "1", "1", "2"),
    ("spread", lambda s: spread(s, 3).map(abs), "2", "1", "3"),
    ("spread in turn", lambda s: spread(s.unordered(), None), "1", "1", "2"),
    ("spread over one", lambda s: spread(s, 1).sorted(), "1", "1", "2"),
]
RANGE = [
    ("windows of a range", lambda s: s.map_to_double(float).gather(window_sliding(3)).map(sum), "1", "0", "1"),
    ("windows of functions of a range", lambda s: s.map(last_digit).gather(window_sliding(3)), "2", "0", "2"),
]
ALONE = [
    ("one partition gathered", lambda s: s.chunked(2).zip_with_index().gather(own), "1", "0", "1"),
    ("one partition, calls", lambda s: s.gather(map_concurrent(2, abs, rate=5000, cache=True)).map(abs), "1", "0", "1"),
    ("one partition", lambda s: s.map(abs).sorted().distinct().skip(1).take_while(small).limit(9), "1", "0", "1"),
    ("one partition, page inside", lambda s: s.limit(3).drop_while(small).map(abs), "1", "0", "1"),
    ("one partition aggregated", lambda s: reduced(counting(), last_digit)(s).sorted(), "1", "0", "1"),
    ("one partition, states", lambda s: seen(seen(s, last_digit), None), "1", "0", "1"),
    ("one partition spread", lambda s: spread(s, 2), "2", "1", "3"),
    ("partition by one", lambda s: s.partition_by(1), "1", "0", "1"),
    ("one partition joined", lambda s: s.join(s, on=last_digit, how="left"), "2 to 3", "0 to 1", "2 to 4"),
    ("one partition twice", lambda s: s.distinct() + s.sorted(), "1", "0", "1"),
]
SEQUENTIAL = [
    ("sequential", lambda s: s.sorted().distinct().skip(1).sequential(), "1", "0", "1"),
    ("sequential co-aggregate", lambda s: reduced(to_bags(2), other=lambda s: s)(s).sequential(), "1", "0", "1"),
    ("sequential spread", lambda s: spread(s, 3).sorted().sequential(), "1", "0", "1"),
    ("sequential join", lambda s: s.partition_by(3).join(s, on=last_digit).sequential(), "3 to 4", "0 to 1", "2 to 4"),
    ("sequential concat", lambda s: (s.sorted() + s.distinct()).limit(3).map(abs).sequential(), "1", "0", "1"),
]
TABLE = [
    *((4, *row) for row in ACROSS),
    *((1, *row) for row in ALONE),
    *((4, *row) for row in SEQUENTIAL),
    *((None, *row) for row in RANGE),
]


@pytest.mark.parametrize(
    ("partitions", "build", "jobs", "shuffles", "python_stages"),
    [pytest.param(partitions, *rest, id=name) for partitions, name, *rest in TABLE],
)
def test_what_is_said_is_what_runs(
    spark_context, explained_storage, monkeypatch, partitions, build, jobs, shuffles, python_stages
):
    """Jobs, shuffles and stages of Python are as many as `explain` said, or in the range that it gave."""
    items = (
        explained_storage.stream(range(12), partitions)
        if partitions
        else explained_storage.read(Range(0, 12, partitions=4))
    )
    stream = build(items)
    said = said_of(stream, None)
    with measuring(spark_context.spark, monkeypatch) as measured:
        stream.to_list()

    assert (str(said.job_count), str(said.shuffles), str(said.python_stages)) == (jobs, shuffles, python_stages)
    assert within(measured, said)


def within(measured: Measured, said: Any) -> bool:
    """Say whether what ran lies in the ranges that were given."""
    pairs = [
        (measured.jobs, said.job_count),
        (measured.shuffles, said.shuffles),
        (measured.python_stages, said.python_stages),
    ]
    assert all(amount.least <= number <= (amount.most or 0) for number, amount in pairs), pairs
    return True


@pytest.mark.parametrize(
    ("partitions", "into", "jobs", "shuffles", "python_stages"),
    [
        pytest.param(4, counting(), "1", "0", "1", id="counting"),
        pytest.param(4, grouping_by(last_digit, counting()), "1", "1", "2", id="grouping"),
        pytest.param(1, grouping_by(last_digit, counting()), "1", "0", "1", id="grouping alone"),
        pytest.param(4, reducers.to_ilist("explained"), "1", "0", "1", id="list"),
        pytest.param(4, reducers.to_imap("explained", abs, str), "1", "1", "2", id="map"),
        pytest.param(1, reducers.grouping_by_to_imap("explained", abs), "1", "1", "2", id="map alone"),
    ],
)
def test_what_is_said_of_a_result_is_what_runs(
    spark_context, monkeypatch, partitions, into, jobs, shuffles, python_stages, explained_storage
):
    """Collectors and reducers too: grouping shuffles, a list is written in place."""
    stream = explained_storage.stream(range(12), partitions).map(abs)
    said = said_of(stream, explained_end(into))
    with measuring(spark_context.spark, monkeypatch) as measured:
        stream.collect(into)

    assert (str(said.job_count), str(said.shuffles), str(said.python_stages)) == (jobs, shuffles, python_stages)
    assert within(measured, said)


@pytest.mark.parametrize(
    ("build", "into", "jobs", "shuffles", "python_stages"),
    [
        pytest.param(lambda s: s.pairwise().map(sum), counting(), "1", "1", "2", id="reduced"),
        pytest.param(lambda s: s.limit(9).pairwise(), counting(), "2 to 3", "0 to 1", "2 to 4", id="of a prefix"),
        pytest.param(lambda s: s.pairwise().sequential(), counting(), "1", "0", "1", id="alone"),
        pytest.param(lambda s: s.pairwise().peek(id), counting(), "2", "0", "2", id="looked at"),
        pytest.param(lambda s: s.pairwise().map(sum).ignore(OSError), counting(), "2", "0", "2", id="guarded"),
        pytest.param(lambda s: s.chunked(2), counting(), "2", "0", "2", id="by number"),
        pytest.param(lambda s: s.pairwise().distinct(), counting(), "2", "2", "4", id="not yet reduced"),
        pytest.param(lambda s: s.pairwise(), grouping_by(sum, counting()), "2", "1", "3", id="grouped"),
        pytest.param(lambda s: s.pairwise(), reducers.to_ilist("explained"), "2", "0", "2", id="written"),
    ],
)
def test_what_is_said_of_reduced_windows_is_what_runs(
    spark_context, monkeypatch, build, into, jobs, shuffles, python_stages, explained_storage
):
    """Windows that are only reduced need no job before; all others do."""
    stream = build(explained_storage.stream(range(12), 4).map(abs))
    said = said_of(stream, explained_end(into))
    with measuring(spark_context.spark, monkeypatch) as measured:
        stream.collect(into)

    assert (str(said.job_count), str(said.shuffles), str(said.python_stages)) == (jobs, shuffles, python_stages)
    assert within(measured, said)


def test_windows_of_a_range_are_reduced_in_one_stage(spark_context, monkeypatch, explained_storage):
    """Where each partition reads on by itself, nothing has to meet at the borders."""
    stream = explained_storage.read(Range(0, 12, partitions=4)).map_to_double(float).pairwise().map(sum)
    said = said_of(stream, counting())
    with measuring(spark_context.spark, monkeypatch) as measured:
        assert stream.count() == 11

    assert (str(said.job_count), str(said.shuffles), str(said.python_stages)) == ("1", "0", "1")
    assert within(measured, said)


def test_dead_letters_keep_windows_from_being_reduced_apart(spark_context, monkeypatch, explained_storage):
    """Where items may be sent away, all of them stay where they are first."""
    stream = explained_storage.stream(range(12), 4).map(inverse).on_error(ArithmeticError, into=DEAD).pairwise()
    said = said_of(stream, counting())
    with measuring(spark_context.spark, monkeypatch) as measured:
        assert stream.count() == 10

    assert (said.shuffles.most, measured.shuffles) == (0, 0)
    assert within(measured, said)


def test_tasks_are_as_many_as_said(spark_context, monkeypatch):
    """The number of tasks of each stage is the number of partitions that Spark gives it."""
    stream = spark_context.stream(range(12), 5).distinct()
    said = said_of(stream, None)

    assert [str(stage.tasks) for stage in said.stages] == ["5", "5", "5"]
    assert len(stream.partitions()) == 5


def test_many_items_are_sorted_in_as_many_tasks_as_said(spark_context, monkeypatch):
    """With more than 10,000 items for each range the runs are cut, as the upper end of the range says."""
    stream = spark_context.stream(range(60_000), 4).sorted(reverse=True)
    said = said_of(stream, None)
    with measuring(spark_context.spark, monkeypatch) as measured:
        first = stream.to_list()[0]

    assert (first, measured.python_stages, said.python_stages.most) == (59_999, 3, 3)
    assert str(said.stages[-1].tasks) == "1 to 4"
