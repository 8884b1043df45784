"""The end of a drawn plan: how the result of each kind of terminal operation comes about on Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dstream.engine.spark.looping import FEW
from dstream.engine.spark.reach import Drawn, Reach, waves
from dstream.plan import Limit
from dstream.plan.stages import ONE, Amount, Call, Job, exactly
from dstream.spi import Collector, Output

__all__ = ["draw_end"]

End = tuple[Call, str]
"""The call that ends the plan, and how its result comes to the caller."""


def draw_end(into: Any, reach: Reach, limit: Limit | None, drawn: Drawn) -> End:
    """Draw the last stages and the last job.

    Args:
        into: a `Collector`, an `Output`, or None for a list of all items.
        reach: the end of the plan, without the limit.
        limit: what the plan ends in if it ends in a limit, and nothing else takes its items.
        drawn: the plan.
    """
    if isinstance(into, Collector):
        return _collected(into, reach, drawn)
    if isinstance(into, Output):
        return _written(into, reach, drawn)
    if limit is not None:
        return _first_ones(limit, reach, drawn)
    return _all(reach, drawn) if drawn.bounded[id(drawn.root)] else _endless(reach, drawn)


def _all(reach: Reach, drawn: Drawn) -> End:
    _last_job("to_list()", reach, drawn)
    return Call("to_list()"), f"all items come to this process{_in_order(drawn)}"


def _last_job(title: str, reach: Reach, drawn: Drawn) -> None:
    """Draw a job over all partitions; there is one also where there are none."""
    ended = Amount(max(1, reach.segments.least), None if reach.segments.most is None else max(1, reach.segments.most))
    jobs = _with_letters(exactly(1), reach, drawn)
    drawn.sketch.job(Job(title, jobs, reach.stage, exactly(1) if reach.segments.most == 0 else ended))


def _with_letters(jobs: Amount, reach: Reach, drawn: Drawn) -> Amount:
    """Return how many jobs there are if dead letters come behind the items: one measures them, others read them."""
    if not drawn.has_letters:
        return jobs
    parts = reach.partitions.most
    most = None if parts is None or jobs.most is None else jobs.most * (2 + max(parts, 1))
    return Amount(jobs.least * 2, most, "dead letters come behind the items")


def _in_order(drawn: Drawn) -> str:
    return ", in order" if drawn.ordered[id(drawn.root)] else ""


def _first_ones(limit: Limit, reach: Reach, drawn: Drawn) -> End:
    note = "in each partition; then as many as are wanted"
    reach = drawn.runs_in_place(reach, Call(f".limit({limit.count})", limit.where, note))
    drawn.sketch.order(reach.stage, drawn.ordered[id(drawn.root)])
    found = waves(reach) if limit.count else exactly(0)
    jobs = _with_letters(found, reach, drawn)
    if limit.count > FEW:
        jobs = Amount(found.least, None)  # What is large comes partition by partition, some ahead of time.
    title = f"to_list(): partitions run in waves of 1, 4, 16, ... until {limit.count:,} items are there"
    is_whole = reach.segments == ONE and found.least > 0
    drawn.sketch.job(Job(title, jobs, reach.stage, found, is_whole))
    return Call("to_list()"), f"the first {limit.count:,} items come to this process{_in_order(drawn)}"


def _endless(reach: Reach, drawn: Drawn) -> End:
    title = "chunks of 1,024, 4,096, ... items, each computed again from the start"
    many = Amount(1, None)
    drawn.sketch.job(Job(title, many, reach.stage, many))
    return Call("iter(stream)"), "a loop gets the items chunk by chunk, without end; to_list() is refused"


def _collected(collector: Collector[Any, Any, Any], reach: Reach, drawn: Drawn) -> End:
    call = Call(f"collect({collector.name or '...'})")
    if collector.keyed is None or reach.has_one_partition:
        drawn.sketch.note(reach.stage, f"{call.label}: each task combines its items into one container")
        _last_job(call.label, reach, drawn)
        return call, "this process combines the containers of the tasks in order and finishes the result"
    why = f"{call.label}: each task first combines what it has of each key; the parts of a key meet in one place"
    targets = drawn.targets(reach.partitions)
    groups = drawn.begins(targets, [Call(call.label, None, "combines and finishes each key")], reach.to("shuffle", why))
    drawn.sketch.note(groups.stage, "a hot key is split: each task sends one container for it, not its items")
    drawn.sketch.order(groups.stage, is_ordered=False)
    _last_job(call.label, groups, drawn)
    order = ", in the order in which the keys were first seen" if drawn.ordered[id(drawn.root)] else ""
    return call, f"one finished value for each key comes to this process{order}"


def _written(output: Output, reach: Reach, drawn: Drawn) -> End:
    call = Call(f"collect({output.label})")
    if output.collector is None and output.classifier is None:
        drawn.sketch.note(reach.stage, f"{call.label}: each task writes its items, in place")
        _last_job(call.label, reach, drawn)
        return call, "this process gets receipts and commits them all at once"
    why = f"{call.label}: each task first combines what it has of each key; each key goes to its bucket"
    most = drawn.targets(reach.partitions).most
    targets = exactly(1) if most == 1 else Amount(1, most, "no more than the buckets of the map")
    to_bucket = replace(reach.to("shuffle", why), is_sure=True)
    buckets = drawn.begins(targets, [Call(call.label, None, "combines each key and writes its bucket")], to_bucket)
    drawn.sketch.order(buckets.stage, is_ordered=False)
    _last_job(call.label, buckets, drawn)
    return call, "this process gets receipts and commits them all at once"
