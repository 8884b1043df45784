"""What every stage has: a name, a parallelism, a pipeline."""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass, field

import pytest

from dstream.errors import IllegalStateError, SerializationError
from dstream.pipeline import BatchStage, Pipeline
from dstream.plan import PartitionBy, topological
from dstream.plan.operations.streams import Spread
from dstream.plan.walk import steps_of
from reducers import to_ilist
from sources import Items


def test_a_name_is_that_of_the_method(numbers):
    """The second and the third of a kind have numbers."""
    stages = [numbers, numbers.map(abs), numbers.map(abs), numbers.filter(bool), numbers.map(abs)]

    assert [stage.name for stage in stages] == ["read_from", "map", "map-2", "filter", "map-3"]


def test_a_name_can_be_set(pipeline):
    """At the source in one go, elsewhere with a call that returns the stage."""
    source = pipeline.read_from(Items([1]), name="numbers")
    mapped = source.map(abs)

    assert source.name == "numbers"
    assert mapped.set_name("absolute") is mapped
    assert mapped.name == "absolute"


def test_a_name_given_twice_is_refused_at_once(numbers):
    """The message names both places; the stage keeps its name, and may be given it again."""
    numbers.set_name("all")
    mapped = numbers.map(abs)
    with pytest.raises(IllegalStateError, match=r"the stage 'all' at .*conftest\.py:\d+ has that name already"):
        mapped.set_name("all")

    assert mapped.name == "map"
    assert numbers.set_name("all").name == "all"


def test_an_automatic_name_makes_room_for_one_that_is_given(numbers):
    """Whichever of the two stages came first."""
    first, second = numbers.map(abs), numbers.map(abs)
    second.set_name("map")

    assert (first.name, second.name, numbers.map(abs).name) == ("map-2", "map", "map-3")


@pytest.mark.parametrize(("name", "error"), [(3, TypeError), (None, TypeError), ("", ValueError), (" ", ValueError)])
def test_a_name_is_a_text_that_can_be_seen(numbers, name, error):
    """Anything else is refused by the name of the argument."""
    with pytest.raises(error, match=r"^name must"):
        numbers.set_name(name)


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (-2, ValueError), (True, TypeError), ("2", TypeError)])
def test_a_parallelism_is_positive_or_the_default(numbers, n, error):
    """-1 is the default, as in Jet; every other number below 1 is refused."""
    assert numbers.set_local_parallelism(-1) is numbers
    with pytest.raises(error, match=r"^n must be"):
        numbers.set_local_parallelism(n)


def planned(stage: BatchStage) -> list[object]:
    """Return the nodes of the plan that ends in a stage."""
    stage.write_to(to_ilist("x"))
    return topological(stage.pipeline.plan().writes[-1].node)


@dataclass
class Asked:
    """A source that reports into how many splits it was divided."""

    parts: list[int] = field(default_factory=list)
    ordered = bounded = in_caller = True

    def splits(self, parallelism):
        """Return no split."""
        self.parts.append(parallelism)
        return []


def test_a_source_is_asked_for_as_many_parts(pipeline, local_context):
    """Whatever an engine would ask it for; the plan has the source itself, with all that it may say of its items."""
    source = Asked()
    stage = pipeline.read_from(source).set_local_parallelism(3)
    (read,) = planned(stage)
    local_context.new_job(pipeline).join()

    assert read.source is source
    assert source.parts == [3]


def test_items_of_other_stages_are_spread_first(numbers):
    """Those of each input, with a call that explain shows; the default spreads nothing."""
    doubled = numbers.map(abs).set_local_parallelism(4)
    labels = [node.label() for node in planned(doubled.filter(bool))]

    assert labels == [
        "read_from(Items(range(0, 6), partitions=3))",
        ".set_local_parallelism(4)",
        ".map(abs)",
        ".filter(bool)",
    ]


def test_a_rebalanced_stage_has_its_own_number(numbers):
    """It is not spread twice."""
    spread = planned(numbers.rebalance().set_local_parallelism(2))[-1]
    routed = planned(numbers.rebalance(abs).set_local_parallelism(3))[-1]

    assert [(type(node), node.count) for node in (spread, routed)] == [(Spread, 2), (PartitionBy, 3)]
    assert [node.label() for node in (spread, routed)] == [".rebalance(2)", ".rebalance(3, key=abs)"]


def test_a_sink_may_be_written_by_fewer(numbers):
    """Its items are spread before it."""
    numbers.write_to(to_ilist("x")).set_local_parallelism(1)

    assert numbers.pipeline.plan().writes[0].node.label() == ".set_local_parallelism(1)"


def test_a_stage_stays_in_this_process(numbers):
    """What travels is the pipeline."""
    with pytest.raises(SerializationError, match=r"a stage cannot be used inside a function .* pipeline"):
        pickle.dumps(numbers)
    with pytest.raises(SerializationError, match="a stage cannot be used"):
        pickle.dumps(numbers.grouping_key(abs))


def test_a_stage_shows_what_it_is(numbers):
    """With its name, and the chain of calls."""
    assert repr(numbers.map(abs)) == "<BatchStage 'map': read_from(Items(range(0, 6), partitions=3)).map(abs)>"
    assert repr(numbers.write_to(to_ilist("x"))) == "<SinkStage 'write_to': to_ilist('x')>"
    assert repr(numbers.grouping_key(abs)).endswith("partitions=3))> by abs>")


def test_stages_of_one_pipeline_belong_to_it(pipeline, numbers):
    """All of them know it."""
    assert (
        numbers.pipeline is numbers.grouping_key(abs).pipeline is numbers.write_to(to_ilist("x")).pipeline is pipeline
    )
    assert Pipeline().is_empty()
    assert not pipeline.is_empty()


def test_a_given_name_stands_in_plans(numbers):
    """On the call that the stage is; of two nodes of one call on the one that shows it; automatic names do not."""
    numbers.set_name("all").map(abs).top(2).set_name("greatest").write_to(to_ilist("x")).set_name("end")
    several = numbers.pipeline.plan().several([None])

    assert [step.label for step in steps_of(topological(several)) if step.label] == [
        "read_from(Items(range(0, 6), partitions=3)) as 'all'",
        ".map(abs)",
        ".top(2) as 'greatest'",
        ".write_to(to_ilist('x')) as 'end'",
    ]


def test_a_failure_names_its_stage(numbers, given):
    """The step, with its name, its line and the item."""
    stage = numbers.map(lambda n: 6 // n).set_name("shares")
    with pytest.raises(ZeroDivisionError) as caught:
        given(stage.map(str))

    notes = "\n".join(caught.value.__notes__)
    assert re.search(r"step 2 of 4, \.map\(lambda\) as 'shares' at .*test_stages\.py:\d+, on the item 0", notes)
    assert re.search(r"> \.map\(lambda\) as 'shares' +.*test_stages", notes)
    assert ".write_to(noted())" in notes
