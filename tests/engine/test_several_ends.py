"""Plans with several ends: each fork is computed once, and every end gets what a plan of its own would give it."""

from __future__ import annotations

import gc
import random
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dstream as ds
from dstream.base.memory import Bound
from dstream.engine.compiler.inputs import parts_of
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import Branch, WriteEach, WriterBuffer
from dstream.errors import CancelledError, IllegalStateError
from dstream.explain.text import as_dot, as_mermaid
from dstream.plan import Node, Read, explained, rewrite
from dstream.plan.operations.ends import Several, Write
from dstream.plan.operations.ends import Several as CoreSeveral
from dstream.plan.operations.streams import Fork
from dstream.plan.stages import Stages
from dstream.plan.steps import Op, Step
from dstream.session.connection import stages_on
from dstream.stream import Stream
from reducers import to_ilist
from sources import Items


@dataclass(frozen=True)
class Noted:
    """A writer whose receipts are the items, each in a tuple."""

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        return ((item,) for item in items)


@dataclass(frozen=True)
class Calling:
    """Notes each call in a file, which workers share."""

    path: Path

    def __call__(self, item: int) -> int:
        with self.path.open("a") as file:
            file.write(f"{item}\n")
        return item


@dataclass
class Counted:
    """An item that can be watched."""

    item: int


def stream(count: int = 12, partitions: int = 3) -> Stream[int]:
    """Return a stream that belongs to no context."""
    return Stream(Read(Items(range(count), partitions)), None)


def fork(of: Stream[Any]) -> Stream[Any]:
    """Return what several ends may read."""
    return Stream(Fork(of._node), None)


def writes(*streams: Stream[Any]) -> Several:
    """Return a plan that writes each stream."""
    return Several(
        tuple(
            Write(each._node, Noted(), None, step=Step(f".write_to({number})")) for number, each in enumerate(streams)
        )
    )


def plan(*streams: Stream[Any]) -> CoreSeveral:
    """Return it as engines know it."""
    return rewrite(writes(*streams))


def received(engine: Any, *streams: Stream[Any]) -> list[list[Any]]:
    """Run a plan that writes each stream; return the items that each end got."""
    several = writes(*streams)
    with explained(several, "write_to"):
        receipts = engine.context.running_engine().submit(rewrite(several)).result()
    return [[item for (item,) in some] for some in receipts]


def test_each_end_gets_its_items_in_order(engine):
    """Ends that hang on a fork by single items, ends behind a shuffle, and one that has no fork."""
    shared = fork(stream().map(lambda item: item * 3))
    small, big, odd = shared.filter(lambda item: item < 10), shared.map(str), shared.sorted(reverse=True).limit(3)
    assert received(engine, small, stream(2), big, odd) == [
        [0, 3, 6, 9],
        [0, 1],
        [str(item * 3) for item in range(12)],
        [33, 30, 27],
    ]


@pytest.mark.on_spark("wide")
@pytest.mark.parametrize("wide", [False, True])
def test_a_fork_is_computed_once(engine, tmp_path, wide):
    """Whether its readers are fed by the tasks that compute it, or read what was kept of it."""
    shared = fork(stream().map(Calling(tmp_path / "calls")))
    other = shared.distinct() if wide else shared.filter(bool)
    first, second = received(engine, shared, other)
    assert first == list(range(12))
    assert len(second) == 12 - (not wide)
    assert sorted(map(int, (tmp_path / "calls").read_text().split())) == list(range(12))


@pytest.mark.parametrize("before", ["sorted", "take_while"])
def test_what_looks_across_partitions_before_a_fork_looks_once(engine, tmp_path, before):
    """The graph of each reader but the first finds the fork kept, and asks for nothing before it."""
    seen: list[int] = []
    called = stream().map(Calling(tmp_path / "calls")).peek(seen.append)
    shared = fork(called.sorted() if before == "sorted" else called.take_while(lambda item: item < 99))
    assert received(engine, shared.sorted(), shared.distinct(), shared) == [list(range(12))] * 3
    assert sorted(map(int, (tmp_path / "calls").read_text().split())) == list(range(12))
    assert seen == list(range(12))


def test_another_run_computes_a_fork_again(engine, tmp_path):
    """What is kept belongs to one run: the next one of the same nodes computes its own."""
    shared = fork(stream(2).map(Calling(tmp_path / "calls")))
    ends = shared, shared.sorted()
    for _ in range(2):
        assert received(engine, *ends) == [[0, 1], [0, 1]]
    assert len((tmp_path / "calls").read_text().split()) == 4


def test_what_is_kept_goes_with_the_run(local_context):
    """A pipeline that nobody forgets holds no items of its runs."""
    ended, shared = [], fork(stream(2).map(Counted))
    several = writes(shared, shared)
    receipts = local_context.running_engine().submit(rewrite(several)).result()
    weakref.finalize(receipts[0][0][0], ended.append, 1)
    del receipts
    gc.collect()
    assert ended == [1]


@pytest.mark.parametrize("endless", [False, True])
def test_a_fork_that_only_limits_read_ends_there(engine, tmp_path, endless):
    """Nothing beyond the largest of them is computed, also through a fork of a fork."""
    numbers = Stream.iterate(0, lambda number: number + 1) if endless else stream(1000, 8)
    outer = fork(numbers.map(Calling(tmp_path / "calls")))
    inner = fork(outer)
    assert received(engine, inner.limit(3), outer.skip(2).limit(3), inner.limit(1)) == [[0, 1, 2], [2, 3, 4], [0]]
    if engine.name == "local":
        assert len((tmp_path / "calls").read_text().split()) == 5


def test_a_fork_without_end_is_refused(engine):
    """A reader that wants all items would wait for ever; the message names a call of the user's."""
    endless = Stream.iterate(0, lambda number: number + 1)
    shared = fork(endless.map(abs))
    with pytest.raises(IllegalStateError, match=r"cannot be read by several stages of a pipeline: \.map\(abs\) at"):
        received(engine, shared.limit(3), shared.map(str).limit(2))
    with pytest.raises(IllegalStateError, match="needs every item and the stream is infinite"):
        received(engine, stream(), endless)


def test_forks_of_forks_are_computed_once(engine, tmp_path):
    """Both are, the inner one with two readers of its own."""
    outer = fork(stream(4).map(Calling(tmp_path / "outer")))
    inner = fork(outer.map(Calling(tmp_path / "inner")))
    assert received(engine, inner.map(str), outer, inner) == [["0", "1", "2", "3"], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert [len((tmp_path / name).read_text().split()) for name in ("outer", "inner")] == [4, 4]


def test_what_is_seen_and_what_fails_beside_a_fork_is_told_once(engine):
    """Actions of `peek` before the fork and behind it, and dead letters."""
    before, behind, name = [], [], f"letters-{engine.name}"
    items = engine.stream(range(4)).peek(before.append).map(lambda item: 6 // item)
    shared = fork(items.on_error(ZeroDivisionError, into=to_ilist(name)))
    assert received(engine, shared, shared.peek(behind.append)) == [[6, 3, 2], [6, 3, 2]]
    assert (before, behind, [letter.item for letter in engine.context.get_list(name)]) == ([0, 1, 2, 3], [6, 3, 2], [0])


def test_a_failure_in_one_branch_names_its_step(engine):
    """It is the step of the user's, with the item, as in a plan with one end."""
    shared = fork(stream(4))
    with pytest.raises(ZeroDivisionError) as caught:
        received(engine, shared, shared.map(lambda item: 1 // item))
    notes = "\n".join(caught.value.__notes__)
    assert "step 3 of 4, .map(lambda) at" in notes
    assert "on the item 0" in notes


def test_a_run_with_several_ends_is_cancelled(local_context):
    """What has not begun does not begin."""
    slow = fork(stream(10_000).map(lambda item: time.sleep(0.005)))
    running = local_context.running_engine().submit(plan(slow, slow))
    running.start()
    time.sleep(0.05)
    running.cancel()
    with pytest.raises(CancelledError):
        running.result()


def numbers(*streams: Stream[Any]) -> list[tuple[int, ...]]:
    """Return which ends are one graph."""
    return [part.numbers for part in parts_of(plan(*streams))]


def test_writes_on_a_fork_are_one_graph_if_nothing_else_reads_it():
    """Then the fork is not kept; a shuffle, an inner fork or a second reader of a step makes graphs of their own."""
    shared = fork(stream())
    assert numbers(shared, stream(), shared.map(abs).parallel(3)) == [(0, 2), (1,)]
    assert numbers(shared, shared.sorted(), shared) == [(0,), (1,), (2,)]
    mapped = shared.map(abs)
    assert numbers(mapped, mapped.sorted(), shared) == [(0,), (1,), (2,)]
    inner = fork(shared)
    assert numbers(inner, shared, inner) == [(0, 2), (1,)]


def test_a_users_cache_is_kept_for_later_plans(engine, tmp_path):
    """It is no fork: what two ends read of it is there for the next plan."""
    kept = stream(3).map(Calling(tmp_path / "calls")).cache()
    assert received(engine, kept, kept.map(abs)) == received(engine, kept, kept)
    assert len((tmp_path / "calls").read_text().split()) == 3


def test_a_task_feeds_branches_one_after_another_within_its_bound():
    """What it keeps of the items beyond the bound goes to disk, and each branch gets all of them."""
    task = StageTask(0, 2**20)
    branches = tuple(Branch((), Noted(), Step(f".write_to({number})", None, 1, 1)) for number in range(3))
    assert isinstance(task.bound, Bound)
    rows = list(WriteEach(branches)((bytes(1000) for _ in range(5000)), task))
    counts = [sum(row.size for row in rows if row.target == target) for target in range(3)]
    assert counts == [5000, 5000, 5000]


@dataclass(frozen=True)
class OnlyFirst:
    """A writer that takes one item."""

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        yield (next(items),)


def test_a_writer_that_stops_early_leaves_the_others_theirs():
    """The first one takes items while they come; those that it leaves go to the other branches as well."""
    step = Step(".write_to(0)", None, 1, 1)
    branches = (Branch((), OnlyFirst(), step), Branch((), Noted(), step))
    rows = list(WriteEach(branches)(iter(range(5000)), StageTask(0, 2**30)))
    assert [sum(row.size for row in rows if row.target == target) for target in range(2)] == [1, 5000]


def test_a_task_lets_go_of_what_no_branch_takes(monkeypatch):
    """What waits is what the steps of a branch made: of items that all filters drop nothing is held."""
    most: list[int] = []
    monkeypatch.setattr(WriterBuffer, "taker", property(lambda self: most.append))
    step = Step(".write_to(0)", None, 1, 1)
    few = (Op("filter", lambda item: item % 1000 == 0, None, step),)
    list(WriteEach((Branch((), Noted(), step), Branch(few, Noted(), step)))(iter(range(5000)), StageTask(0, 2**30)))
    assert most == [0, 1000, 2000, 3000, 4000]


STEPS: list[Callable[[Stream[Any]], Stream[Any]]] = [
    lambda items: items.map(lambda item: item + 1),
    lambda items: items.filter(lambda item: item % 3),
    lambda items: items.sorted(key=lambda item: -item),
    lambda items: items.distinct(),
    lambda items: items.skip(1),
    lambda items: items.limit(5),
    lambda items: items + items.map(lambda item: item * 2),
]


def grown(seed: int) -> tuple[list[Stream[Any]], list[list[Any]]]:
    """Return the ends of a random tree of forks, and what plain lists give for them."""
    chosen = random.Random(seed)
    count = chosen.randrange(12)
    stages = [(stream(count, chosen.randint(1, 8)), list(range(count)))]
    for _ in range(chosen.randint(3, 9)):
        above, items = chosen.choice(stages)
        step = chosen.choice(STEPS)
        with ds.connect(engine="local", storage="memory:") as ctx:
            stages.append((step(fork(above)), step(ctx.stream(items)).to_list()))
    ends = chosen.sample(stages, min(len(stages), 4))
    return [end for end, _ in ends], [items for _, items in ends]


@pytest.mark.parametrize("seed", range(40))
def test_random_forks_give_what_lists_give(local_context, seed):
    """Every fork is one object for all that read from it, or one for each: the items are the same."""
    ends, expected = grown(seed)
    received_here = local_context.running_engine().submit(plan(*ends)).result()
    assert [[item for (item,) in some] for some in received_here] == expected


@pytest.mark.parametrize("seed", range(4))
def test_random_forks_give_the_same_on_spark(spark_context, seed):
    """Unordered ends are compared as multisets, which none of these is."""
    ends, expected = grown(seed)
    there = spark_context.running_engine().submit(plan(*ends)).result()
    assert [[item for (item,) in some] for some in there] == expected


def test_a_plan_of_many_forks_runs_without_recursion(local_context):
    """More forks behind one another than Python may have frames: few, since the time grows with their square."""
    node: Node = Read(Items(range(3)))
    for _ in range(500):
        node = Fork(node)
    last, most = Stream(node, None), sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        received_here = local_context.running_engine().submit(plan(last, last)).result()
    finally:
        sys.setrecursionlimit(most)
    assert received_here == [[(0,), (1,), (2,)]] * 2


def explained_on(cores: int, *streams: Stream[Any]) -> Stages:
    """Explain a plan that writes each stream, on Spark."""
    return stages_on(cores, writes(*streams), None)


def test_explain_shows_each_graph_and_what_is_kept():
    """One job keeps the fork, others read it; without a shuffle one job does all."""
    shared = fork(stream().map(abs))
    one, two = explained_on(2, shared, shared.map(str)), explained_on(2, shared, shared.distinct())
    assert [job.title for job in one.jobs] == ["write_to(0), write_to(1)"]
    assert one.stages[0].notes[-2:] == (".write_to(0)", ".map(str).write_to(1)")
    assert (".map(str)", "Python: calls str") in [(call.label, call.note) for call in one.stages[0].calls]
    assert [job.title for job in two.jobs][:2] == ["fork: computes the items to keep", "write_to(0)"]
    assert two.stages[0].calls[-1].label == ".map(abs)"
    assert [(each.source, each.how) for each in two.stages[1].inputs] == [(0, "kept")]
    assert two.stages[2].calls[0].note == "the items that an earlier job left where it computed them"
    assert str(two.stages[2].tasks) == "3"
    assert two.end.label == "write_to(0), write_to(1)"


def test_all_formats_draw_each_end():
    """An arrow to the end comes from each stage that no other reads."""
    shared = fork(stream())
    drawn = explained_on(2, shared, shared.sorted())
    ends = set(range(len(drawn.stages))) - {each.source for s in drawn.stages for each in s.inputs}
    assert len(ends) == 2
    assert all(f"s{number} -> end;" in as_dot(drawn) for number in ends)
    assert all(f"s{number} --> done" in as_mermaid(drawn) for number in ends)


def test_the_local_engine_explains_forks(local_context):
    """Each reader of a fork is a stage of its own."""
    shared = fork(stream())
    drawn = local_context.stages(writes(shared, shared.map(str)), None)
    assert [[call.label for call in stage.calls] for stage in drawn.stages] == [
        ["read", "fork"],
        [".write_to(0)"],
        [".map(str)", ".write_to(1)"],
    ]
