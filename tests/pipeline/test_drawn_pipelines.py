"""Pictures of pipelines: the graph as written, and arrows that leave no stage of a run alone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from collectors import counting
from dstream.pipeline import BatchStage, Pipeline
from dstream.plan.stages import Stages
from dstream.session.connection import stages_on
from reducers import to_ilist
from sources import Items

Build = Callable[[Pipeline], BatchStage]


def numbers(pipeline: Pipeline) -> BatchStage:
    """Read three numbers."""
    return pipeline.read_from(Items([1, 2, 3]))


def joined(pipeline: Pipeline) -> BatchStage:
    """Join with a side that is grouped first."""
    counts = numbers(pipeline).grouping_key(abs).aggregate(counting())
    return numbers(pipeline).hash_join(counts, on=(abs, lambda entry: entry.key))


def joined_with_itself(pipeline: Pipeline) -> BatchStage:
    """Join with a side that reads the same stage."""
    both = numbers(pipeline).distinct()
    return both.hash_join(both.map(str), on=(str, str))


def joined_twice(pipeline: Pipeline) -> BatchStage:
    """Join with two sides, one after the other."""
    first = numbers(pipeline).hash_join(numbers(pipeline), on=(abs, abs))
    return first.hash_join(numbers(pipeline), on=(len, abs))


def branches(pipeline: Pipeline) -> BatchStage:
    """Join three branches of a fork."""
    shared = numbers(pipeline).sorted()
    return shared.map(str).merge(shared.filter(bool)).zip(shared.rolling_aggregate(counting()))


def met_by_key(pipeline: Pipeline) -> BatchStage:
    """Join two sides by key."""
    pairs = numbers(pipeline).distinct().map(lambda n: (n, n))
    return pairs.join(numbers(pipeline).map(lambda n: (n, n)))


BUILDS = (numbers, joined, joined_with_itself, joined_twice, branches, met_by_key)


def forked(build: Build) -> Pipeline:
    """Return a pipeline whose items go into three sinks, of which two read them in other jobs."""
    pipeline = Pipeline()
    shared = build(pipeline)
    shared.filter(bool).write_to(to_ilist("some"))
    shared.sorted().write_to(to_ilist("sorted"))
    shared.grouping_key(hash).aggregate(counting()).write_to(to_ilist("counts"))
    return pipeline


def run_as(pipeline: Pipeline, cores: int | None) -> Stages:
    """Explain a pipeline on Spark."""
    plan = pipeline.plan()
    return stages_on(cores, plan.several([None] * len(plan.writes)), None)


@pytest.mark.parametrize("cores", [1, 2, None])
@pytest.mark.parametrize("build", BUILDS)
def test_every_stage_of_a_run_is_read_or_writes_into_a_sink(build, cores):
    """What is kept, sent and shared has an arrow to each stage that reads it; one without an arrow reads a source."""
    stages = run_as(forked(build), cores)
    read = {each.source for stage in stages.stages for each in stage.inputs}

    for number, stage in enumerate(stages.stages):
        titles = [stages.jobs[job].title for job in stage.jobs]
        # A side that may be small comes to this process, which sends it whole: where it does, nobody reads its parts.
        assert number in read or any("write_to" in title or "comes to this process" in title for title in titles)
        assert stage.inputs or any("read_from" in call.label for call in stage.calls)
        assert all(0 <= each.source < number for each in stage.inputs)


def test_the_right_side_of_a_hash_join_is_sent():
    """An arrow goes from the stage that computes it to the one that looks up in it, not to the end."""
    pipeline = Pipeline()
    numbers(pipeline).hash_join(numbers(pipeline), on=(abs, abs)).write_to(to_ilist("all"))

    assert [[(each.source, each.how) for each in stage.inputs] for stage in run_as(pipeline, 2).stages] == [
        [],
        [(0, "sent")],
    ]


def test_second_readers_of_a_fork_are_connected():
    """Each of the three graphs reads the stage that keeps the items."""
    stages = run_as(forked(numbers), 2).stages
    kept = [each.source for stage in stages for each in stage.inputs if each.how == "kept"]

    assert kept.count(0) >= 2


@pytest.mark.parametrize(("format", "arrow"), [("dot", "->"), ("mermaid", "-->")])
def test_a_pipeline_is_drawn_as_it_was_written(format, arrow):
    """Each stage has its name, and an arrow from each that it reads; no arrow goes elsewhere."""
    drawing = with_two_sources().draw(format)

    assert "names" in drawing
    assert re.findall(rf"(\w+) {arrow} (\w+)", drawing) == [("s0", "s2"), ("s1", "s2"), ("s2", "s3")]


def test_a_picture_of_what_was_written_has_no_end():
    """Three arrows, each a line and a tip, between four boxes."""
    drawing = with_two_sources().draw("svg")

    assert (drawing.count('class="edge edge-written"'), drawing.count("<path"), drawing.count('class="box"')) == (
        6,
        6,
        4,
    )


def with_two_sources() -> Pipeline:
    """Return a hash join of two sources, of which one has a name."""
    pipeline = Pipeline()
    left, right = numbers(pipeline), numbers(pipeline).set_name("names")
    left.hash_join(right, on=(abs, abs)).write_to(to_ilist("all"))
    return pipeline


def test_a_pipeline_as_written_is_printed(capsys):
    """Also one that is not complete: nothing of it runs."""
    numbers(pipeline := Pipeline()).map(str)
    pipeline.draw()
    printed = capsys.readouterr().out

    assert printed.startswith("Pipeline with 2 stages\n\nread_from\n  read_from(Items([1, 2, 3], partitions=None))")
    assert "\n\nmap\n  <- read_from\n  .map(str)  " in printed


def test_no_other_format_is_drawn():
    """As of `explain`."""
    with pytest.raises(ValueError, match="format must be one of"):
        Pipeline().draw("png")
