"""Writing: how the items of a plan get into the target of a sink, all at once or not at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

import collectors
from dstream.failures import is_our_name, naming
from dstream.plan import Node, Where, Write, call_site, explained, last_step, rewrite
from dstream.spi import Collections, Collector, Engine, Grouped, MapWriter, ProcessorSink, Runtime, Sink, Writer
from dstream.spi.processor_ends import Nowhere

__all__ = ["ended", "write", "writing"]

R = TypeVar("R")


def write(
    runtime: Runtime,
    node: Node,
    sink: Sink[Any, R],
    engine: Callable[[], Engine],
    name: str | None = None,
    epoch: int = 1,
) -> R:
    """Run the plan that ends in `node`, commit what its tasks wrote, and return what the target gives.

    The target is as it was before if anything fails.

    Args:
        runtime: has the collections.
        node: the last node of the plan.
        sink: what becomes of the items.
        engine: starts what runs the plan, unless the job is done already.
        name: that of the job in the target, unless the sink names it.
        epoch: its number.
    """
    node, sink = ended(node, sink, runtime)
    target = sink.open(runtime)
    job = target.begin(sink.job or name, epoch)
    if job.is_done:
        return target.result()
    end = writing(node, sink, job.writer)
    with explained(end, "collect"):
        try:
            receipts = engine().submit(rewrite(end)).result()
            # A failure there, such as one of a function that merges, names the step as one in a task does.
            with naming(last_step(end)):
                job.commit(receipts)
        except BaseException:
            job.abort()
            raise
    return target.result()


def ended(
    node: Node,
    sink: Sink[Any, R],
    runtime: Collections | None = None,
    name: str = "collect",
    where: Where | None = None,
) -> tuple[Node, Sink[Any, R]]:
    """Return what comes to a sink of the items of a node, and the sink: processors take the items before one.

    Args:
        node: the last node of the plan.
        sink: what becomes of the items.
        runtime: has the collections that processors may know by their names; None: they learn of them later.
        name: the method that the user called.
        where: the place of that call; None: here.
    """
    if not isinstance(sink, ProcessorSink):
        return node, sink
    from dstream.stream.by_processors import taken  # here: few programs have processors

    opened = sink if runtime is None else sink.opened(runtime)
    return taken(node, opened, name, where or call_site()), cast("Sink[Any, R]", Nowhere(sink.label))


def writing(
    node: Node,
    sink: Sink[Any, Any],
    writer: Writer | MapWriter | None,
    name: str = "collect",
    where: Where | None = None,
) -> Write:
    """Return the end of a plan whose items a writer takes.

    Args:
        node: the last node before it.
        sink: says what is written.
        writer: takes it; None for a plan that is only explained.
        name: the method that the user called.
        where: the place of that call; None: here.
    """
    collector, functions = _collector(sink), tuple(dict.fromkeys(_functions(sink)))
    return Write(node, writer, collector, f"{name}({sink.label})", functions, where=where or call_site())


def _functions(value: Any, name: str = "") -> Iterator[str]:
    """Give the names under which a sink of ours holds functions that it calls for each item."""
    if name in _NOT_OF_ITEMS:
        return
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _functions(each, name)
    elif isinstance(value, tuple):
        for each in value:
            yield from _functions(each, name)
    elif is_our_name(type(value).__module__):
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                yield from _functions(getattr(value, field.name), field.name)
    elif callable(value) and not is_our_name(getattr(value, "__module__", None) or ""):
        yield "partition_by" if name == "parts" else name


_NOT_OF_ITEMS = frozenset(("commit", "create", "destroy", "flush", "prepare"))


def _collector(sink: Sink[Any, Any]) -> Collector[Any, Any, Any] | None:
    """Return the keyed collector that makes the entries, or None if the items are written as they are."""
    made = sink.collector
    if isinstance(made, Grouped):
        return collectors.grouping_by(made.classifier, made.downstream or collectors.to_list())
    return made
