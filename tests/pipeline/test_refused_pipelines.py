"""What no job may run is refused when its plan is made, with the name and the line of the stage."""

from __future__ import annotations

import pytest

from dstream.core import processors
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.pipeline import Pipeline
from dstream.stream import Stream
from reducers import to_ilist
from sources import Items, Iterate

HERE = r"at .*test_refused_pipelines\.py:\d+"


def test_an_empty_pipeline_is_refused(pipeline):
    """It has no source."""
    with pytest.raises(IllegalStateError, match=r"the pipeline is empty: it begins with pipeline\.read_from"):
        pipeline.plan()


def test_a_stage_that_ends_nowhere_is_refused(numbers):
    """Also where other branches have their sinks."""
    numbers.write_to(to_ilist("x"))
    numbers.filter(bool)
    with pytest.raises(IllegalStateError, match=rf"the stage 'filter' {HERE} ends nowhere: attach write_to\(sink\)"):
        numbers.pipeline.plan()


def test_a_sink_object_is_used_once(numbers):
    """It would write twice; two of its kind may write to one collection."""
    sink = to_ilist("x")
    numbers.write_to(sink)
    numbers.map(abs).write_to(sink)
    with pytest.raises(IllegalStateError, match=rf"'write_to-2' {HERE} writes to the same sink object as .*'write_to'"):
        numbers.pipeline.plan()


def test_a_sink_takes_no_dead_letters_as_well(numbers):
    """It would publish them beside its items, whatever becomes of the job."""
    sink = to_ilist("x")
    numbers.map(abs).on_error(ValueError, into=sink).write_to(sink)
    with pytest.raises(IllegalStateError, match=rf"'write_to' {HERE} writes to the same sink object as .*'on_error'"):
        numbers.pipeline.plan()


def test_what_never_ends_is_refused(pipeline):
    """It cannot be read range by range; a limit makes an end."""
    endless = pipeline.read_from(Iterate(0, abs))
    endless.limit(3).write_to(to_ilist("x"))
    assert pipeline.plan().writes
    endless.map(abs).write_to(to_ilist("y"))
    with pytest.raises(UnsupportedError, match=rf"'read_from' {HERE} reads .*, which never ends: limit\(\) ends it"):
        pipeline.plan()


TOGETHER = {
    "anti_join": lambda mine, other: mine.anti_join(other, on=abs),
    "apply": lambda mine, other: mine.apply(lambda _: other),
    "co_aggregate": lambda mine, other: mine.co_aggregate(other, op=None),
    "cogroup": lambda mine, other: mine.cogroup(other, on=abs),
    "asof_join": lambda mine, other: mine.asof_join(other, on=abs),
    "concat": lambda mine, other: mine + other,
    "hash_join": lambda mine, other: mine.hash_join(other, on=(abs, abs)),
    "hash_join_all": lambda mine, other: mine.hash_join_all([(mine, (abs, abs)), (other, (abs, abs))]),
    "inner_hash_join": lambda mine, other: mine.inner_hash_join(other, on=(abs, abs)),
    "join": lambda mine, other: mine.join(other, on=abs),
    "merge": lambda mine, other: mine.merge(mine, other),
    "union": lambda mine, other: mine.union(other),
    "zip": lambda mine, other: mine.zip(other),
}


@pytest.mark.parametrize("call", TOGETHER)
def test_stages_of_two_pipelines_do_not_meet(numbers, call):
    """They are refused at the call, with both places."""
    other = Pipeline().read_from(Items([1]), name="theirs")
    with pytest.raises(
        IllegalStateError, match=rf"^{call}\(\) takes stages of one pipeline: .*'read_from' at .*'theirs' at"
    ):
        TOGETHER[call](numbers, other)


def test_keyed_stages_of_two_pipelines_do_not_meet(numbers):
    """Nor does a sink take a stage of another one."""
    other = Pipeline().read_from(Items([1]))
    with pytest.raises(IllegalStateError, match="belong to two; build both from one Pipeline"):
        numbers.grouping_key(abs).co_aggregate(other.grouping_key(abs), op=None)
    with pytest.raises(IllegalStateError, match=r"'read_from' at .* belongs to another pipeline"):
        numbers.pipeline.write_to(to_ilist("x"), numbers, other)


@pytest.mark.parametrize("call", [call for call in TOGETHER if call not in ("apply", "concat")])
def test_a_stream_is_no_stage(numbers, call):
    """It belongs to a context."""
    with pytest.raises(TypeError, match=r"takes stages of this pipeline, not a stream, which belongs to a context"):
        TOGETHER[call](numbers, Stream.of(1))


NEEDING_TIME = {
    "window of a stage": lambda stage: stage.window(None),
    "window of a keyed stage": lambda stage: stage.grouping_key(abs).window(None),
    "ttl": lambda stage: stage.map_stateful(list, max, ttl=3),
    "ttl by key": lambda stage: stage.grouping_key(abs).filter_stateful(list, max, ttl=3),
    "on_evict": lambda stage: stage.flat_map_stateful(list, max, on_evict=print),
}


@pytest.mark.parametrize("what", NEEDING_TIME)
def test_what_needs_the_time_of_items_says_where_to_get_it(numbers, what):
    """No stage is added."""
    with pytest.raises(UnsupportedError, match=r"is for items with timestamps: add_timestamps\(fn\) of this stage"):
        NEEDING_TIME[what](numbers)

    assert repr(numbers.pipeline).startswith("Pipeline with 1 stage\n")


def test_a_source_whose_name_is_refused_is_not_there(pipeline, numbers):
    """Otherwise it would end nowhere, and nobody could take it away."""
    numbers.set_name("numbers").write_to(to_ilist("out"))
    with pytest.raises(IllegalStateError, match="has that name already"):
        pipeline.read_from(Items([1]), name="numbers")
    with pytest.raises(ValueError, match="must not be empty"):
        pipeline.read_from(Items([1]), name="")

    assert [stage.name for stage in pipeline.plan().stages] == ["numbers", "write_to"]


def test_processors_whose_name_is_refused_are_not_there(pipeline, numbers):
    """As a source of such a name, which would end nowhere."""
    numbers.custom_transform("numbers", processors.map(str)).write_to(to_ilist("out"))
    for stage in (numbers, numbers.grouping_key(str)):
        with pytest.raises(IllegalStateError, match="has that name already"):
            stage.custom_transform("numbers", processors.map(str))

    assert [stage.name for stage in pipeline.plan().stages] == ["read_from", "numbers", "write_to"]


def test_a_fork_that_never_ends_is_refused(pipeline):
    """Also where every branch ends, if one of them does not say before how far it reads."""
    endless = pipeline.read_from(Iterate(1, abs))
    endless.filter(bool).limit(2).write_to(to_ilist("two"))
    endless.limit(3).write_to(to_ilist("three"))

    with pytest.raises(UnsupportedError, match=rf"the stage 'read_from' {HERE} never ends, and more than one"):
        pipeline.plan()
