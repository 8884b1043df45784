"""The stages of a plan with several ends, in one picture: those of one graph after those of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dstream.engine.compiler.compile_forks import parts_of
from dstream.engine.explaining.bounds import OfEarlierJob
from dstream.plan.core import Cache, CacheIdentity, Core, End
from dstream.plan.core_of_forks import Several
from dstream.plan.properties import is_ordered
from dstream.plan.recalling import Cached, Found
from dstream.plan.stages import Call, Job, Stage, Stages, total
from dstream.plan.walk import topological

__all__ = ["named", "stages_of_ends"]

_MANY = 4


OfOneGraph = Callable[[End | Several, Found], tuple[Stages, Mapping[CacheIdentity, OfEarlierJob]]]
"""Gives the stages of one graph, and what it keeps of a `cache()` or a fork, by the graph's own numbers of stages."""


def stages_of_ends(several: Several, found: Found, stages: OfOneGraph) -> Stages:
    """Return the stages of all graphs of a plan, in the order in which they run."""
    ordered = {each.identity: is_ordered(each) for each in topological(several) if isinstance(each, Cache)}
    computed: dict[CacheIdentity, OfEarlierJob] = {}

    def found_by_then(node: Cache) -> Cached | None:
        if node.identity in computed:
            kept = computed[node.identity]
            before = sum(len(part.stages) for part in drawn)
            return Cached(replace(kept, stages=tuple(stage - before for stage in kept.stages)), ordered[node.identity])
        return found(node)

    drawn: list[Stages] = []
    for part in parts_of(several):
        shown, kept = stages(part.end, found_by_then)
        before = sum(len(part.stages) for part in drawn)
        computed.update(
            (identity, replace(each, stages=tuple(stage + before for stage in each.stages)))
            for identity, each in kept.items()
        )
        drawn.append(shown)
    return _in_one_picture(drawn, named(several.ends))


def named(ends: Sequence[Core]) -> str:
    """Return what a plan with these ends is called: the calls that end it, unless they are many."""
    calls = [end.label().removeprefix(".") for end in ends]
    return ", ".join(calls) if len(calls) < _MANY else f"{len(calls)} sinks"


def _in_one_picture(parts: Sequence[Stages], name: str) -> Stages:
    """Return the stages of several graphs that one call runs."""
    stages: list[Stage] = []
    jobs: list[Job] = []
    for part in parts:
        stages += _moved(_with_end(part), len(stages), len(jobs))
        jobs += part.jobs
    return Stages(
        parts[0].engine,
        Call(name),
        "this process gets the receipts of all sinks, and then commits them",
        tuple(stages),
        tuple(jobs),
        total(part.job_count for part in parts),
        total(part.shuffles for part in parts),
        total(part.python_stages for part in parts),
        parts[0].notes,
    )


def _with_end(part: Stages) -> list[Stage]:
    """Return the stages, with the call that ends them at the end of the last one."""
    *before, last = part.stages
    return [*before, replace(last, calls=(*last.calls, part.end))]


def _moved(part: Sequence[Stage], stages: int, jobs: int) -> list[Stage]:
    """Return the stages of a graph behind so many others."""
    return [
        replace(
            stage,
            inputs=tuple(replace(each, source=each.source + stages) for each in stage.inputs),
            jobs=tuple(number + jobs for number in stage.jobs),
        )
        for stage in part
    ]
