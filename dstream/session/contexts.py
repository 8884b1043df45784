"""Open contexts of this process, their refusal on workers, and checks of their arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dstream.base.environment import inside_a_worker
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.failures import shown
from dstream.spi import Collections, OpenedLater, Options, ProcessorSource, Source
from dstream.spi.store import MOST_BUCKETS
from dstream.stream.arguments import refuse_endless

if TYPE_CHECKING:
    from dstream.session.context import Context

__all__ = [
    "check_options",
    "check_streams",
    "checked_source",
    "contexts",
    "inside_a_worker",
    "refuse_on_a_worker",
    "seconds",
]


def refuse_on_a_worker(what: str) -> None:
    """Refuse a call that needs the driver; a worker never starts a Java process.

    Raises:
        IllegalStateError: this process runs a Spark task.
    """
    if inside_a_worker():
        raise IllegalStateError(
            f"{what} was called on a Spark worker, by a function that runs there or by a module that it imports: "
            "connect and read in the driver only (in a function, or behind `if __name__ == '__main__':`), and give the "
            "function the plain values that it needs"
        )


class Contexts:
    """The open contexts of this process, and which of them is the default."""

    def __init__(self) -> None:
        self._open: list[Context] = []
        self._chosen: Context | None = None

    def add(self, context: Context) -> None:
        self._open.append(context)

    def forget(self, context: Context) -> None:
        self._open = [known for known in self._open if known is not context]
        if self._chosen is context:
            self._chosen = None

    def choose(self, context: Context | None) -> None:
        self._chosen = context

    @property
    def chosen(self) -> Context | None:
        return self._chosen

    def default(self) -> Context | None:
        return self._chosen or next(iter(self._open), None)


contexts = Contexts()


def checked_source(source: Any, context: Collections) -> Source[Any] | ProcessorSource[Any]:
    """Return `source` if it is one that ends; a named one is opened first."""
    refuse_endless(source, "read()")
    opened = source.opened(context) if isinstance(source, OpenedLater) else source
    if not isinstance(opened, Source | ProcessorSource):
        hint = ": stream(...) takes the items of an iterable" if isinstance(source, Iterable) else ""
        given = f"not {type(source).__name__}{hint}"
        raise TypeError(f"read() takes a source, such as text_files(...), {given}")
    return opened


def check_streams(df: Any, engine: str) -> None:
    """Refuse an object that is no streaming DataFrame, and engines that cannot have its batches."""
    if engine == "local":
        raise UnsupportedError("the local engine has no DataFrames of Spark: connect() with the Spark engine")
    if getattr(df, "isStreaming", None) is not True:
        raise TypeError(f"df must be a streaming DataFrame, as ctx.spark.readStream gives, not {shown(df)}")
    # By the name of its module: its class would have to be imported, and Spark Connect may not be installed.
    if type(df).__module__.startswith("pyspark.sql.connect"):
        raise UnsupportedError(
            "from_streaming_df() needs a session in this process: Spark Connect calls no function here"
        )


def seconds(value: Any, name: str) -> float:
    """Return a number of seconds, 0 or more, also of a timedelta."""
    from dstream.values import time as time_units

    return time_units.seconds(value, name)


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
        choice = getattr(options, argument)
        if choice is not None and not isinstance(choice, bool):
            raise TypeError(f"{argument} must be True or False, not {shown(choice)}")
    for argument in ("ttl", "max_idle"):
        seconds = getattr(options, argument)
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if seconds is not None and (not is_number or not seconds > 0):
            raise ValueError(f"{argument} must be a number of seconds above 0, not {shown(seconds)}")
