"""A pipeline is a value: shown, copied, pickled, and run again."""

from __future__ import annotations

import copy
import pickle

import pytest

from dstream.pipeline import Pipeline
from dstream.plan import topological
from dstream.stream import Stream
from reducers import to_ilist, to_imap
from sources import Items
from tests.pipeline.conftest import run

SHOWN = """\
Pipeline with 6 stages
  numbers   read_from(Items(range(0, 6), partitions=3))
  filter    numbers.filter(lambda)
  write_to  filter.write_to(to_ilist('even'))
  join      numbers.join(..., on=lambda)  with filter
  top       join.top(2)
  both      top.write_to(to_ilist('both'))"""


@pytest.fixture
def forked(numbers):
    """A pipeline with a fork, a join and two sinks."""
    even = numbers.set_name("numbers").filter(lambda n: n % 2 == 0)
    even.write_to(to_ilist("even"))
    numbers.join(even, on=lambda n: n).top(2).write_to(to_ilist("both")).set_name("both")
    return numbers.pipeline


def lists_of(context, pipeline):
    """Run a pipeline; return what its lists hold, which are then destroyed."""
    lists = run(context, pipeline.plan())
    held = [list(each) for each in lists]
    for each in lists:
        each.destroy()
    return held


EVEN_AND_BOTH = [[0, 2, 4], [(4, (4, 4)), (2, (2, 2))]]


def test_a_pipeline_shows_its_stages(forked):
    """One line for each: its name, and the call on the stage that it was made of."""
    assert repr(forked) == SHOWN
    assert repr(Pipeline()) == "Pipeline with 0 stages"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_does_what_the_pipeline_does(forked, local_context, copied):
    """Lambdas travel; a change of one leaves the other as it is."""
    other = copied(forked)
    assert repr(other) == SHOWN
    other.read_from(Items([1])).write_to(to_imap("other"))

    assert repr(other).startswith("Pipeline with 8 stages")
    assert repr(forked) == SHOWN
    assert lists_of(local_context, copied(forked)) == EVEN_AND_BOTH


def test_a_pipeline_runs_again_and_elsewhere(forked, engine):
    """It has no context of its own, and its sinks write again."""
    assert lists_of(engine.context, forked) == EVEN_AND_BOTH
    assert lists_of(engine.context, forked) == EVEN_AND_BOTH


def test_a_long_pipeline_is_planned_and_copied_without_recursion(pipeline):
    """Three thousand stages, a fork behind every tenth."""
    stage = pipeline.read_from(Items([1]))
    for number in range(3000):
        stage = stage.merge(stage) if number % 10 == 0 else stage.sorted()
    stage.write_to(to_ilist("x"))
    other = pickle.loads(pickle.dumps(copy.copy(pipeline)))
    plan = pickle.loads(pickle.dumps(other.plan()))

    assert plan.shape() == pipeline.plan().shape()
    assert len(topological(plan.writes[0].node)) > 3000


def test_plans_of_equal_pipelines_have_one_shape(forked):
    """Names, kinds or sinks, and inputs; code is not compared."""
    assert forked.plan().shape() == [
        ("numbers", "read_from", ()),
        ("filter", "filter", ("numbers",)),
        ("write_to", "to_ilist('even')", ("filter",)),
        ("join", "join", ("numbers", "filter")),
        ("top", "top", ("join",)),
        ("both", "to_ilist('both')", ("top",)),
    ]


def test_several_stages_end_in_one_sink(pipeline, numbers, given):
    """It gets the items of all of them."""
    pipeline.write_to(to_ilist("all"), numbers, numbers.map(str), numbers.filter(bool)).set_name("end")
    (write,) = pipeline.plan().writes

    assert (write.stage, write.node.label()) == ("end", ".union(...)")
    items = given(numbers.limit(0))
    assert sorted(map(str, items)) == sorted([*"012345", *"012345", *"12345"])


WRONG = {
    r"read_from\(\) takes a source, such as text_files\(\.\.\.\), not list: Items\(\.\.\.\) makes": lambda p, s: (
        p.read_from([1])
    ),
    r"not Stream, which belongs to a context: give the source": lambda p, s: p.read_from(Stream.of(1)),
    r"not None": lambda p, s: p.read_from(None),
    r"read_from\(\) takes a source, .* not type": lambda p, s: p.read_from(Items),
    r"name must be a str, not int": lambda p, s: p.read_from(Items([1]), name=3),
    r"write_to\(\) takes a sink and at least one stage": lambda p, s: p.write_to(to_ilist("x")),
    r"write_to\(\) takes a sink and stages, not KeyedStage": lambda p, s: p.write_to(
        to_ilist("x"), s.grouping_key(abs)
    ),
    r"write_to\(\) takes a sink, such as to_imap\(\.\.\.\), not str": lambda p, s: s.write_to("x"),
    r"to_imap is a function that makes one, so call it: to_imap\(\.\.\.\)": lambda p, s: s.write_to(to_imap),
    r"fn must return a stage, not int": lambda p, s: s.apply(lambda stage: 3),
    r"fn must be a function, not None": lambda p, s: s.apply(None),
    r"service must be a Service, not type: Service\(dict\) makes one": lambda p, s: s.map_using(dict, max),
    r"service must be a Service, not None": lambda p, s: s.filter_using(None, max),
    r"key must be a function, not int": lambda p, s: s.rebalance(3),
    r"other must|on must be one key function": lambda p, s: s.join(s, on=(abs, abs, abs)),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_are_refused_at_the_call(pipeline, numbers, message):
    """By their names."""
    with pytest.raises(TypeError, match=f"^(?:.*){message}"):
        WRONG[message](pipeline, numbers)
