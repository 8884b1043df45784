"""What a pipeline would run as: all formats, and the notebook's picture."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import dstream as ds
from collectors import counting
from dstream.connectors.memory import Items, Range
from dstream.errors import IllegalStateError
from dstream.pipeline import Pipeline, plan
from dstream.session.connection import stages_on
from reducers import to_ilist
from sources import parquet_rows, text_files


@pytest.fixture
def forked(numbers):
    """A pipeline with two sinks on one fork."""
    shared = numbers.map(abs)
    shared.write_to(to_ilist("all"))
    shared.filter(bool).write_to(to_ilist("some"))
    return numbers.pipeline


@pytest.fixture(autouse=True)
def _on_the_local_engine(local_context):
    """Nothing starts for an explanation."""
    ds.set_default_context(local_context)
    yield
    ds.set_default_context(None)


def test_a_pipeline_is_explained(forked, capsys):
    """Each sink has a stage, behind the one that both read."""
    forked.explain()
    printed = capsys.readouterr().out

    assert printed.startswith("write_to(to_ilist('all')), write_to(to_ilist('some')) on the local engine")
    assert printed.count("stage ") >= 3


@pytest.mark.parametrize("format", ["dot", "mermaid", "svg", "html"])
def test_all_formats_draw_it(forked, format):
    """Each names both sinks."""
    drawing = forked.explain(format)

    assert "all" in drawing
    assert "some" in drawing


def test_a_notebook_shows_it(forked, numbers):
    """The picture, or, while it is not complete, its stages and why."""
    assert "<svg" in forked._repr_html_()
    numbers.map(abs)
    assert "ends nowhere" in forked._repr_html_()


def test_what_is_not_complete_is_not_explained(numbers):
    """Nor in a format that does not exist."""
    with pytest.raises(IllegalStateError, match=r"'read_from' at .* ends nowhere"):
        numbers.pipeline.explain()
    with pytest.raises(ValueError, match="format"):
        Pipeline().explain("png")


def test_each_stage_says_whether_it_is_in_order(numbers, capsys):
    """Whatever the order of other branches."""
    numbers.write_to(to_ilist("all"))
    numbers.grouping_key(abs).aggregate(counting()).write_to(to_ilist("counts"))
    numbers.pipeline.explain()
    heads = [line for line in capsys.readouterr().out.splitlines() if line.startswith("stage ")]

    assert heads == [
        "stage 1: 1 task, in order",
        "stage 2: 1 task, in order",
        "stage 3: 1 task, in no order",
    ]


def test_a_pipeline_says_the_route_of_each_function(numbers, capsys, monkeypatch):
    """Also of those behind a fork; the reasons where they are asked for."""
    monkeypatch.setattr(plan, "default_stages", lambda node, into: stages_on(2, node, into))
    shared = numbers.map(lambda n: n + 1)
    shared.write_to(to_ilist("all"))
    shared.filter(lambda n: (m for m in (n,))).write_to(to_ilist("some"))
    for routes in (False, True):
        numbers.pipeline.explain(routes=routes)
        printed = capsys.readouterr().out
        assert "# inlined" in printed
        assert "# Python: has a generator expression that no call uses up" in printed
        assert ("Instead: a list comprehension can be read." in printed) == routes


@dataclass(frozen=True)
class Halves:
    """A source of a user's own, without any optional member."""

    ordered = True
    bounded = True
    in_caller = True

    def splits(self, parallelism):
        """Two halves."""
        return [Items(range(2000)).splits(1)[0], Items(range(2000, 4000)).splits(1)[0]]


@pytest.mark.parametrize(
    "source",
    [
        lambda folder: text_files(str(folder)),
        lambda folder: parquet_rows(str(folder)),
        lambda _: Range(0, 100_000),
        lambda _: Items(list(range(100_000))),
        lambda _: Items(iter([1, 2])),
        lambda _: Halves(),
    ],
    ids=["strings", "columns", "numbers", "list", "iterator", "own"],
)
def test_the_parallelism_of_a_source_changes_the_number_of_its_tasks_alone(source, tmp_path, capsys, monkeypatch):
    """As many parts as there are cores are explained as by default, with the same routes and tasks."""
    monkeypatch.setattr(plan, "default_stages", lambda node, into: stages_on(2, node, into))
    read_from, printed = source(tmp_path), []
    for parallelism in (-1, 2):
        pipeline = Pipeline()
        read = pipeline.read_from(read_from).set_local_parallelism(parallelism)
        read.map(lambda n: n + n).write_to(to_ilist("all"))
        pipeline.explain(routes=True)
        printed.append(capsys.readouterr().out)

    assert printed[0] == printed[1]
