"""Jobs without an end, and graphs of processors, on a server of Spark Connect: the same as on the local engine."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dstream as ds
from collectors import counting, to_list
from dstream.core import DAG, AbstractProcessor, Edge, processors, whole_item
from dstream.engine.spark.session import launch
from dstream.errors import EngineError, IllegalStateError, SetupError
from dstream.jobs import JobStatus
from dstream.testing import epochs
from dstream.windows import session, sliding, tumbling
from reducers import to_ilist, to_imap
from sources import Items
from tests.connect.server import running_server
from tests.jobs.unbounded.restarted_graph import some_numbers_over_a_restart
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of

SOON = ds.JobConfig(epoch_length=0.05)
FIRST = {0: [(1, "a"), (4, "b"), (12, "a")], 1: [(2, "a"), (11, "c")]}
SECOND = {0: [(3, "late"), (31, "a")], 1: [(28, "b"), (33, "a")]}


def time_of(event: tuple[int, str]) -> int:
    """Return the timestamp of an event."""
    return event[0]


def letter_of(event: tuple[int, str]) -> str:
    """Return the key of an event."""
    return event[1]


def so_far(state: list[int], key: str, event: tuple[int, str]) -> tuple[str, int]:
    """Return how many events of a key there were, with this one."""
    state[0] += 1
    return key, state[0]


class Last(AbstractProcessor):
    """Emits the event before of the same key, which it keeps."""

    def start(self, context: Any) -> None:
        self.last: dict[str, int] = {}

    def try_process(self, ordinal: int, event: Any) -> bool:
        before = self.last.get(event[1])
        self.last[event[1]] = event[0]
        return self.try_emit((event[1], before, event[0]))

    def save_to_snapshot(self) -> bool:
        return all(self.try_emit_to_snapshot(key, value) for key, value in self.last.items())

    def restore_entry(self, key: Any, value: Any) -> None:
        self.last[key] = value


STEPS: dict[str, Callable[[Any, ds.Pipeline], Any]] = {
    "tumbling windows by key": lambda s, p: s.grouping_key(letter_of).window(tumbling(10)).aggregate(counting()),
    "sliding windows": lambda s, p: s.window(sliding(10, 5)).aggregate(counting()),
    "sessions by key": lambda s, p: s.grouping_key(letter_of).window(session(3)).aggregate(to_list()),
    "running aggregates": lambda s, p: s.grouping_key(letter_of).rolling_aggregate(counting()),
    "states with an age": lambda s, p: s.grouping_key(letter_of).map_stateful(lambda: [0], so_far, ttl=20),
    "distinct for a time": lambda s, p: s.grouping_key(letter_of).distinct(within=20),
    "pairs in time": lambda s, p: s.join_within(s.map(tuple), on=(letter_of, letter_of), before=2, after=2),
    "a side that ends": lambda s, p: s.hash_join(
        p.read_from(Items([("a", 1), ("b", 2)], 2)).distinct(), (letter_of, operator.itemgetter(0))
    ),
    "processors": lambda s, p: s.grouping_key(letter_of).custom_transform("last", Last),
    "calls at a rate": lambda s, p: s.map_concurrent(2, letter_of, rate=1e6),
}

WITHOUT_TIME = (STEPS["processors"], STEPS["calls at a rate"])


def given(context: ds.Context | None, steps: Callable[[Any, ds.Pipeline], Any]) -> list[Counter[str]]:
    """Return what three epochs give, of which the last one ends."""
    by_hand, pipeline = epochs(context), ds.Pipeline()
    events = by_hand.source("events", partitions=2)
    stage = pipeline.read_from(events)
    stage = stage if steps in WITHOUT_TIME else stage.add_timestamps(time_of, allowed_lag=2)
    steps(stage, pipeline).write_to(to_ilist("out"))
    by_hand.of(pipeline)
    cut = [by_hand.cut({events: FIRST}), by_hand.cut({events: SECOND}), by_hand.cut(is_end=True)]
    return [Counter(map(repr, each["write_to"])) for each in cut]


@pytest.mark.parametrize("name", STEPS)
def test_epochs_give_what_they_give_on_the_local_engine(connect_context: ds.Context, name: str) -> None:
    """Steps with and without a state, in two partitions, from epoch to epoch up to the end."""
    found = given(connect_context, STEPS[name])

    assert found == given(None, STEPS[name])
    assert sum(map(len, found)) > 2


def test_a_job_goes_on_through_its_life(connect_context: ds.Context, tmp_path: Path) -> None:
    """It is paused, changed and started again, and remembers what it knew; its items are counted."""
    name, feed = tmp_path.name, Feed({"0": ["a", "b"], "1": ["a"]})

    def counts(has_lengths: bool = False) -> ds.Pipeline:
        pipeline = ds.Pipeline()
        words = pipeline.read_from(feed)
        words.grouping_key(str).rolling_aggregate(counting()).set_name("counts").write_to(to_imap(name))
        if has_lengths:
            words.map(len).set_name("lengths").write_to(to_ilist(f"{name} lengths"))
        return pipeline

    job, totals = connect_context.new_job(counts(), name=name, config=SOON), connect_context.get_map(name)
    eventually(lambda: totals.copy() == {"a": 2, "b": 1})
    job.suspend()
    job.wait_for(JobStatus.SUSPENDED, timeout=240)
    feed.give("b")
    job.resume()
    eventually(lambda: totals["b"] == 2)
    job.update(counts(has_lengths=True))
    feed.give("ccc")
    eventually(lambda: connect_context.get_list(f"{name} lengths").copy() == [3])
    job.restart()
    feed.give("a")
    eventually(lambda: totals["a"] == 3)

    assert dict(job.state("counts").to_list()) == {"a": 3, "b": 2, "ccc": 1}
    assert job.metrics().stages["counts"].items_in == 6
    assert job.cancel()


def test_a_failure_of_an_epoch_is_the_users_own(connect_context: ds.Context, tmp_path: Path) -> None:
    """With its item; the epoch left nothing."""
    feed = Feed({"0": [1], "1": [0]})
    plan = pipeline_of(feed, to_ilist(tmp_path.name), through=lambda stage: stage.map(lambda n: 1 / n))
    job = connect_context.new_job(plan)
    with pytest.raises(ZeroDivisionError) as failed:
        job.join(240)

    assert "on the item 0" in failed.value.__notes__[1]
    assert connect_context.get_list(tmp_path.name).copy() == []


def test_dead_letters_of_an_epoch_arrive(connect_context: ds.Context, tmp_path: Path) -> None:
    """With the epoch."""
    pipeline, letters = ds.Pipeline(), f"{tmp_path.name} letters"
    numbers = pipeline.read_from(Feed({"0": ["1", "x"], "1": ["2"]})).map(int)
    numbers.on_error(ValueError, into=to_ilist(letters)).write_to(to_ilist(tmp_path.name))
    job = connect_context.new_job(pipeline, config=SOON)
    eventually(lambda: job.epoch == 1)
    job.cancel()

    assert connect_context.get_list(tmp_path.name).copy() == [1, 2]
    assert [each.item for each in connect_context.get_list(letters)] == ["x"]


def test_a_graph_runs_on_a_server(connect_context: ds.Context, tmp_path: Path) -> None:
    """Its processors are on the workers; items go to them as the edges say, and are counted."""
    dag, name = DAG(), tmp_path.name
    words = dag.new_vertex("words", processors.read(Items(["the whale", "the sea"], 2)))
    split = dag.new_vertex("split", processors.flat_map(str.split)).local_parallelism(2)
    count = dag.new_vertex("count", processors.aggregate_by_key([whole_item], counting())).local_parallelism(3)
    sink = dag.new_vertex("sink", processors.write(to_imap(name)))
    dag.edge(Edge.between(words, split)).edge(Edge.between(split, count).partitioned(whole_item))
    dag.edge(Edge.between(count, sink))
    job = connect_context.new_job(dag)
    job.join(240)

    assert connect_context.get_map(name).copy() == {"the": 2, "whale": 1, "sea": 1}
    assert job.metrics().stages["count"].items_in_by_edge == (4,)


def test_a_graph_with_a_source_of_its_own_goes_on(connect_context: ds.Context, tmp_path: Path) -> None:
    """Behind a restart with what its processors have saved; exactly once."""
    found = some_numbers_over_a_restart(connect_context, tmp_path.name)

    assert found == [[500 * n for n in range(len(each))] for each in found]
    assert all(len(each) > 2 for each in found)


def test_a_server_that_dies_is_named(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By jobs and by streams, and nothing hangs: nobody starts the server again; what was published is there."""
    monkeypatch.setattr(launch, "_RETRIES", 2)
    feed = Feed({"0": [1], "1": [2]})
    with running_server() as address:
        context = ds.connect(address, storage=data)
        job = context.new_job(
            pipeline_of(feed, to_ilist(tmp_path.name)), config=ds.JobConfig(auto_restart=False, epoch_length=0.05)
        )
        eventually(lambda: job.epoch == 1)
        assert context.stream([1]).map(str).to_list() == ["1"]
    feed.give(3)
    with pytest.raises((SetupError, EngineError), match="the server of Spark Connect cannot be reached"):
        job.join(240)
    with pytest.raises(EngineError, match="cannot be reached"):
        context.stream([1]).map(str).to_list()

    assert (context.get_list(tmp_path.name).copy(), job.status) == ([1, 2], JobStatus.FAILED)
    context.close()
    with pytest.raises(IllegalStateError):
        context.stream([1])
