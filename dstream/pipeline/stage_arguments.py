"""Checks of what the methods of stages are given, at the call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dstream.errors import UnsupportedError
from dstream.spi import AggregateOperation, OpenedLater, Service
from dstream.spi.wrong_arguments import hint_of_a_collector
from dstream.stream.base import BaseStream
from dstream.stream.stream_arguments import is_sink, kind_of

__all__ = ["named_source", "needs_time", "operation_of", "refuse_time", "service_of", "sink_of"]


def operation_of(op: Any, inputs: int, call: str) -> AggregateOperation[Any, Any, Any]:
    """Return `op` if it is an aggregate operation with so many inputs.

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


def service_of(service: Any) -> Service[Any] | OpenedLater:
    """Return `service` if it is one, or stands for one.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(service, Service | OpenedLater) and not isinstance(service, type):
        return service
    hint = f": Service({getattr(service, '__name__', '...')}) makes one of a function" if callable(service) else ""
    raise TypeError(f"service must be a Service, not {kind_of(service)}{hint}")


def sink_of(sink: Any) -> Any:
    """Return `sink` if it is one.

    Raises:
        TypeError: it is something else; the message says what is probably meant.
    """
    if is_sink(sink) and not isinstance(sink, type):
        return sink
    if isinstance(sink, AggregateOperation):
        raise TypeError(f"write_to() takes a sink, such as to_imap(...): {sink!r} reduces items, with aggregate(...)")
    called = getattr(sink, "__name__", "")
    if getattr(sink, "__module__", "").partition(".")[0] == "reducers" and called:
        raise TypeError(f"write_to() takes a sink; {called} is a function that makes one, so call it: {called}(...)")
    raise TypeError(f"write_to() takes a sink, such as to_imap(...), not {kind_of(sink)}")


def named_source(value: Any) -> str:
    """Return what somebody gave for a source, and what is probably meant."""
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
    """Return the error for what needs the time of items, on a stage that has none."""
    return UnsupportedError(f"{what} is for items with timestamps: add_timestamps(fn) of this stage gives them")
