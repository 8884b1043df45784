"""Stages without an end: what each method adds to the plan, and what the pipeline says of it. Nothing runs."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

import dstream as ds
from collectors import counting, to_bags, to_list
from dstream.pipeline import KeyedStreamStage, KeyedWindowedStage, Pipeline, StreamStage, WindowedStage
from dstream.plan import rewrite, topological
from dstream.plan.operations.ends import Write
from dstream.plan.operations.streams import Spread
from dstream.plan.operations.unbounded import AssignTimestamps, OverEpochs
from dstream.plan.timestamps import timed
from dstream.windows import limiting_lag, session, sliding, tumbling
from reducers import to_ilist
from sources import Items, watch_files


@pytest.fixture
def lines(pipeline: Pipeline) -> StreamStage[str]:
    """A stage of lines without an end."""
    return pipeline.read_from(watch_files("/logs"), name="lines")


@pytest.fixture
def stamped(lines: StreamStage[str]) -> StreamStage[str]:
    """The same with timestamps."""
    return lines.add_timestamps(len)


def core_of(stage):
    """Return the core plan of a pipeline that ends in this stage, with timestamps beside the items."""
    stage.write_to(to_ilist("out"))
    plan = stage.pipeline.plan()
    return topological(timed(rewrite(plan.several([None] * len(plan.writes)))))


def operations(stage, kind):
    """Return the operations of one kind in such a plan."""
    return [each for each in core_of(stage) if isinstance(each, kind)]


STEPS = {
    "map": lambda stage: stage.map(len),
    "map_to_double": lambda stage: stage.map_to_double(len),
    "filter": lambda stage: stage.filter(bool),
    "flat_map": lambda stage: stage.flat_map(str.split),
    "map_multi": lambda stage: stage.map_multi(lambda line, emit: emit(line)),
    "flatten": lambda stage: stage.flatten(),
    "pluck": lambda stage: stage.pluck(0),
    "starmap": lambda stage: stage.starmap(max),
    "key_by": lambda stage: stage.key_by(len),
    "map_values": lambda stage: stage.map_values(len),
    "map_concurrent": lambda stage: stage.map_concurrent(2, len),
    "map_using_imap": lambda stage: stage.map_using_imap("names", len, max),
    "on_error": lambda stage: stage.map(int).on_error(ValueError, into=to_ilist("bad")),
    "resolve": lambda stage: stage.map(int).resolve(ValueError, lambda line, error: 0),
    "peek": lambda stage: stage.peek(),
    "rebalance": lambda stage: stage.rebalance(),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_gives_a_stage_of_the_same_kind(lines, name):
    """It is called like its method, and a job runs it epoch by epoch."""
    stage = STEPS[name](lines)
    stage.write_to(to_ilist("out"))

    assert (type(stage), stage.name) == (StreamStage, name)
    assert lines.pipeline.plan().is_unbounded


def test_timestamps_show_what_they_were_given(lines):
    """As the user wrote it."""
    assert repr(lines.add_timestamps(len, allowed_lag=timedelta(seconds=2))).endswith(
        ".add_timestamps(len, allowed_lag=datetime.timedelta(seconds=2))>"
    )
    assert repr(lines.ingestion_timestamps()).endswith(".ingestion_timestamps()>")


def test_timestamps_know_their_stage_and_their_policy(lines):
    """Each partition gets a policy of its own, which starts as the given one does."""
    (stamp,) = operations(lines.add_timestamps(len, allowed_lag=5, idle_timeout=7).set_name("time"), AssignTimestamps)
    first, second = stamp.policy(), stamp.policy()
    first.report(100, now=0.0)

    assert (stamp.stage, stamp.idle_timeout, stamp.timestamp("four")) == ("time", 7.0, 4)
    assert (first.watermark(0.0), second.watermark(0.0)) == (95, limiting_lag(5).watermark(0.0))


def test_the_clock_gives_timestamps(lines):
    """There is no function then."""
    assert [each.timestamp for each in operations(lines.ingestion_timestamps(), AssignTimestamps)] == [None]


class Dated(type(watch_files("/logs"))):
    """A source whose items have their time."""

    def timestamp(self, item):
        return int(item)


def test_a_source_gives_timestamps(pipeline):
    """Its own method is asked."""
    source = Dated("/logs", "*", "oldest", "text", "utf-8")
    (stamp,) = operations(pipeline.read_from(source).native_timestamps(allowed_lag=5), AssignTimestamps)

    assert stamp.timestamp("70") == 70


WINDOWS = {
    "tumbling": (tumbling(10), "window(tumbling(10)).aggregate"),
    "sliding": (sliding(10, by=5), "window(sliding(10, by=5)).aggregate"),
    "session": (session(10), "window(session(10)).aggregate"),
    "early": (tumbling(10).early_results(2), "window(tumbling(10).early_results(2.0)).aggregate"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_is_an_operation_over_epochs(stamped, name):
    """Its state is found under the name of the stage."""
    window, shown = WINDOWS[name]
    (found,) = operations(stamped.window(window).aggregate(counting()).set_name("counts"), OverEpochs)

    assert (found.stage, found.operator.window, found.operator.keys) == ("counts", window, None)
    assert found.label() == f".{shown}(counting()) as 'counts'"


def test_windows_and_keys_go_in_either_order(stamped):
    """Both give the same stage."""
    one = stamped.grouping_key(len).window(tumbling(10))
    other = stamped.window(tumbling(10)).grouping_key(len)
    kinds = type(stamped.grouping_key(len)), type(stamped.window(tumbling(10))), type(one), type(other)
    assert kinds == (KeyedStreamStage, WindowedStage, KeyedWindowedStage, KeyedWindowedStage)

    (found, same) = [operations(each.aggregate(counting()), OverEpochs)[0].operator for each in (one, other)]
    assert found == same


def test_windows_of_several_stages_have_an_input_for_each(stamped):
    """The same stage may be one of them."""
    both = to_bags(2)
    (found,) = operations(stamped.window(tumbling(10)).co_aggregate(stamped, op=both, to=max), OverEpochs)
    assert (len(found.upstreams), found.operator.operation, found.operator.to) == (2, both, max)


def test_keyed_windows_of_several_stages_have_a_key_for_each(stamped):
    """Each stage has a function of its own."""
    other = stamped.map(str.upper).grouping_key(str.lower)
    windowed = stamped.grouping_key(str.strip).window(tumbling(10))
    (found,) = operations(windowed.co_aggregate(other, op=to_bags(2)), OverEpochs)
    assert found.operator.keys == (str.strip, str.lower)


def test_late_items_have_a_write_of_their_own(stamped):
    """It stands among those of the plan, beside the results, and takes items as they came."""
    late, results = to_ilist("late"), to_ilist("out")
    stamped.window(tumbling(10), late_to=late).aggregate(counting()).set_name("counts").write_to(results)
    plan = stamped.pipeline.plan()
    core = topological(timed(rewrite(plan.several([None, None]))))

    assert [(each.stage, each.sink) for each in plan.writes] == [("counts-late", late), ("write_to", results)]
    assert [op.action for each in core if isinstance(each, Write) for op in each.upstream.ops] == [
        *("unpair", "flat_map"),
        *("unpair", "filter"),
    ]
    assert plan.stages[3].upstreams == ("counts",)


def test_without_a_sink_late_items_go_nowhere(stamped):
    """The operator lets none of them pass."""
    (found,) = operations(stamped.window(tumbling(10)).aggregate(counting()), OverEpochs)
    assert not found.operator.gives_late


STATES = {
    "rolling_aggregate": (lambda keyed: keyed.rolling_aggregate(counting()), "rolling_aggregate"),
    "map_stateful": (lambda keyed: keyed.map_stateful(list, max, ttl=5, on_evict=max), "stateful_mapping"),
    "filter_stateful": (lambda keyed: keyed.filter_stateful(list, max), "stateful_mapping"),
    "flat_map_stateful": (lambda keyed: keyed.flat_map_stateful(list, max, ttl=timedelta(1)), "stateful_mapping"),
    "distinct": (lambda keyed: keyed.distinct(within=5), "distinct"),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_by_key_is_an_operation_over_epochs(stamped, name):
    """It is called like its method."""
    made, kind = STATES[name]
    (found,) = operations(made(stamped.grouping_key(len)), OverEpochs)
    assert (found.stage, found.operator.kind, found.operator.key) == (name, kind, len)


@pytest.mark.parametrize("name", sorted(STATES.keys() - {"distinct"}))
def test_a_state_without_keys_is_one_for_all_items(stamped, name):
    """There is no key function then."""
    (found,) = operations(STATES[name][0](stamped), OverEpochs)
    assert found.operator.key is None


def test_durations_become_milliseconds(stamped):
    """Whatever they were given in."""
    made = stamped.grouping_key(len).map_stateful(list, max, ttl=timedelta(seconds=2))
    assert operations(made, OverEpochs)[0].operator.ttl == 2000


def test_a_join_in_time_has_two_inputs(stamped):
    """One function may give the keys of both."""
    joined = stamped.join_within(stamped.map(str.upper), on=len, before=timedelta(seconds=1), after=5)
    (found,) = operations(joined, OverEpochs)
    assert (found.operator.left_key, found.operator.right_key) == (len, len)
    assert (found.operator.before, found.operator.after) == (1000, 5)


def test_unnamed_states_have_names_of_their_own(stamped):
    """By the order in which they were made."""
    first = stamped.window(tumbling(10)).aggregate(counting())
    second = first.window(tumbling(20)).aggregate(to_list())
    assert [each.stage for each in operations(second, OverEpochs)] == ["aggregate", "aggregate-2"]


def test_a_stage_that_ends_is_run_as_a_stream(numbers):
    """Its source is then one partition, which ends."""
    stage = numbers.map(abs).add_timestamps(abs)
    assert (type(stage), operations(stage, AssignTimestamps)[0].stage) == (StreamStage, "add_timestamps")
    assert numbers.pipeline.plan().is_unbounded


def test_to_stream_stage_adds_no_stage_without_timestamps(numbers):
    """It is the same stage, seen as one without an end."""
    assert numbers.to_stream_stage().name == numbers.name == "read_from"
    assert numbers.to_stream_stage(timestamp=abs).name == "add_timestamps"
    assert isinstance(numbers.to_stream_stage().grouping_key(abs).distinct(), StreamStage)


def test_a_side_that_ends_is_merged_or_joined(lines, pipeline):
    """As a partition that ends, or held by every task."""
    names = pipeline.read_from(Items(["a"]))
    merged = lines.merge(names).hash_join(names.sorted(), on=(len, len))
    assert [type(each).__name__ for each in core_of(merged)][-3:] == ["HashJoin", "Write", "Several"]


def test_what_stands_beside_needs_no_timestamps(stamped, pipeline):
    """The pairs of a hash join have those of its items."""
    joined = stamped.hash_join(pipeline.read_from(Items(["a"])), on=(len, len))
    assert isinstance(joined.window(tumbling(10)), WindowedStage)


def test_items_stay_where_they_are_once_time_counts(stamped):
    """A watermark could not pass what spreads them."""
    stage = stamped.rebalance().map(len).set_local_parallelism(7).window(tumbling(10)).aggregate(counting())
    assert operations(stage, Spread) == []


def test_a_source_keeps_its_partitions(lines):
    """However many parts somebody wants of it."""
    lines.set_local_parallelism(9).write_to(to_ilist("out"))
    assert repr(lines.pipeline.plan().writes[0].node) == "<read_from(watch_files('/logs'))>"


def test_a_pipeline_of_streams_is_a_value(stamped):
    """It travels with all that its stages hold."""
    windowed = stamped.grouping_key(len).window(tumbling(10), late_to=to_ilist("late"))
    windowed.aggregate(counting()).write_to(to_ilist("out"))
    again = pickle.loads(pickle.dumps(stamped.pipeline))

    assert repr(again) == repr(stamped.pipeline)
    assert [each.stage for each in again.plan().writes] == ["aggregate-late", "write_to"]


def test_it_is_explained_without_running(stamped, capsys, local_context):
    """With its sources, windows and sinks; the folder need not even be there."""
    ds.set_default_context(local_context)
    stamped.grouping_key(len).window(tumbling(10)).aggregate(counting()).write_to(to_ilist("out"))
    stamped.pipeline.explain()
    said = capsys.readouterr().out
    ds.set_default_context(None)

    for each in ("read_from(watch_files('/logs')) as 'lines'", "window(tumbling(10))", "to_ilist('out')"):
        assert each in said


def test_counts_of_stages_leave_out_what_came_late(stamped):
    """They are those of results."""
    stamped.window(tumbling(10), late_to=to_ilist("late")).aggregate(counting()).write_to(to_ilist("out"))
    plan = stamped.pipeline.plan()
    assert [(name, type(node).__name__) for name, node in plan.last_nodes] == [
        ("lines", "Read"),
        ("aggregate", "Filter"),
    ]
