"""`job.metrics()`: a job in numbers, in each of its forms."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import dstream as ds
from dstream.core import DAG, Edge, processors
from dstream.spi.sink import counted_receipts, counting
from reducers import to_ilist, to_imap
from sources import Items
from tests.jobs.planned import plan_of


@pytest.fixture
def metrics(connect):
    """Those of a job with two sinks, as another process sees them."""
    ctx, other = connect(), connect()
    ctx.new_job(plan_of(ctx.stream("abca"), to_ilist("all"), to_imap("each", str, len, max)), name='a"b').join()
    return other.job('a"b').metrics()


def test_metrics_count_what_stages_give_on_and_sinks_write(metrics):
    """Items for a list, entries for a map."""
    assert {name: (stage.items_in, stage.items_out) for name, stage in metrics.stages.items()} == {
        "source": (None, 4),
        "sink-1": (4, 4),
        "sink-2": (4, 3),
    }


def test_metrics_are_a_dictionary(metrics):
    """Of plain data, with all that the attributes have."""
    known = dict(metrics)

    assert (known["status"], known["epochs"], known["runs"], known["name"]) == ("COMPLETED", 1, 1, 'a"b')
    assert known["stages"]["sink-1"] == {"items_in": 4, "items_out": 4, "late": None, "dead_letters": None}
    assert list(known["times"]) == ["STARTING", "RUNNING", "COMPLETING", "COMPLETED"]
    assert (known["seconds"] > 0, len(metrics), "nothing" in metrics) == (True, len(known), False)


def test_metrics_are_a_table(metrics):
    """A line for each stage, below what is known of the job."""
    console = Console(file=io.StringIO(), width=100)
    console.print(metrics)
    lines = [line.split() for line in console.file.getvalue().splitlines()]

    assert lines[0][:2] == ['a"b:', "COMPLETED,"]
    assert lines[1:] == [
        ["stage", "items", "in", "items", "out"],
        ["source", "4"],
        ["sink-1", "4", "4"],
        ["sink-2", "4", "3"],
    ]


def test_metrics_show_their_table(metrics):
    """Also in a prompt, and to `print`."""
    shown = repr(metrics).splitlines()

    assert shown == str(metrics).splitlines()
    assert (shown[0].split()[:2], shown[3].split()) == (['a"b:', "COMPLETED,"], ["sink-1", "4", "4"])
    assert not any(line != line.rstrip() for line in shown)


def test_metrics_are_openmetrics(metrics):
    """Texts are quoted, counters end in `_total`, and the end is marked."""
    lines = metrics.to_openmetrics().splitlines()
    job = f'job_id="{metrics.id}",job_name="a\\"b"'

    assert f'dstream_stage_items_out_total{{{job},stage="sink-1"}} 4' in lines
    assert f'dstream_job_status{{{job},dstream_job_status="COMPLETED"}} 1' in lines
    assert (f"dstream_job_runs_total{{{job}}} 1" in lines, lines[-1]) == (True, "# EOF")


def test_metrics_may_be_left_out(ctx):
    """Then nothing is counted, and the sinks write the same."""
    job = ctx.new_job(plan_of(ctx.stream([1]), to_ilist("a")), config=ds.JobConfig(metrics=False))
    job.join()

    stages = job.metrics().stages.values()
    assert {each.items_in for each in stages} | {each.items_out for each in stages} == {None}
    assert ctx.get_list("a").copy() == [1]


def test_counting_keeps_the_receipts_of_a_writer():
    """Also those that are numbers themselves."""

    class Numbers:
        def write(self, items):
            yield from (len(list(items)), 7)

    receipts = [*counting(Numbers()).write(iter("abc")), *counting(Numbers()).write(iter(""))]

    assert counted_receipts(receipts) == ([3, 7, 0, 7], 3)


def test_metrics_of_edges_are_seen_from_elsewhere(connect):
    """The record of a job has them, and another context reads it."""
    dag = DAG()
    source = dag.new_vertex("words", processors.read(Items("abc")))
    same = dag.new_vertex("same", processors.map(str.upper)).local_parallelism(1)
    sink = dag.new_vertex("sink", processors.write(to_ilist("out")))
    dag.edge(Edge.between(source, same)).edge(Edge.between(same, sink))
    connect().new_job(dag, name="graph").join(10)

    found = connect().job("graph").metrics().stages["same"]

    assert (found.items_in_by_edge, found.items_out_by_edge) == ((3,), (3,))
