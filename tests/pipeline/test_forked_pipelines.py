"""Where stages fork, what they share is one node of the plan, and runs once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from dstream.pipeline import BatchStage
from dstream.plan import Map, Node, topological
from dstream.plan.operations.streams import Fork
from reducers import to_ilist
from sources import Items


def forks(*stages: BatchStage) -> list[str]:
    """Return the labels of what stands before each fork in the plan that ends in these stages."""
    for number, stage in enumerate(stages):
        stage.write_to(to_ilist(str(number)))
    writes = stages[0].pipeline.plan().writes
    nodes: dict[int, Node] = {id(node): node for each in writes for node in topological(each.node)}
    return [node.upstream.label() for node in nodes.values() if isinstance(node, Fork)]


def test_a_stage_that_is_read_once_is_no_fork(numbers):
    """Nor is one with a single sink."""
    assert forks(numbers.map(abs).filter(bool)) == []


def test_a_stage_that_is_read_twice_is_a_fork(numbers):
    """By stages and sinks alike; the branches behind it are none."""
    mapped = numbers.map(abs)
    assert forks(mapped, mapped.filter(bool), mapped.filter(None.__ne__)) == [".map(abs)"]


def test_a_stage_that_meets_itself_is_a_fork(numbers):
    """One operation may read it twice."""
    assert forks(numbers.map(abs).join(numbers.map(str), on=(abs, int))) == [
        "read_from(Items(range(0, 6), partitions=3))"
    ]
    mapped = numbers.filter(bool)
    assert forks(mapped.merge(mapped))[-1] == ".filter(bool)"


def test_what_deals_with_failures_is_part_of_its_step(numbers):
    """A fork between a step and its `ignore` would leave nothing to ignore."""
    mapped = numbers.map(lambda n: 6 // n)
    assert forks(mapped.ignore(ZeroDivisionError).resolve(ValueError, max)) == []


def test_a_step_with_and_without_its_remedy_forks_before_it(numbers):
    """Both run the step; what they share is what they read."""
    mapped = numbers.map(abs)
    assert forks(mapped.ignore(ValueError), mapped) == ["read_from(Items(range(0, 6), partitions=3))"]


def test_a_step_that_is_a_fork_for_others_is_none_for_its_remedy(numbers):
    """No fork stands between the two."""
    mapped = numbers.map(abs)
    assert forks(mapped.ignore(ValueError), mapped, mapped.filter(bool))[1:] == [".map(abs)"]
    assert isinstance(numbers.pipeline.plan().writes[0].node.upstream, Map)


def test_a_remedy_applies_behind_a_fork(numbers, given):
    """The failing items are left out in the branch that says so."""
    mapped = numbers.map(lambda n: 6 // n)
    safe = mapped.ignore(ZeroDivisionError)
    assert given(safe, safe.map(str), numbers) == [[6, 3, 2, 1, 1], ["6", "3", "2", "1", "1"], [0, 1, 2, 3, 4, 5]]


def test_each_plan_has_forks_of_its_own(numbers):
    """What one run computes is of no use to another."""
    numbers.write_to(to_ilist("x"))
    numbers.write_to(to_ilist("y"))
    first, second = (numbers.pipeline.plan().writes[0].node for _ in range(2))
    assert isinstance(first, Fork)
    assert first is not second


class Calls:
    """Notes each call in a file, which workers share."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, item: int) -> int:
        with self.path.open("a") as file:
            file.write(f"{item}\n")
        return item


def test_what_branches_share_runs_once(pipeline, given_on, tmp_path):
    """With steps, a shuffle and a join behind the fork."""
    shared = pipeline.read_from(Items(range(4), 2)).map(Calls(tmp_path / "calls"))
    even, descending = shared.filter(lambda n: n % 2 == 0), shared.sorted(reverse=True)
    both = even.join(descending, on=abs).map(lambda entry: entry.key)
    assert [sorted(items) for items in given_on(shared, even, descending, both)] == [
        [0, 1, 2, 3],
        [0, 2],
        [0, 1, 2, 3],
        [0, 2],
    ]
    assert Counter((tmp_path / "calls").read_text().split()) == Counter("0123")


def test_a_later_change_leaves_a_plan_as_it_was(numbers):
    """A job has a copy."""
    numbers.write_to(to_ilist("x"))
    plan = numbers.pipeline.plan()
    numbers.set_name("later").set_local_parallelism(7).map(abs).write_to(to_ilist("y"))
    assert plan.shape() == [("read_from", "read_from", ()), ("write_to", "to_ilist('x')", ("read_from",))]
    assert len(plan.writes) == 1
