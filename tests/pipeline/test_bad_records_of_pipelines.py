"""Bad records of a source that a pipeline reads: skipped, sent away, or dealt with by the stage behind it."""

from __future__ import annotations

import uuid

import pytest

from dstream import Pipeline
from dstream.errors import SourceError
from reducers import to_ilist
from sources import json_lines


@pytest.fixture
def path(tmp_path):
    """Write three lines, one of which is no JSON."""
    (tmp_path / "a.jsonl").write_text("1\nx\n3\n")
    return tmp_path / "a.jsonl"


@pytest.fixture
def names():
    """Give the names of two lists that nobody else writes to."""
    return f"good-{uuid.uuid4()}", f"bad-{uuid.uuid4()}"


def test_a_source_of_a_pipeline_skips_what_it_was_told_to(engine, path, names):
    """Also if its stage has a parallelism of its own."""
    pipeline = Pipeline()
    read = pipeline.read_from(json_lines(path, on_bad="skip"))
    read.set_local_parallelism(2).map(lambda n: n + 1).write_to(to_ilist(names[0]))

    engine.context.new_job(pipeline).join()

    assert list(engine.context.get_list(names[0])) == [2, 4]


def test_letters_of_a_source_are_committed_with_the_job(engine, path, names):
    """Once, though two sinks read the stage, and by a pipeline that travelled."""
    pipeline = Pipeline()
    read = pipeline.read_from(json_lines(path, into=to_ilist(names[1])))
    read.write_to(to_ilist(names[0]))
    read.filter(lambda n: n > 2).write_to(to_ilist(names[0] + "-large"))

    engine.context.new_job(pipeline).join()

    assert sorted(engine.context.get_list(names[0])) == [1, 3]
    assert [letter.item.text for letter in engine.context.get_list(names[1])] == ["x"]


def test_a_stage_behind_a_source_deals_with_its_bad_records(engine, path, names):
    """As it does with those of a step."""
    pipeline = Pipeline()
    read = pipeline.read_from(json_lines(path)).set_local_parallelism(2)
    read.resolve(SourceError, lambda bad, error: -bad.line).write_to(to_ilist(names[0]))

    engine.context.new_job(pipeline).join()

    assert list(engine.context.get_list(names[0])) == [1, -2, 3]
