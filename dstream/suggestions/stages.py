"""Hints for unknown names of stages and pipelines."""

from __future__ import annotations

from typing import Any

from dstream.pipeline.bounded import BatchStage
from dstream.pipeline.builder import Pipeline
from dstream.pipeline.keyed import KeyedStage, ReducingView, TimedView
from dstream.pipeline.stages import SinkStage, StageView
from dstream.pipeline.unbounded import StreamStage, UnboundedStage
from dstream.suggestions.libraries import ELSEWHERE
from dstream.suggestions.streams import calls_of, meant_by, plain

__all__ = ["no_such_name"]


_RUN = "write_to(sink), and run the pipeline: ctx.new_job(pipeline)"
_AGGREGATED = "aggregate(op).write_to(sink)"
_HASH_JOIN = "hash_join(right, on=(of_item, of_right), to=fn)"
_HASH_JOINS = "hash_join_all([(right, on), ...], to=fn)"
_CO_AGGREGATED = "co_aggregate(*others, op=...)"

_ENDLESS = "a source without an end, such as socket_lines(..., durable=True) or watch_files(...); or to_stream_stage()"

_OF_EVERY_STAGE = {
    "getpipeline": "pipeline",
    "getname": "name",
    "setlocalparallelism": "set_local_parallelism(n)",
}

_OF_STAGES = {
    **_OF_EVERY_STAGE,
    "addkey": "grouping_key(fn)",
    "aggregate2": _CO_AGGREGATED,
    "aggregate3": _CO_AGGREGATED,
    "aggregatebuilder": _CO_AGGREGATED,
    "cogroup2": _CO_AGGREGATED,
    "cogroup3": _CO_AGGREGATED,
    "cogroupbuilder": _CO_AGGREGATED,
    "countby": "grouping_key(fn).aggregate(counting())",
    "configure": "the settings of the context: connect(config=...)",
    "customtransform": "gather(gatherer), apply(fn)",
    "drainto": "write_to(sink)",
    "draw": "draw() of the pipeline",
    "explain": "explain() of the pipeline",
    "sinkto": "write_to(sink)",
    "filterusingcontext": "filter_using(service, fn)",
    "filterusingservice": "filter_using(service, fn)",
    "flatmapusingcontext": "flat_map_using(service, fn)",
    "flatmapusingservice": "flat_map_using(service, fn)",
    "groupby": "grouping_key(fn)",
    "groupbykey": "grouping_key(fn).aggregate(to_list())",
    "groupingby": "grouping_key(fn)",
    "keyby": "grouping_key(fn), key_by(fn)",
    "hashjoin2": _HASH_JOINS,
    "hashjoin3": _HASH_JOINS,
    "hashjoinbuilder": _HASH_JOINS,
    "broadcast": _HASH_JOIN,
    "innerhashjoin2": "inner_hash_join(...) twice",
    "ingestiontimestamps": _ENDLESS,
    "joinwithin": _ENDLESS,
    "nativetimestamps": _ENDLESS,
    "isparallel": "set_local_parallelism(n)",
    "parallel": "set_local_parallelism(n)",
    "sequential": "set_local_parallelism(1)",
    "mapusingcontext": "map_using(service, fn)",
    "mapusingservice": "map_using(service, fn)",
    "mapusingserviceasync": "map_concurrent(n, fn)",
    "mapusingserviceasyncbatched": "map_concurrent(n, fn)",
    "mapusingpython": "map(fn)",
    "mapusingreplicatedmap": "map_using_imap(name, key, fn)",
    "onclose": _RUN,
    "reducebykey": "grouping_key(fn).aggregate(reducing(op))",
    "repartition": "rebalance(), set_local_parallelism(n)",
    "coalesce": "rebalance(), set_local_parallelism(n)",
    "sink": "write_to(sink)",
    "sort": "sorted(key=...)",
    "write": "write_to(sink)",
}

_OF_STREAMS = {
    "assigntimestampsandwatermarks": "add_timestamps(fn, allowed_lag=...)",
    "dropduplicateswithinwatermark": "grouping_key(fn).distinct(within=...)",
    "intervaljoin": "join_within(other, on=..., before=..., after=...)",
    "withingestiontimestamps": "ingestion_timestamps()",
    "withnativetimestamps": "native_timestamps(allowed_lag=...)",
    "withouttimestamps": "the stage as it is",
    "withtimestamps": "add_timestamps(fn, allowed_lag=...)",
    "withwatermark": "add_timestamps(fn, allowed_lag=...)",
}

_OF_ENDLESS_STAGES = {"sort": "window(...).aggregate(sorting(key))"}

_OF_VIEWS = {"keyfn": "key", "streamstage": "stage", "windowdefinition": "definition"}

_OF_PIPELINES = {
    "create": "Pipeline()",
    "drawfrom": "read_from(source)",
    "drainto": "write_to(sink, *stages)",
    "sinkto": "write_to(sink, *stages)",
    "read": "read_from(source)",
    "source": "read_from(source)",
    "write": "write_to(sink, *stages)",
    "todag": "plan()",
    "todotstring": 'explain("dot")',
    "setpreserveorder": "unordered() of a stage",
    "run": "ctx.new_job(pipeline)",
    "execute": "ctx.new_job(pipeline)",
    "submit": "ctx.new_job(pipeline)",
    "start": "ctx.new_job(pipeline)",
    "join": "ctx.new_job(pipeline).join()",
}

_FACTORIES = "builder concat empty from_iterable generate iterate of of_nullable"
_REDUCING = {"collect": "aggregate(collector), write_to(sink)", "count": "aggregate(counting()).write_to(sink)"}
_REDUCTIONS = ("describe", "histogram", "last", "max", "min", "reduce", "to_dict", "to_map", "to_set")
_ENDS = (
    "all_match any_match none_match close find_any find_first first for_each for_each_ordered for_each_partition "
    "head iterator on_close partitions show to_array to_arrow to_df to_list to_pandas"
)


def no_such_name(cls: type[Any], name: str) -> str:
    """Say that a class has no attribute of this name, and which one is probably meant."""
    article = "an" if cls.__name__[0] in "AEIO" else "a"
    message = f"{article} {cls.__name__} has no {name!r}"
    meant = "" if name.startswith("_") else _meant(cls, name)
    return f"{message}; use {meant}" if meant else message


def _meant(cls: type[Any], name: str) -> str:
    if issubclass(cls, Pipeline):
        return meant_by(cls, name, _OF_PIPELINES)
    if issubclass(cls, ReducingView):
        calls = calls_of("aggregate", "aggregate(op).write_to")
        return meant_by(cls, name, {**calls, **_on_the_stage(), "keyfn": "key", "topn": "top(n, key=...)", **_CO})
    if issubclass(cls, StageView):
        return meant_by(cls, name, {**_before(cls), **_OF_VIEWS, **_CO})
    if issubclass(cls, SinkStage):
        return meant_by(cls, name, _OF_EVERY_STAGE) or _before_the_sink(name)
    is_endless = issubclass(cls, UnboundedStage)
    calls = calls_of("window(...).aggregate" if is_endless else "aggregate", "write_to")
    only_here = _OF_ENDLESS_STAGES if is_endless else {}
    return meant_by(cls, name, {**calls, **_elsewhere(), **_ends(), **_OF_STAGES, **_OF_STREAMS, **only_here})


_CO = {each: _OF_STAGES[each] for each in ("aggregate2", "aggregate3", "aggregatebuilder")}


def _on_the_stage() -> dict[str, str]:
    """Return the names of a stage that a keyed one lacks."""
    names = [each for each in dir(BatchStage) if not each.startswith("_") and not hasattr(KeyedStage, each)]
    return {plain(each): f"{each}(...) of the stage, before grouping_key(fn)" for each in names}


def _before(cls: type[StageView]) -> dict[str, str]:
    """Return the names of a stage without an end that its keyed and windowed forms lack."""
    call = "grouping_key(fn)" if issubclass(cls, TimedView) else "window(...)"
    names = [each for each in dir(StreamStage) if not each.startswith("_") and not hasattr(cls, each)]
    return {plain(each): f"{each}(...) of the stage, before {call}" for each in names}


def _before_the_sink(name: str) -> str:
    known = {plain(each) for each in dir(BatchStage)}
    return "the stage before: a sink is the end of its branch" if plain(name) in known else ""


def _ends() -> dict[str, str]:
    """Return the alternatives to the terminal operations of streams."""
    ends = {plain(each): _RUN for each in (*_ENDS.split(), "run", "execute", "submit", "start")}
    ends |= {plain(each): "pipeline.read_from(source), a + b" for each in _FACTORIES.split()}
    reductions = {plain(each): _AGGREGATED for each in _REDUCTIONS}
    return {**ends, **reductions, **_REDUCING}


def _elsewhere() -> dict[str, str]:
    """Return the names of other libraries for operations of a stage: those for streams, where stages have them too."""
    return {name: meant for name, meant in ELSEWHERE.items() if hasattr(BatchStage, meant.partition("(")[0])}
