"""Arguments of the methods of stages: their checks, and the default action of `peek`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias, TypeVar

from dstream.arguments import hint_of_a_collector, is_sink, kind_of, optional_running, running_function
from dstream.base.logging import is_enabled, log_line
from dstream.errors import UnsupportedError
from dstream.plan import Node, Peek, called, here, shown_function
from dstream.spi import AggregateOperation, OpenedLater, Service
from dstream.stream.base import BaseStream

__all__ = [
    "Logged",
    "Operation1",
    "Operation2",
    "Operation3",
    "Operation4",
    "OperationN",
    "checked_name",
    "named_source",
    "needs_time",
    "not_of_streams",
    "operation_of",
    "peeked",
    "refuse_time",
    "service_of",
    "sink_of",
    "under_the_name",
]


T = TypeVar("T")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
R = TypeVar("R")

Operation1: TypeAlias = AggregateOperation[tuple[T], Any, R]
Operation2: TypeAlias = AggregateOperation[tuple[T, T2], Any, R]
Operation3: TypeAlias = AggregateOperation[tuple[T, T2, T3], Any, R]
Operation4: TypeAlias = AggregateOperation[tuple[T, T2, T3, T4], Any, R]
OperationN: TypeAlias = AggregateOperation[tuple[Any, ...], Any, R]

_WINDOW = "window(...).aggregate(op)"
_BY_KEY = "grouping_key(fn).window(...).aggregate(op), grouping_key(fn).rolling_aggregate(op)"
_STATE = "map_stateful(create, fn)"
_NEAR = "join_within(other, on=..., before=..., after=...)"
_BESIDE = "inner_hash_join(right, on=...) with a side that ends"

_INSTEAD = {
    **dict.fromkeys(("aggregate", "aggregate_by_window", "chunked", "limit", "top"), _WINDOW),
    **dict.fromkeys(("aggregate_by_key", "count_by_key", "group_by_key", "reduce_by_key", "top_by_key"), _BY_KEY),
    **dict.fromkeys(("enumerate", "pairwise", "skip", "drop_while", "take_while", "zip_with_index"), _STATE),
    **dict.fromkeys(("asof_join", "cogroup", "interleave", "join", "zip", "zip_longest"), _NEAR),
    **dict.fromkeys(("anti_join", "cross", "intersection", "semi_join", "subtract"), _BESIDE),
    "cache": "write_to(sink), and a job that reads what was written",
    "co_aggregate": "window(...).co_aggregate(*others, op=...)",
    "distinct": "grouping_key(fn).distinct(within=...)",
    "partition_by": "grouping_key(fn)",
    "sample": "filter(fn)",
    "sorted": "window(...).aggregate(sorting(key))",
    "shuffle": "rebalance()",
    "to_stream_stage": "this stage, which is one",
    "unordered": "this stage, whose items have no order",
}
"""Replacements for the methods that only stages with an end have."""


def not_of_streams(cls: type[Any], name: str) -> Callable[..., NoReturn]:
    """Return a method that refuses a call which stages with an end have, and other ones lack.

    Raises:
        AttributeError: there is no such method at all.
    """
    if name not in _INSTEAD:
        from dstream.suggestions.stages import no_such_name  # imported lazily: only an unknown name needs it

        raise AttributeError(no_such_name(cls, name))

    def refuse(*args: Any, **named: Any) -> NoReturn:
        raise UnsupportedError(f"{name}() needs all items, and a {cls.__name__} has no end: use {_INSTEAD[name]}")

    return refuse


def operation_of(op: Any, inputs: int, call: str) -> AggregateOperation[Any, Any, Any]:
    """Return `op` if it is an aggregate operation with this number of inputs.

    Raises:
        TypeError: it is something else, or has another number of inputs.
    """
    if not isinstance(op, AggregateOperation):
        raise TypeError(f"op must be an aggregate operation or a collector, not {kind_of(op)}{hint_of_a_collector(op)}")
    if op.arity != inputs:
        has = f"{op!r} has {_counted(op.arity, 'input')}"
        if inputs == 1:
            raise TypeError(f"{has}, and {call}() gives it one: co_aggregate(*others, op=...) takes as many stages")
        raise TypeError(f"{has}, and {call}() gives it {_counted(inputs, 'stage')}: one stage for each input")
    return op


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def checked_name(name: str) -> str:
    """Return the name of a stage if it is one.

    Raises:
        TypeError: it is no str.
        ValueError: it is empty.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {kind_of(name)}")
    if not name.strip():
        raise ValueError("name must not be empty")
    return name


def service_of(service: Any) -> Service[Any] | OpenedLater:
    """Return `service` if it is one, or one that is opened later.

    Raises:
        TypeError: it is something else.
    """
    # The class of a service has the methods of the protocol, too, so `isinstance` alone would take it (Python 3.11).
    if isinstance(service, Service | OpenedLater) and not isinstance(service, type):
        return service
    hint = f": Service({getattr(service, '__name__', '...')}) makes one of a function" if callable(service) else ""
    raise TypeError(f"service must be a Service, not {kind_of(service)}{hint}")


def sink_of(sink: Any) -> Any:
    """Return `sink` if it is one.

    Raises:
        TypeError: it is no sink; the message suggests the probable one.
    """
    if is_sink(sink) and not isinstance(sink, type):
        return sink
    if isinstance(sink, AggregateOperation):
        raise TypeError(f"write_to() takes a sink, such as to_imap(...): {sink!r} reduces items, with aggregate(...)")
    called = getattr(sink, "__name__", "")
    if getattr(sink, "__module__", "").startswith("dstream.reducers.") and called:
        raise TypeError(f"write_to() takes a sink; {called} is a function that makes one, so call it: {called}(...)")
    raise TypeError(f"write_to() takes a sink, such as to_imap(...), not {kind_of(sink)}")


def named_source(value: Any) -> str:
    """Return the kind of an argument that is no source, and the call that is probably meant."""
    kind = kind_of(value)
    if isinstance(value, BaseStream):
        return f"{kind}, which belongs to a context: give the source that it reads"
    if kind.startswith("IStream"):
        return f"{kind}, which belongs to a context: {kind.replace('Stream', '').lower()}({value.name!r}) names it"
    if isinstance(value, Iterable) and not isinstance(value, str | type):
        return f"{kind}: Items(...) makes one of it"
    return kind


def refuse_time(call: str, **given: object) -> None:
    """Refuse arguments that make sense only where items have timestamps.

    Raises:
        UnsupportedError: one of them is not None.
    """
    for name, value in given.items():
        if value is not None:
            raise needs_time(f"{name}= of {call}(...)")


def needs_time(what: str) -> UnsupportedError:
    """Return the error for an operation that needs the time of items, on a stage that has none."""
    return UnsupportedError(f"{what} is for items with timestamps: add_timestamps(fn) of this stage gives them")


def peeked(upstream: Node, action: Any, to_string: Any, should_log: Any) -> Peek:
    """Return the node of a stage's `peek`.

    Raises:
        TypeError: an action is passed together with options of logging, or one of them is no function that runs.
    """
    if action is not None and (to_string is not None or should_log is not None):
        raise TypeError("peek() takes an action, or to_string= and should_log= of what it logs itself, not both")
    if action is not None:
        return Peek(upstream, running_function(action, "action"), step=here())
    text = str if to_string is None else running_function(to_string, "to_string")
    logged = Logged(text, optional_running(should_log, "should_log"))
    return Peek(upstream, logged, step=called("peek", logged.shown_arguments()))


@dataclass(frozen=True)
class Logged:
    """The action that logs items, in the caller's process, to a logger that bears the name of their stage.

    Attributes:
        to_string: returns the string of an item.
        should_log: returns whether an item is logged; None: all.
        stage: the name of the stage whose items are seen, once a plan is made.
    """

    to_string: Callable[[Any], object]
    should_log: Callable[[Any], object] | None = None
    stage: str = ""

    def __post_init__(self) -> None:
        # The function that a failure names: a function of the user's, where there is one.
        meant = self.should_log if self.to_string is str and self.should_log is not None else self.to_string
        object.__setattr__(self, "__qualname__", shown_function(meant))

    def shown_arguments(self) -> str:
        """Return the arguments of the call that made it, as the user wrote them."""
        functions = {"to_string": None if self.to_string is str else self.to_string, "should_log": self.should_log}
        return ", ".join(f"{name}={shown_function(fn)}" for name, fn in functions.items() if fn is not None)

    def __call__(self, item: Any) -> None:
        """Log one item, if the logger has a listener."""
        logger = logging.getLogger(f"dstream.peek.{self.stage}")
        if is_enabled(logger) and (self.should_log is None or self.should_log(item)):
            log_line(logger, self.to_string(item))


def under_the_name(node: Node, stage: str) -> Node:
    """Return a node that logs a stage's output under the name of that stage; any other node as it is."""
    if isinstance(node, Peek) and isinstance(node.action, Logged):
        return replace(node, action=replace(node.action, stage=stage))
    return node
