"""Aggregates: how an operation and the keys of its inputs become a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from collectors.groups import groups_of_any_key
from dstream.plan import Node, call_site
from dstream.plan.nodes_of_stages import Aggregate
from dstream.spi import AggregateOperation

__all__ = ["aggregated"]


def aggregated(
    upstreams: Sequence[Node],
    operation: AggregateOperation[Any, Any, Any],
    keys: Sequence[Callable[[Any], Any]] | None = None,
    to: Callable[[Any, Any], Any] | None = None,
    *,
    name: str = "aggregate",
    given: str | None = None,
) -> Aggregate:
    """Return the node of what an operation makes of its inputs.

    Args:
        upstreams: the last node of each input; as many as the operation has.
        operation: what is made.
        keys: one function for each input, which gives the key of an item; None: one result for all items.
        to: makes what goes on of a key and its result; None: an `Entry`.
        name: the method that the user called.
        given: what the user gave to it, in short.
    """
    reductions = [operation.on_input(number) for number in range(operation.arity)]
    if keys is not None:
        reductions = [groups_of_any_key(key, each) for key, each in zip(keys, reductions, strict=True)]
    shown = (name, given)
    return Aggregate(tuple(upstreams), operation, tuple(reductions), keys is not None, to, *shown, where=call_site())
