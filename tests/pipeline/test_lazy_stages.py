"""The operations of streams on stages: the same nodes, signatures and words."""

from __future__ import annotations

import inspect
import re

import pytest

from dstream import Stream
from dstream.pipeline import BatchStage, Pipeline
from sources import Items

TERMINAL = {
    *("all_match", "any_match", "none_match", "close", "collect", "count", "draw", "explain", "find_any", "find_first"),
    *("for_each", "for_each_ordered", "for_each_partition", "head", "iterator", "max", "min", "on_close", "partitions"),
    *("reduce", "show", "to_array", "to_arrow", "to_df", "to_list", "to_pandas"),
    *("count_by", "describe", "first", "group_by", "histogram", "last", "to_dict", "to_map", "to_set"),
}
FACTORIES = {"builder", "concat", "empty", "from_iterable", "generate", "iterate", "of", "of_nullable"}
OF_A_RUN = {"configure", "is_parallel", "parallel", "sequential"}  # `set_local_parallelism` and contexts have these
OPERATIONS = sorted({name for name in dir(Stream) if not name.startswith("_")} - TERMINAL - FACTORIES - OF_A_RUN)
PAIRED = {
    "zip",
    "zip_longest",
    "interleave",
    "cross",
    "intersection",
    "subtract",
    "semi_join",
    "anti_join",
    "asof_join",
}
OTHERWISE = {"peek", "union", "join", "cogroup", "apply", *PAIRED}  # they take stages, or more
SAME = sorted(set(OPERATIONS) - OTHERWISE)

CALLS = {
    "aggregate_by_key": None,
    "aggregate_by_window": None,
    "chunked": (2,),
    "drop_while": (bool,),
    "enumerate": (1,),
    "gather": None,
    "ignore": None,
    "limit": (2,),
    "on_error": None,
    "partition_by": (2,),
    "pluck": (0,),
    "resolve": None,
    "sample": (0.5, 7),
    "shuffle": (7,),
    "skip": (1,),
    "top": (2,),
    "top_by_key": (2,),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_stages_have_every_lazy_operation_of_streams(name):
    """Under its own name."""
    assert hasattr(BatchStage, name)


@pytest.mark.parametrize("name", SAME)
def test_stages_take_what_streams_take(name):
    """The same arguments with the same defaults."""
    ours, theirs = (inspect.signature(getattr(cls, name)).parameters for cls in (BatchStage, Stream))

    assert [(each.name, each.kind, each.default) for each in ours.values()] == [
        (each.name, each.kind, each.default) for each in theirs.values()
    ]


SAID_OTHERWISE = {"cache", "distinct", "gather", "key_by", "limit", "skip", "sorted"}
"""Their words speak of a stream, or of its terminal operations."""


@pytest.mark.parametrize("name", SAME)
def test_stages_say_of_an_operation_what_streams_say(name):
    """The first sentence is the same, so that help on either leads to one meaning."""
    ours, theirs = (inspect.getdoc(getattr(cls, name)).partition("\n")[0] for cls in (BatchStage, Stream))

    assert (ours == theirs) != (name in SAID_OTHERWISE)


@pytest.mark.parametrize("name", [name for name in SAME if CALLS.get(name, ()) is not None])
def test_stages_make_the_nodes_of_streams(name):
    """Of the same class, with the same label, at the place of the user's call."""
    args = CALLS.get(name)
    if args is None:
        needs = [
            each for each in inspect.signature(getattr(Stream, name)).parameters.values() if each.default is each.empty
        ]
        args = (str,) * (len(needs) - 1)
    source = Items([1])
    stage, stream = getattr(Pipeline().read_from(source), name)(*args), getattr(Stream.of(1), name)(*args)
    node = stage._record.node

    assert (type(node), node.label()) == (type(stream._node), stream._node.label())
    assert node.step.where is None or re.search(r"test_lazy_stages\.py$", node.step.where.file)
    assert stage.name == stage._record.kind == name


@pytest.mark.parametrize("name", sorted(PAIRED))
def test_stages_are_matched_as_streams_are(name):
    """With the same arguments and first words, by the same node."""
    ours, theirs = (getattr(cls, name) for cls in (BatchStage, Stream))
    pipeline, args = Pipeline(), (abs,) if "_join" in name else ()
    stage = getattr(pipeline.read_from(Items([1])), name)(pipeline.read_from(Items([2])), *args)
    stream = getattr(Stream.of(1), name)(Stream.of(2), *args)

    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    assert inspect.getdoc(ours).partition("\n")[0] == inspect.getdoc(theirs).partition("\n")[0]
    assert (type(stage._record.node), stage._record.node.label()) == (type(stream._node), stream._node.label())
    assert stage.name == name
