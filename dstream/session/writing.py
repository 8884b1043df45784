"""Writing: how the result of a plan gets into a collection, all at once or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import collectors
from dstream.failures import naming
from dstream.plan import Node, Write, call_site, explained, last_step, rewrite
from dstream.spi import Collector, Engine, Output

if TYPE_CHECKING:
    from dstream.distributed import IStreamList, IStreamMap
    from dstream.session.context import Context

__all__ = ["engine_of_this_process", "entries_of", "write"]


def write(context: Context, node: Node, output: Output, engine: Callable[[], Engine]) -> Any:
    """Run the plan that ends in `node`, commit what it gives, and return the collection.

    The collection is as it was before if anything fails.

    Args:
        context: has the collection.
        node: the last node of the plan.
        output: the collection, and how it is written.
        engine: starts what runs the plan, unless the job is done already.
    """
    collection = _target(context, output)
    job = collection._begin(output)
    if job.is_done:
        return collection
    end = Write(node, job.writer, entries_of(output), f"collect({output.label})", where=call_site())
    with explained(end, "collect"):
        try:
            receipts = engine().submit(rewrite(end)).result()
            # A failure there, such as one of a function that merges, names the step as one in a task does.
            with naming(last_step(end)):
                job.commit(receipts)
        except BaseException:
            job.abort()
            raise
    return collection


def _target(context: Context, output: Output) -> IStreamMap[Any, Any] | IStreamList[Any]:
    if output.kind == "list":
        return context.get_list(output.name)
    return context.get_map(output.name) if output.kind == "map" else context.get_cache(output.name)


def entries_of(output: Output) -> Collector[Any, Any, Any] | None:
    """Return the keyed collector that makes the entries, or None for a list of items."""
    if output.classifier is None:
        return output.collector
    return collectors.grouping_by(output.classifier, output.downstream or collectors.to_list())


def engine_of_this_process() -> Engine:
    """Return an engine for what is here already, such as dead letters."""
    from dstream.engine.local import LocalEngine
    from dstream.engine.memory_bound import DEFAULT_BOUND

    return LocalEngine(DEFAULT_BOUND)
