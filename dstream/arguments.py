"""Checks of arguments at the call, before anything runs, with a hint at the intended argument."""

from __future__ import annotations

import functools
import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard, TypeVar, cast

from dstream.base.showing import repeated, shown
from dstream.errors import UnsupportedError
from dstream.spi import (
    AggregateOperation,
    Collections,
    Collector,
    OpenedLater,
    ProcessorSource,
    ProcessorStreamSource,
    Sink,
    Source,
    StreamSource,
)
from dstream.spi.gatherer import Gatherer
from dstream.spi.store import MOST_BUCKETS, Options
from dstream.values.predicates import Field
from dstream.values.user_functions import refuse_async, refuse_one_that_would_not_run

__all__ = [
    "check_options",
    "checked_function",
    "checked_names",
    "checked_source",
    "choice",
    "count",
    "explained_end",
    "hint_of_a_collector",
    "hint_of_a_field",
    "hint_of_a_gatherer",
    "hinting",
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
    "running_function",
    "seconds",
    "settings",
    "sorting_hints",
    "whole",
    "window_size",
]


F = TypeVar("F")
C = TypeVar("C", bound=Callable[..., Any])

_CLOSE = 0.82
"""The least similarity of a typing error and the intended name."""


def checked_function(value: F, name: str, *, awaits: bool = False) -> F:
    """Return `value` if it can be called, and its call gives a result.

    Args:
        value: the argument.
        name: what the message calls it.
        awaits: whether the caller awaits the results of an async function.

    Raises:
        TypeError: it cannot be called, or it is async; the message names the argument.
    """
    if not callable(value):
        raise TypeError(f"{name} must be a function, not {kind_of(value)}{hint_of_a_field(value)}")
    if not awaits:
        refuse_async(value, name)
    return value


def running_function(value: F, name: str) -> F:
    """Return `value` if it can be called, and the call runs its lines.

    Args:
        value: the argument: a predicate, an action, or a function whose result is one value.
        name: what the message calls it.

    Raises:
        TypeError: it cannot be called, is async, or yields; the message names the argument.
    """
    refuse_one_that_would_not_run(checked_function(value, name), name)
    return value


def optional_function(value: F, name: str) -> F:
    """Return `value` if it is None or can be called."""
    return value if value is None else checked_function(value, name)


def optional_predicate(value: F) -> F:
    """Return `value` if it is None, or can be called and then runs."""
    return optional_running(value, "predicate")


def optional_running(value: F, name: str) -> F:
    """Return `value` if it is None, or can be called and then runs."""
    return value if value is None else running_function(value, name)


def hinting(**meant: str) -> Callable[[C], C]:
    """Add the intended arguments to the message of a call whose arguments do not fit.

    Costs one more call. What the function itself raises is left as it is.

    Args:
        meant: what to write in place of arguments that other libraries have, by their names.
    """

    def around(fn: C) -> C:
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return fn(*args, **kwargs)
            except TypeError as error:
                # A second frame means that the function was entered: the error is not about its arguments.
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise
                # Python names the class before the method, as in `BaseStream.limit()`.
                words = re.sub(r"^[\w.<>]*\.(?=\w+\(\))", "", str(error))
            # Raised outside of `except`, so that Python's own message is not shown above it.
            raise TypeError(f"{words}{_hint(fn, args, kwargs, meant)}")

        return cast(C, call)

    return around


def _hint(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], meant: Mapping[str, str]) -> str:
    import difflib  # here: only a mistake needs them
    import inspect

    names = list(inspect.signature(fn).parameters)
    for name in (each for each in kwargs if each not in names):
        if name in meant:
            return f"; write {meant[name]}"
        close = difflib.get_close_matches(name, names, n=1, cutoff=_CLOSE)
        return f"; write {close[0]}=" if close else f"; it takes {', '.join(each for each in names if each != 'self')}"
    if "args" in meant and len(args) > 1:
        return f"; write {meant['args']}"
    return ""


def kind_of(value: object) -> str:
    """Return the name of the type of `value` for a message."""
    return "None" if value is None else type(value).__name__


def checked_names(
    names: Iterable[str] | None, argument: str, expected: str = "several names"
) -> tuple[str, ...] | None:
    """Return the names as a tuple; None stays None.

    Args:
        names: the value of an argument.
        argument: its name.
        expected: the values that it takes.

    Raises:
        TypeError: `names` is one str, or one of them is no str.
        ValueError: `names` is empty or holds one of them twice.
    """
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"{argument} must be {expected}: write {argument}=[{names!r}]")
    if not isinstance(names, Iterable):
        raise TypeError(f"{argument} must be {expected}, not {kind_of(names)}")
    checked = tuple(names)
    if not checked:
        raise ValueError(f"{argument} is empty: leave it out or give at least one name")
    if wrong := [name for name in cast("tuple[object, ...]", checked) if not isinstance(name, str)]:
        raise TypeError(f"{argument} must hold names, not {shown(wrong[0])}")
    if twice := repeated(checked):
        raise ValueError(f"{argument} holds {twice} more than once")
    return checked


def hint_of_a_field(value: object) -> str:
    """Return how a function is made of the name of a field; nothing for anything else."""
    if isinstance(value, Collector):
        return "; a collector follows it, as in grouping_by(classifier, counting())"
    if isinstance(value, Field):
        return f"; a condition compares the field, as in {value!r} == True"
    if not isinstance(value, str):
        return ""
    return f"; operator.itemgetter({value!r}) takes that field of a dict, operator.attrgetter({value!r}) of an object"


def hint_of_a_collector(value: object) -> str:
    """Return which collector is meant by a class, or by a function of Python; nothing for anything else."""
    if isinstance(value, Gatherer):
        return "; use gather(...) for a gatherer"
    if not callable(value):
        return ""
    module = getattr(value, "__module__", None) or ""
    if module.startswith("dstream.gatherers"):
        return f"; {_name(value)} makes a gatherer, so use stream.gather({_name(value)}(...))"
    if module.startswith("dstream.collectors."):
        return f"; {_name(value)} is a function that makes one, so call it: {_name(value)}(...)"
    meant = _MEANT.get(_name(value)) if module in _OF_PYTHON else None
    return f"; the collector for {_name(value)} is {meant}" if meant else _hint_of_a_function(value)


def hint_of_a_gatherer(value: object) -> str:
    """Return a hint for a collector, or for a factory of gatherers; an empty string for anything else."""
    if isinstance(value, Collector) or (getattr(value, "__module__", None) or "").startswith("dstream.collectors."):
        return "; use collect(...) for a collector"
    if (getattr(value, "__module__", None) or "").startswith("dstream.gatherers"):
        return f"; {_name(value)} is a function that makes one, so call it: {_name(value)}(...)"
    return ""


def _hint_of_a_function(value: object) -> str:
    if isinstance(value, type) and (hasattr(value, "append") or hasattr(value, "add")):
        return f"; to_collection({_name(value)}) gathers the items in one"
    return f"; collecting_and_then(to_list(), {_name(value)}) gives a function the list of all items"


def _name(value: object) -> str:
    name: str = getattr(value, "__qualname__", type(value).__qualname__)
    return "fn" if name.endswith("<lambda>") else name.rpartition("<locals>.")[2]


_OF_PYTHON = frozenset({"builtins", "collections"})
_MEANT = {
    "Counter": "frequencies()",
    "dict": "to_map(key, value)",
    "frozenset": "to_unmodifiable_set()",
    "len": "counting()",
    "list": "to_list()",
    "max": "max_by(key)",
    "min": "min_by(key)",
    "set": "to_set()",
    "sorted": "sorting(key)",
    "str": "joining(delimiter)",
    "sum": "summing()",
    "tuple": "to_unmodifiable_list()",
}
"""The collectors that are meant by a class or function of Python in place of a collector."""


def window_size(value: Any) -> int:
    """Return the number of items of a window; no stream has more than `sys.maxsize`.

    Raises:
        TypeError: it is no int.
        ValueError: it is less than 1.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"n must be an int, not {kind_of(value)}")
    number = operator.index(value)
    if number < 1:
        raise ValueError(f"n must be at least 1: {number}")
    return min(number, sys.maxsize)


def check_options(name: str, options: Options) -> None:
    """Refuse a name or options that no collection can have."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a collection must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError("the name of a collection must not be empty")
    buckets = options.buckets
    # By exact type, since True is an int.
    if buckets is not None and (type(buckets) is not int or not 1 <= buckets <= MOST_BUCKETS):
        raise ValueError(f"buckets must be a number from 1 to {MOST_BUCKETS}, not {shown(buckets)}")
    for argument in ("journal", "strict"):
        value = getattr(options, argument)
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"{argument} must be True or False, not {shown(value)}")
    for argument in ("ttl", "max_idle"):
        value = getattr(options, argument)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and (not is_number or not value > 0):
            raise ValueError(f"{argument} must be a number of seconds above 0, not {shown(value)}")


sorting_hints = hinting(
    ascending="reverse=True for the greatest first",
    by="key=",
    cmp="key=functools.cmp_to_key(comparator)",
    comparator="key=functools.cmp_to_key(comparator)",
    descending="reverse=True",
)
"""Names what `sorted` of streams and stages takes for the arguments that other libraries have."""


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
    # NaN is not above 0 either.
    if not value > 0:
        raise ValueError(f"{name} must be a number of seconds above 0: {value}")
    return value


def choice(value: Any, name: str) -> bool:
    """Return `value` if it is True or False, also as the bool of one if it is NumPy's.

    Raises:
        TypeError: it is neither.
    """
    kind = type(value)
    if kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"):  # As NumPy 2 and NumPy 1 name it.
        return bool(value)
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


def checked_source(source: Any, context: Collections) -> Source[Any] | ProcessorSource[Any]:
    """Return `source` if it is one that ends; a named one is opened first."""
    refuse_endless(source, "read()")
    opened = source.opened(context) if isinstance(source, OpenedLater) else source
    if not isinstance(opened, Source | ProcessorSource):
        hint = ": stream(...) takes the items of an iterable" if isinstance(source, Iterable) else ""
        given = f"not {type(source).__name__}{hint}"
        raise TypeError(f"read() takes a source, such as text_files(...), {given}")
    return opened


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
        raise AttributeError(factory.__name__)  # `__getattr__` of the stream raises a longer message.


def keep_from_streams(kind: type[Any]) -> None:
    """Restrict the factories of a class to calls on the class: `a.concat(b)` would be `b`."""
    for name, made in list(vars(kind).items()):
        if isinstance(made, staticmethod | classmethod) and not name.startswith("_"):
            setattr(kind, name, (_StaticFactory if isinstance(made, staticmethod) else _ClassFactory)(made.__func__))
