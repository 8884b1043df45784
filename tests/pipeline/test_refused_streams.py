"""What stages without an end refuse, at the call, with what there is instead."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import pytest

from collectors import co_operation, counting, to_bags
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.pipeline import BatchStage, Pipeline, StreamStage
from dstream.plan.timestamps import StreamRead
from dstream.windows import limiting_lag, tumbling
from reducers import to_ilist
from sources import Items, Iterate, watch_files


@pytest.fixture
def lines(pipeline: Pipeline) -> StreamStage[str]:
    """A stage of lines without an end, without timestamps."""
    return pipeline.read_from(watch_files("/logs"))


@pytest.fixture
def stamped(lines: StreamStage[str]) -> StreamStage[str]:
    """The same with timestamps."""
    return lines.add_timestamps(len)


NEEDING_TIME = {
    "window": lambda stage: stage.window(tumbling(10)),
    "keyed window": lambda stage: stage.grouping_key(len).window(tumbling(10)),
    "ttl": lambda stage: stage.map_stateful(list, max, ttl=5),
    "within": lambda stage: stage.grouping_key(len).distinct(within=5),
    "join_within": lambda stage: stage.join_within(stage, on=len),
    "merged": lambda stage: stage.merge(stage.add_timestamps(len)).window(tumbling(10)),
    "joined": lambda stage: stage.grouping_key(len).rolling_aggregate(counting()).window(tumbling(10)),
}


@pytest.mark.parametrize("name", NEEDING_TIME)
def test_what_needs_timestamps_says_how_to_get_them(lines, name):
    """Jet says it when the aggregate is called; here it is the window."""
    with pytest.raises(IllegalStateError, match=r"needs timestamps, and .* without: add_timestamps\(fn, allowed_lag="):
        NEEDING_TIME[name](lines)


def test_another_input_needs_timestamps_too(lines, stamped):
    """It could never say that a window has closed."""
    with pytest.raises(IllegalStateError, match=r"window\(tumbling\(10\)\) needs timestamps"):
        stamped.window(tumbling(10)).co_aggregate(lines, op=to_bags(2))


AGAIN = {
    "add": lambda stage: stage.add_timestamps(len),
    "behind a map": lambda stage: stage.map(str.strip).add_timestamps(len),
    "clock": lambda stage: stage.ingestion_timestamps(),
    "behind a window": lambda stage: stage.window(tumbling(10)).aggregate(counting()).ingestion_timestamps(),
}


@pytest.mark.parametrize("name", AGAIN)
def test_timestamps_are_given_once(stamped, name):
    """A second time would not know of the first."""
    with pytest.raises(IllegalStateError, match="these items have timestamps already, and have them once"):
        AGAIN[name](stamped)


MOVED = {
    "rebalance": lambda stage: stage.rebalance(),
    "merge": lambda stage: stage.merge(stage),
    "rolling_aggregate": lambda stage: stage.rolling_aggregate(counting()),
    "map_concurrent": lambda stage: stage.map_concurrent(2, len, rate=5),
}


@pytest.mark.parametrize("name", MOVED)
def test_timestamps_are_given_where_a_partition_is_read(lines, name):
    """Behind a step that moves items, nobody knows of which partition one is."""
    with pytest.raises(UnsupportedError, match=rf"add_timestamps\(\) behind .*{name}\("):
        MOVED[name](lines).add_timestamps(len)


@pytest.mark.parametrize("call", ["add_timestamps", "to_stream_stage", "merge"])
def test_a_stage_that_ends_runs_in_epochs_if_its_steps_do(numbers, lines, call):
    """What needs all items has no parts."""
    made = {
        "add_timestamps": lambda stage: stage.add_timestamps(abs),
        "to_stream_stage": lambda stage: stage.to_stream_stage(),
        "merge": lambda stage: lines.merge(stage),
    }[call]
    with pytest.raises(UnsupportedError, match=rf"{call}\(.*\) behind \.sorted\(\): partitions of sources are read"):
        made(numbers.sorted())


def test_a_generator_without_an_end_has_no_ranges(pipeline):
    """It is no source that a job can go on reading."""
    with pytest.raises(UnsupportedError, match="never ends and cannot be read range by range: stream_source_from"):
        pipeline.read_from(Iterate(0, abs)).add_timestamps(abs)


def test_what_reads_a_source_without_an_end_is_no_source(pipeline):
    """It would make a stage that seems to end."""
    with pytest.raises(TypeError, match=r"takes the source itself: read_from\(watch_files\('/logs'\)\)"):
        pipeline.read_from(StreamRead(watch_files("/logs")))


def test_a_source_may_have_no_timestamps(lines):
    """Its label is named, and what gives them."""
    with pytest.raises(UnsupportedError, match=r"watch_files\('/logs'\) has no timestamps of its own: add_timestamps"):
        lines.native_timestamps()


def test_the_timestamps_of_a_source_are_of_its_own_items(lines):
    """A step before has made others."""
    with pytest.raises(IllegalStateError, match=r"directly behind read_from\(\.\.\.\), and here behind \.map\(len\)"):
        lines.map(len).native_timestamps()


@dataclass
class Saying:
    """A policy of a user's that says one thing, and holds another."""

    said: Any
    held: Any = None

    def report(self, timestamp: int, now: float) -> None:
        """Do not listen."""

    def watermark(self, now: float) -> Any:
        """Say the thing."""
        return self.said


WRONG = {
    "lag and policy": (lambda s: s.add_timestamps(len, 5, limiting_lag(5)), "allowed_lag= or policy=, not both"),
    "policy": (lambda s: s.add_timestamps(len, policy=5), "policy must be a policy of dstream.windows"),
    "class of policies": (lambda s: s.add_timestamps(len, policy=type(limiting_lag(1))), "policy must be a policy"),
    "policy with a file": (
        lambda s: s.add_timestamps(len, policy=Saying(0, sys.stdout)),
        "kept with each epoch, and .*Sayi",
    ),
    "policy without events": (
        lambda s: s.add_timestamps(len, policy=Saying(None)),
        "also before the first .*, not None",
    ),
    "timestamp": (lambda s: s.add_timestamps("time"), "fn must be a function, not str"),
    "lag": (lambda s: s.add_timestamps(len, "5"), "allowed_lag must be milliseconds as int, or a timedelta"),
    "window": (lambda s: s.window(10), r"window must be one of dstream\.windows, .* not int"),
    "gatherer": (lambda s: s.gather(len), "gatherer must be a Gatherer"),
    "on_evict": (lambda s: s.map_stateful(list, max, on_evict=max), "on_evict= is for states that have an end"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(lines, name):
    """At the call that has them."""
    call, message = WRONG[name]
    with pytest.raises(TypeError, match=message):
        call(lines)


WRONG_IN_WINDOWS = {
    "late_to": (lambda s: s.window(tumbling(10), late_to=list), "write_to.* takes a sink"),
    "arity": (lambda s: s.window(tumbling(10)).aggregate(to_bags(2)), "has 2 inputs, and aggregate"),
    "to": (lambda s: s.window(tumbling(10)).aggregate(counting(), 5), "to must be a function, not int"),
    "on": (lambda s: s.join_within(s, on=5), "on must be a key function of both sides, or one for each"),
    "co_aggregate": (
        lambda s: s.grouping_key(len).window(tumbling(10)).co_aggregate(s, op=co_operation(counting(), counting())),
        "a keyed stage without an end takes such stages, stage.grouping_key",
    ),
}


@pytest.mark.parametrize("name", WRONG_IN_WINDOWS)
def test_wrong_arguments_of_windows_are_named(stamped, name):
    """At the call that has them."""
    call, message = WRONG_IN_WINDOWS[name]
    with pytest.raises(TypeError, match=message):
        call(stamped)


INSTEAD = {
    "aggregate": r"window\(\.\.\.\)\.aggregate\(op\)",
    "sorted": r"window\(\.\.\.\)\.aggregate\(sorting\(key\)\)",
    "limit": r"window\(\.\.\.\)\.aggregate\(op\)",
    "distinct": r"grouping_key\(fn\)\.distinct\(within=\.\.\.\)",
    "join": "join_within",
    "semi_join": "inner_hash_join",
    "count_by_key": r"grouping_key\(fn\)\.window",
    "enumerate": "map_stateful",
    "partition_by": "grouping_key",
    "cache": "write_to",
}


@pytest.mark.parametrize("name", INSTEAD)
def test_what_needs_all_items_says_what_there_is_instead(lines, name):
    """By its own name, whatever it is given."""
    with pytest.raises(UnsupportedError, match=rf"{name}\(\) needs all items, .* has no end: use {INSTEAD[name]}"):
        getattr(lines, name)(1)


def test_every_method_of_a_stage_that_ends_is_there_or_refused():
    """None is an attribute that nobody knows."""
    stage = Pipeline().read_from(watch_files("/logs"))
    missing = [name for name in dir(BatchStage) if not name.startswith("_") and not hasattr(stage, name)]
    assert missing == []


def test_a_keyed_stage_refuses_aggregates_of_all_items(lines):
    """Windows make ends."""
    with pytest.raises(UnsupportedError, match=r"aggregate\(\) needs all items, and a KeyedStreamStage has no end"):
        lines.grouping_key(len).aggregate(counting())


ELSEWHERE = {
    "withTimestamps": "add_timestamps(fn, allowed_lag=...)",
    "with_watermark": "add_timestamps(fn, allowed_lag=...)",
    "addTimestamps": "add_timestamps",
    "withNativeTimestamps": "native_timestamps(allowed_lag=...)",
    "intervalJoin": "join_within(other, on=..., before=..., after=...)",
    "groupingKey": "grouping_key",
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_of_other_libraries_lead_to_ours(lines, name):
    """Those of Jet, of Flink, of Spark."""
    with pytest.raises(AttributeError) as caught:
        getattr(lines, name)
    assert str(caught.value).partition("; use ")[2] == ELSEWHERE[name]


ON_THE_WAY = {
    "streamStage": (lambda stage: stage.window(tumbling(10)), "stage"),
    "windowDefinition": (lambda stage: stage.window(tumbling(10)), "definition"),
    "aggregate2": (lambda stage: stage.window(tumbling(10)), "co_aggregate(*others, op=...)"),
    "keyFn": (lambda stage: stage.grouping_key(len), "key"),
    "rollingAggregate": (lambda stage: stage.grouping_key(len), "rolling_aggregate"),
    "map": (lambda stage: stage.grouping_key(len), "map(...) of the stage, before grouping_key(fn)"),
    "write_to": (lambda stage: stage.window(tumbling(10)), "write_to(...) of the stage, before window(...)"),
}


@pytest.mark.parametrize("name", ON_THE_WAY)
def test_what_is_no_stage_yet_says_what_is_meant(stamped, name):
    """A name of Jet's, or a method of the stage before."""
    made, meant = ON_THE_WAY[name]
    with pytest.raises(AttributeError) as caught:
        getattr(made(stamped), name)
    assert str(caught.value).partition("; use ")[2] == meant


def test_a_name_that_nobody_has_is_no_attribute(lines):
    """Those of Jet lead to ours."""
    with pytest.raises(AttributeError, match=r"a StreamStage has no 'mapStateful'; use map_stateful"):
        lines.mapStateful  # noqa: B018  # it is asked for
    with pytest.raises(AttributeError, match="a StreamStage has no 'xyzzy'"):
        lines.xyzzy  # noqa: B018


SIDES = {
    "hash_join": lambda lines, numbers: lines.hash_join(lines, on=(len, len)),
    "merge of a batch": lambda lines, numbers: numbers.merge(lines),
    "join of a batch": lambda lines, numbers: numbers.key_by(abs).join(lines),
    "hash_join of a batch": lambda lines, numbers: numbers.hash_join(lines, on=(abs, len)),
}


@pytest.mark.parametrize("name", SIDES)
def test_a_side_that_must_end_does(lines, numbers, name):
    """The stage is named, and what takes it."""
    with pytest.raises(IllegalStateError, match="takes stages whose items end beside it, and 'read_from' has no end"):
        SIDES[name](lines, numbers)


def test_a_side_in_time_has_no_end(stamped):
    """A stage that ends becomes one with timestamps."""
    ending = stamped.pipeline.read_from(Items([1]))
    with pytest.raises(IllegalStateError, match=r"'read_from-2' ends: add_timestamps\(fn\) runs it as one"):
        stamped.join_within(ending, on=len)


def test_a_sink_for_late_items_is_used_once(stamped):
    """As any sink object is."""
    sink = to_ilist("x")
    stamped.window(tumbling(10), late_to=sink).aggregate(counting()).write_to(sink)
    with pytest.raises(IllegalStateError, match="writes to the same sink object"):
        stamped.pipeline.plan()


def test_what_ends_is_written_by_a_pipeline_of_its_own(lines, pipeline):
    """In epochs it would be written again and again."""
    lines.write_to(to_ilist("x"))
    pipeline.read_from(Items([1])).sorted().write_to(to_ilist("y"))
    with pytest.raises(UnsupportedError, match=r"'write_to-2' at .* writes items that end, and others .* have no end"):
        pipeline.plan()


def test_gatherers_that_remember_items_are_refused(lines):
    """A state outlives epochs, and a gatherer does not."""
    from dstream.gatherers import window_fixed

    with pytest.raises(UnsupportedError, match=r"takes map_concurrent\(\.\.\.\) alone: map_stateful"):
        lines.gather(window_fixed(3))
