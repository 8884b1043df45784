"""Checks of arguments of streams at the call, before anything runs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from dstream.arguments import checked_function as function
from dstream.arguments import hint_of_a_collector, hinting, kind_of, running_function
from dstream.errors import UnsupportedError
from dstream.spi import AggregateOperation, Collector, OpenedLater, ProcessorStreamSource, Sink, Source, StreamSource

if TYPE_CHECKING:
    from dstream.windows import Window

__all__ = [
    "choice",
    "count",
    "explained_end",
    "function",
    "is_sink",
    "keep_from_streams",
    "kind_of",
    "operation_of_one_input",
    "optional_function",
    "optional_predicate",
    "optional_running",
    "partition_count",
    "refuse_endless",
    "refuse_no_iterable",
    "seconds",
    "settings",
    "sorting_hints",
    "whole",
    "window_of",
]


F = TypeVar("F")

sorting_hints = hinting(
    ascending="reverse=True for the greatest first",
    by="key=",
    cmp="key=functools.cmp_to_key(comparator)",
    comparator="key=functools.cmp_to_key(comparator)",
    descending="reverse=True",
)
"""Names what `sorted` of streams and stages takes for the arguments that other libraries have."""


def optional_function(value: F, name: str) -> F:
    """Return `value` if it is None or can be called."""
    return value if value is None else function(value, name)


def optional_predicate(value: F) -> F:
    """Return `value` if it is None, or can be called and then runs."""
    return optional_running(value, "predicate")


def optional_running(value: F, name: str) -> F:
    """Return `value` if it is None, or can be called and then runs."""
    return value if value is None else running_function(value, name)


def count(value: Any, name: str) -> int:
    """Return `value` if it is an int and not negative.

    Raises:
        TypeError: it is no int.
        ValueError: it is negative.
    """
    number = whole(value, name)
    if number < 0:
        raise ValueError(f"{name} must not be negative: {number}")
    return number


def whole(value: Any, name: str) -> int:
    """Return `value` as an int, also one of NumPy's.

    Raises:
        TypeError: it is no int, or a bool.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {kind_of(value)}") from None
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not bool")
    return number


def explained_end(into: Any) -> Collector[Any, Any, Any] | Sink[Any, Any]:
    """Return the end of a stream that is explained.

    Raises:
        TypeError: it is neither a collector nor a reducer.
    """
    if isinstance(into, Collector) or is_sink(into):
        return into
    raise TypeError(f"into must be a collector or a reducer, not {kind_of(into)}")


def operation_of_one_input(value: Any, name: str) -> AggregateOperation[Any, Any, Any]:
    """Return `value` if it is a collector, or an aggregate operation of one input.

    Raises:
        TypeError: it is something else, or has several inputs.
    """
    if not isinstance(value, AggregateOperation):
        raise TypeError(f"{name} must be a Collector, not {kind_of(value)}{hint_of_a_collector(value)}")
    if value.arity != 1:
        raise TypeError(f"{name} must have one input: {value!r} has {value.arity} inputs")
    return value


def window_of(value: Any) -> Window:
    """Return a definition of windows if it is one.

    Raises:
        TypeError: it is something else.
    """
    from dstream.windows import FrameWindow, SessionWindow  # Few programs need any.

    if isinstance(value, FrameWindow | SessionWindow):
        return value
    raise TypeError(
        f"window must be one of dstream.windows, tumbling(size), sliding(size, by=...) or session(timeout), not "
        f"{kind_of(value)}"
    )


def is_sink(value: object) -> TypeGuard[Sink[Any, Any]]:
    """Return `isinstance(value, Sink)`, in a twentieth of the time (CPython 3.11): each `collect` asks."""
    return all(hasattr(value, name) for name in ("collector", "open", "label", "job"))


def partition_count(value: Any, name: str = "partitions") -> int:
    """Return `value` if it is an int of at least 1."""
    number = whole(value, name)
    if number < 1:
        raise ValueError(f"{name} must be at least 1: {number}")
    return number


def seconds(value: Any, name: str) -> float:
    """Return `value` if it is a number of seconds above 0.

    Raises:
        TypeError: it is no number.
        ValueError: it is not above 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of seconds, not {kind_of(value)}")
    if not value > 0:
        raise ValueError(f"{name} must be a number of seconds above 0: {value}")
    return value


def choice(value: Any, name: str) -> bool:
    """Return `value` if it is True or False.

    Raises:
        TypeError: it is neither.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {kind_of(value)}")
    return value


def refuse_no_iterable(value: object) -> None:
    """Refuse a table, which would give the names of its columns rather than its rows, and a source, which is read.

    Raises:
        TypeError: `value` is a DataFrame, an Arrow table or a source.
        UnsupportedError: it is a source without an end.
    """
    if not isinstance(value, Iterable) and not isinstance(value, type):
        refuse_endless(value, "read()")
        if isinstance(value, (Source, OpenedLater)):
            raise TypeError(f"a {kind_of(value)} is a source, not an iterable: ctx.read(...) streams its items")
    gives_columns = hasattr(value, "__arrow_c_stream__") and (
        # A ChunkedArray of Arrow has the method, too: it has no columns, and iterates over its values.
        hasattr(value, "columns") or not hasattr(value, "__iter__")
    )
    if gives_columns or hasattr(value, "mapInArrow") or (hasattr(value, "itertuples") and hasattr(value, "columns")):
        raise TypeError(f"a {kind_of(value)} is a table, not an iterable of rows: ctx.from_df(...) streams its rows")


def refuse_endless(source: object, call: str) -> None:
    """Refuse a source without an end.

    Raises:
        UnsupportedError: it is one.
    """
    # A class of sources has the methods of its sources.
    if isinstance(source, StreamSource) and not isinstance(source, type):
        raise UnsupportedError(
            f"{call} takes sources that end, and {source.label} has no end: pipeline.read_from(...) begins a job with "
            "it; source.begin(), .reach(...) and .split(...) give what is there now, range by range"
        )
    if isinstance(source, ProcessorStreamSource):
        raise UnsupportedError(
            f"{call} takes sources that end, and {source!r} has no end: pipeline.read_from(...) begins a job with it; "
            "from_processor(...) takes processors that end"
        )


def settings(value: Any, name: str) -> dict[str, str]:
    """Return a mapping of names to values as texts.

    Raises:
        TypeError: it is no mapping, a name is no str, or a value is neither a text nor a number.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping of names to values, not {kind_of(value)}")
    for key, held in value.items():
        if not isinstance(key, str):
            raise TypeError(f"{name} must have names that are str, not {kind_of(key)}")
        if not isinstance(held, str | int | float):
            raise TypeError(f"{name}[{key!r}] must be a text or a number, not {kind_of(held)}")
    return {key: str(held) for key, held in value.items()}


def not_collected(args: tuple[Any, ...]) -> str:
    """Return the words for the arguments of `collect`, and the probable meaning of the given ones."""
    takes = "collect() takes a Collector, a Reducer, or the functions (supplier, accumulator, combiner)"
    match args:
        case ():
            return f"{takes}; to_list() gives all items"
        case (function,) if getattr(function, "__module__", "").startswith("dstream.reducers."):
            return f"{takes}; {function.__name__} is a function that makes one, so call it: {function.__name__}(...)"
        case (other,):
            return f"{takes}, not {kind_of(other)}{hint_of_a_collector(other)}"
    return f"{takes}, not {len(args)} arguments"


class _StaticFactory(staticmethod):  # type: ignore[type-arg]  # Of any function.
    def __get__(self, stream: Any, kind: Any = None, /) -> Any:
        _refuse(stream, self.__func__)
        return super().__get__(stream, kind)


class _ClassFactory(classmethod):  # type: ignore[type-arg]  # Of any function.
    def __get__(self, stream: Any, kind: Any = None, /) -> Any:
        _refuse(stream, self.__func__)
        return super().__get__(stream, kind)


def _refuse(stream: Any, factory: Any) -> None:
    if stream is not None:
        raise AttributeError(factory.__name__)  # `__getattr__` of the stream says more.


def keep_from_streams(kind: type[Any]) -> None:
    """Restrict the factories of a class to calls on the class: `a.concat(b)` would be `b`."""
    for name, made in list(vars(kind).items()):
        if isinstance(made, staticmethod | classmethod) and not name.startswith("_"):
            setattr(kind, name, (_StaticFactory if isinstance(made, staticmethod) else _ClassFactory)(made.__func__))
