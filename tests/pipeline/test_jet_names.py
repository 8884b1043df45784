"""Names of Jet and of other libraries lead to what a pipeline or a stage has."""

from __future__ import annotations

import re

import pytest

import collectors as c
import dstream as ds
import reducers
import sources
from dstream.pipeline import BatchStage, JoinClause, KeyedStage, Pipeline
from dstream.stream import Stream
from dstream.suggestions import stages as names
from dstream.suggestions.streams import plain
from reducers import to_ilist

RUN = "write_to(sink), and run the pipeline: ctx.new_job(pipeline)"
OF_STAGES = {
    "drainTo": "write_to(sink)",
    "writeTo": "write_to",
    "hashJoin": "hash_join",
    "hashJoin2": "hash_join_all([(right, on), ...], to=fn)",
    "innerHashJoin": "inner_hash_join",
    "groupingKey": "grouping_key",
    "groupBy": "grouping_key(fn)",
    "aggregate2": "co_aggregate(*others, op=...)",
    "aggregateBuilder": "co_aggregate(*others, op=...)",
    "rollingAggregate": "rolling_aggregate",
    "mapUsingService": "map_using(service, fn)",
    "filterUsingContext": "filter_using(service, fn)",
    "mapStateful": "map_stateful",
    "setName": "set_name",
    "setLocalParallelism": "set_local_parallelism",
    "getPipeline": "pipeline",
    "customTransform": "custom_transform",
    "addTimestamps": "add_timestamps",
    "sort": "sorted(key=...)",
    "to_list": RUN,
    "forEach": RUN,
    "find_first": RUN,
    "count": "aggregate(counting()).write_to(sink)",
    "reduce": "aggregate(op).write_to(sink)",
    "collect": "aggregate(collector), write_to(sink)",
    "generate": "pipeline.read_from(source), a + b",
    "parallel": "set_local_parallelism(n)",
    "mapp": "map",
    "fliter": "filter",
    "orderBy": "sorted(key=...)",
    "where": "filter(predicate)",
    "_private": "",
    "xyzzy": "",
}


def meant(thing: object, name: str) -> str:
    """Return what the message about a missing name offers."""
    with pytest.raises(AttributeError) as caught:
        getattr(thing, name)
    return str(caught.value).partition("; use ")[2]


@pytest.mark.parametrize("name", OF_STAGES)
def test_a_stage_says_what_is_meant(numbers, name):
    """As it is written in Java, in PySpark, on streams; what has no counterpart leads nowhere."""
    assert meant(numbers, name) == OF_STAGES[name]


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("readFrom", "read_from"),
        ("drawFrom", "read_from(source)"),
        ("writeTo", "write_to"),
        ("drainTo", "write_to(sink, *stages)"),
        ("create", "Pipeline()"),
        ("isEmpty", "is_empty"),
        ("toDotString", 'explain("dot")'),
        ("run", "ctx.new_job(pipeline)"),
        ("xyzzy", ""),
    ],
)
def test_a_pipeline_says_what_is_meant(name, offered):
    """The class says so as well."""
    assert meant(Pipeline(), name) == offered


def test_keyed_stages_and_sinks_say_what_is_meant(numbers):
    """What the stage before has is named there."""
    keyed, sink = numbers.grouping_key(abs), numbers.write_to(to_ilist("x"))

    assert meant(keyed, "keyFn") == "key"
    assert meant(keyed, "aggregate2") == "co_aggregate(*others, op=...)"
    assert meant(keyed, "filter") == "filter(...) of the stage, before grouping_key(fn)"
    assert meant(keyed, "write_to") == "write_to(...) of the stage, before grouping_key(fn)"
    assert meant(sink, "map") == "the stage before: a sink is the end of its branch"
    assert meant(sink, "setName") == "set_name"


@pytest.mark.parametrize("cls", [BatchStage, Pipeline], ids=["stages", "pipelines"])
def test_what_is_offered_is_there(cls):
    """Every method that a message names is one, every function one of a package; a name that exists needs no words."""
    table = names._OF_STAGES if cls is BatchStage else names._OF_PIPELINES
    known = {
        *c.__all__,
        *ds.gatherers.__all__,
        *reducers.__all__,
        *sources.__all__,
        "Pipeline",
        "connect",
        "new_job",
        "map_using_imap",
    }
    for name, offered in table.items():
        called = set(re.findall(r"\b(\w+)\(", offered))
        assert name == plain(name), "names are found by their plain form"
        assert not hasattr(cls, name), name
        has = [each in known or hasattr(BatchStage, each) or hasattr(Pipeline, each) for each in called]
        assert all(has), offered


@pytest.mark.parametrize("name", ["ingestion_timestamps", "native_timestamps", "join_within"])
def test_what_only_endless_stages_have_leads_to_a_source_without_an_end(name):
    """As for who reads a socket that ends, and wants windows."""
    with pytest.raises(
        AttributeError, match=r"use a source without an end, such as socket_lines\(\.\.\., durable=True"
    ):
        getattr(Pipeline().read_from(sources.items(1)), name)


def test_collectors_and_reducers_are_called_in_their_place():
    """What a stage lacks since it is a function of another package is given to a method that it has."""
    stage = Pipeline().read_from(sources.items(1))
    endless = Pipeline().read_from(sources.long_stream(1, 0)).ingestion_timestamps()
    for view, name, offered in (
        (stage, "counting", "aggregate(counting(...))"),
        (endless, "counting", "window(...).aggregate(counting(...))"),
        (stage, "to_files", "write_to(to_files(...))"),
        (endless, "to_imap", "write_to(to_imap(...))"),
        (stage.grouping_key(abs), "to_imap", "aggregate(op).write_to(to_imap(...))"),
    ):
        with pytest.raises(AttributeError, match=re.escape(f"has no {name!r}; use {offered}") + "$"):
            getattr(view, name)


def test_no_operation_of_streams_is_left_without_words():
    """Each is an operation of stages, or leads to one."""
    lost = [name for name in dir(Stream) if not name.startswith("_") and not hasattr(BatchStage, name)]
    silent = [name for name in lost if not names.no_such_name(BatchStage, name).partition("; use ")[2]]

    assert silent == []


def test_names_of_the_package_are_loaded_when_asked_for():
    """They are the same objects afterwards, and listed."""
    assert (ds.Pipeline, ds.JoinClause) == (Pipeline, JoinClause)
    assert {"Pipeline", "JoinClause", "Service"} <= set(dir(ds))
    assert KeyedStage.__doc__
