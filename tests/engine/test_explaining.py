"""What is said of a graph before it runs: every way that a decision may go, and the stages where the most is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from collectors import counting, grouping_by
from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.physical.vertices import SourceSplits, Splits
from dstream.errors import UnsupportedError
from dstream.explain.bounds import MANY, Counting
from dstream.explain.estimates import CostEstimate
from dstream.gatherers import Gatherer, map_concurrent
from dstream.plan import Partitions, Read, rewrite
from dstream.plan.stages import Amount, Stages
from dstream.session.connection import stages_on
from dstream.stream import Stream
from sources import Items, text_files


def stream(partitions: int = 4) -> Stream[int]:
    """Return a stream in so many partitions."""
    return Stream(Read(Items(range(12), partitions)), None)


def files() -> Stream[str]:
    """Return a stream whose splits nobody knows before it runs."""
    return Stream(Read(text_files("/nowhere/*.txt")), None)


def said(of: Stream[Any], into: Any = None, cores: int | None = 2) -> Stages:
    """Explain a stream."""
    return stages_on(cores, of._node, into)


def outlook(of: Stream[Any]) -> CostEstimate:
    """Follow the decisions of a stream on two cores."""
    return CostEstimate([compiled(rewrite(Partitions(of._node)), ClusterFacts(2, 2, 100))[0]])


def edges(of: Stages) -> list[list[tuple[int, str]]]:
    """Return where the items of each stage come from."""
    return [[(each.source, each.how) for each in stage.inputs] for stage in of.stages]


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (0, None, Amount(5, 5)),
        (1, 4, Amount(3, 3)),
        (3, None, Amount(2, 2)),
        (4, 9, Amount(1, 1)),
        (7, 9, Amount(0, 0)),
    ],
)
def test_some_pieces_of_a_source_are_counted(start, stop, expected):
    """A range of the pieces, as far as there are so many."""
    source = SourceSplits(Read(Items(range(5), 5)), 2)

    assert Counting().partitions((Splits((source,), start=start, stop=stop),)) == expected


def test_pieces_that_nobody_has_listed_are_a_range():
    """None or more of a part; as many as are asked for at most."""
    source = SourceSplits(Read(text_files("/nowhere/*.txt")), 2)
    counting = Counting()

    assert counting.partitions((Splits((source,)),)).most is None
    assert counting.partitions((Splits((source,), start=1, stop=5),)) == Amount(0, 4)
    assert counting.may_be_one((Splits((source,)),)) is None


def test_a_limit_ends_with_the_first_wave_or_with_the_last():
    """One partition, then the other three."""
    (limit,) = outlook(stream().limit(3).map(str)).foreseen

    assert limit.cost.jobs == Amount(1, 2)
    assert [str(job.amount) for job in limit.jobs] == ["1 to 2"]


def test_waves_over_a_source_without_a_known_end_are_without_a_known_end():
    """They stop being followed, and nothing is said of how many there are at most."""
    (limit,) = outlook(files().limit(3).map(str)).foreseen

    assert (limit.cost.jobs.least, limit.cost.jobs.most) == (0, None)


def test_what_one_partition_does_alone_is_a_way_to_go():
    """It costs nothing; two or more partitions need two shuffles."""
    (distinct,) = outlook(files().distinct()).foreseen

    assert distinct.cost.jobs == Amount(0, 0)
    assert said(files().distinct()).shuffles == Amount(0, 2)
    assert {exchange.is_sure for stage in said(files().distinct()).stages for exchange in stage.inputs} == {False}


def test_each_side_of_a_join_may_be_small():
    """Four ways: right, left, or neither, one or two questions before."""
    (meet,) = outlook(stream().join(stream(), on=abs)).foreseen

    assert [job.condition for job in meet.jobs] == [
        "",
        "if it is at most 100 bytes",
        "if the right side is larger",
        "if it is at most 100 bytes",
    ]
    assert meet.cost.jobs == Amount(2, 3)


def test_what_is_shared_is_one_stage():
    """Two that go on from one shuffle read it in the same tasks."""
    shared = stream().unordered().distinct()

    assert edges(said(shared.map(abs) + shared.map(str))) == [[], [(0, "shuffle")], [(1, "pipe")], [(1, "pipe")]]


def test_what_a_source_gives_twice_is_read_in_two_stages_of_one():
    """The source stands once, and what each does with it beside each other."""
    shared = stream().map(abs)

    assert edges(said(shared.map(str) + shared.filter(bool))) == [
        [],
        [(0, "pipe")],
        [(0, "pipe")],
        [(1, "pipe"), (2, "pipe")],
    ]


def test_a_job_runs_what_no_earlier_job_kept():
    """What a sort wrote is read again; the stages before it run once."""
    assert [stage.jobs for stage in said(stream().map(abs).sorted().map(str)).stages] == [(0,), (1,), (1,)]


def test_what_is_asked_for_again_does_not_run_again():
    """The rows of the small side come to this process from where the first job left them."""
    joined = said(stream().join(stream(), on=abs, how="left"))

    assert [job.title.partition(": ")[2] for job in joined.jobs[:2]] == [
        "the right side is computed, and measured",
        "the right side comes to this process",
    ]
    assert [stage.jobs for stage in joined.stages] == [(0,), (2,), (2,)]


def test_few_cores_and_many_bound_what_nobody_knows():
    """At least one task, and no bound above; the shuffle of one partition is left out."""
    grouped = said(stream(9), grouping_by(abs, counting()), None)

    assert (grouped.stages[0].tasks, grouped.stages[-1].tasks) == (Amount(9, 9), Amount(3, 9))
    assert said(Stream(Read(Items(range(99))), None).distinct(), None, None).shuffles == Amount(0, 2)


def test_the_buckets_of_a_map_bound_its_writers():
    """A map that nobody has opened has at least one."""
    from reducers import to_imap

    assert str(said(stream(), to_imap("m", abs, str)).stages[-1].tasks) == "1 to 4"


def test_no_function_runs_and_no_number_is_shown_that_stands_for_none():
    """What stands for an unknown number inside is no number outside."""

    @dataclass(frozen=True)
    class Refusing:
        def __call__(self, *args: Any) -> Any:
            raise AssertionError("nothing runs")

    refuse = Refusing()
    parts = files().map(refuse).sorted(key=refuse).distinct(key=refuse).join(files(), on=refuse).sorted()
    numbers = [stage.tasks for stage in said(parts, None, None).stages]

    assert all(each.least < MANY for each in numbers)
    assert all(each.most is None or each.most < MANY for each in numbers)


def endless() -> Stream[int]:
    """Return a stream without an end."""
    return Stream.iterate(1, abs)


@pytest.mark.parametrize("cores", [2, None])
def test_what_runs_on_an_endless_stream_is_explained(cores):
    """A way that would be refused is not taken; what one task does in any case needs no way of its own."""
    for runs in (
        endless().join(stream(), on=abs).limit(4),
        Stream.generate(int).skip(1).pairwise().limit(3),
        Stream.concat(files(), endless().map(str)).chunked(2).distinct().limit(3),
    ):
        assert said(runs, None, cores).job_count.least >= 1


def test_what_no_way_can_do_is_refused():
    """An endless stream cannot follow a shuffle to a sort of its keys."""
    with pytest.raises(UnsupportedError, match="that follows one with a shuffle"):
        said(Stream.concat(stream().distinct(), endless()).distinct().limit(3))


def test_every_stage_runs_in_a_job():
    """Also where waves run over a source and over a shuffle, and where a join reads what waves left."""
    both = stream() + stream().unordered().distinct()

    for each in (both.take_while(bool).map(str), stream().limit(3).join(stream(), on=abs), both.skip(2).sorted()):
        assert all(stage.jobs for stage in said(each).stages)


def test_what_runs_once_is_counted_once():
    """In a job for a sample, or in the last one: never in none of them, never in both."""
    sorts = stream()
    for _ in range(9):
        sorts = sorts.sorted()

    assert said(sorts).shuffles == Amount(1, 9)
    assert said(stream().sorted().pairwise()).shuffles == Amount(1, 1)


def test_unknown_cores_contain_known_ones():
    """What is said with nobody's cores holds for two, for three and for many."""
    rated = stream(40).gather(map_concurrent(2, abs, rate=50))
    own = Gatherer.of(list, integrator=_push, combiner=list.extend, finisher=lambda state, downstream: None)

    for each in (rated, stream().gather(own).take_while(bool).pairwise(), stream(9).sorted().distinct()):
        unknown = said(each, None, None)
        for cores in (2, 3, 64):
            known = said(each, None, cores)
            assert _contains(unknown.job_count, known.job_count)
            assert _contains(unknown.shuffles, known.shuffles)
            assert _contains(unknown.python_stages, known.python_stages)


def _push(state: list[Any], item: Any, downstream: Any) -> None:
    downstream.push(item)


def _contains(outer: Amount, inner: Amount) -> bool:
    return outer.least <= inner.least and (outer.most is None or (inner.most or 0) <= outer.most)


def test_a_stream_that_grows_beside_itself_stays_small():
    """Each part is a stage, not each part of each step."""
    grown = stream()
    for _ in range(60):
        grown = grown.partition_by(3, abs) + grown

    assert len(said(grown).stages) < 130


def test_a_limit_that_reads_nothing_is_another_way_than_one_that_does():
    """In several partitions nothing of what comes before is read; in one, its rows are."""
    nothing = stream().partition_by(4, abs).sorted().pairwise().limit(0).map(str)

    assert said(nothing).shuffles == Amount(1, 2)
