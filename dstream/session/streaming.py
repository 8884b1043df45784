"""`StreamingFrame`: a DataFrame of Spark's Structured Streaming, whose batches pass through streams into sinks.

Spark records what was read, and dstream what was written: a batch is an epoch of a job whose name is the id of the
query, so a sink that has committed a batch ignores it when Spark replays it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dstream.arguments import kind_of, optional_running, running_function
from dstream.base.functions import refuse_awaitable
from dstream.errors import UnsupportedError
from dstream.failures import shown
from dstream.pipeline.arguments import sink_of
from dstream.plan import explained
from dstream.spi import Sink
from dstream.stream import Stream
from dstream.stream.base import BaseStream
from dstream.stream.runtime import write

if TYPE_CHECKING:
    from dstream.session.context import Context

__all__ = ["StreamingFrame", "check_streams"]

T = TypeVar("T")


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


class StreamingFrame(Generic[T]):
    """The rows of a streaming DataFrame; `ctx.from_streaming_df(df)` makes it. Nothing runs before a sink is passed.

    What runs is a query of Spark: its `StreamingQuery` is returned, which is awaited, watched and stopped as any other.
    An exception stops it, and `awaitTermination()` raises what Spark makes of it.
    """

    def __init__(self, context: Context, df: Any, kind: type[T] | None) -> None:
        self._context = context
        self._df = df
        self._kind = kind

    def collect(
        self,
        sink: Sink[Any, Any],
        through: Callable[[Stream[T]], Any] | None = None,
        *,
        checkpoint: str | None = None,
        every: float | None = None,
        until_now: bool = False,
    ) -> Any:
        """Write each batch into a sink, and return the query, which runs from now on.

        **Guarantee**: exactly once, also across programs that were killed, if the checkpoint is the same and the
        sink commits an epoch once, as `to_imap`, `to_ilist`, `to_files` and `to_sql` do.

        Args:
            sink: receives the results of `through`.
            through: takes the stream of the rows of a batch, and returns a stream. Counts and sorts apply within one
                batch.
            checkpoint: a folder or URL where Spark stores its progress; unset, the query starts from the beginning.
            every: the seconds between two batches; unset, each follows the one before.
            until_now: the query ends after the data that is available now.

        Raises:
            TypeError: `sink` is no sink, or `through` no function that returns a stream.
        """
        target, steps = sink_of(sink), optional_running(through, "through") or _as_it_is

        def take(query: str, rows: Stream[T], number: int) -> None:
            made = steps(rows)
            if not isinstance(made, BaseStream):
                raise TypeError(f"through must return a stream, not {kind_of(made)}")
            with explained(made._node, "collect"):
                # Spark counts batches from 0, and epochs begin at 1.
                write(self._context, made._node, target, self._context.running_engine, f"query-{query}", number + 1)

        return self._started(take, checkpoint, every, until_now)

    def for_each_batch(
        self,
        fn: Callable[[Stream[T], int], object],
        *,
        checkpoint: str | None = None,
        every: float | None = None,
        until_now: bool = False,
    ) -> Any:
        """Call a function with the stream of the rows of each batch and its number, and return the query.

        **Guarantee**: at least once: a batch is delivered again, with the same number, if the program dies before Spark
        has noted that it was done.

        Args:
            fn: takes the stream and the number, in this process.
            checkpoint: as for `collect`.
            every: as for `collect`.
            until_now: as for `collect`.

        Raises:
            TypeError: `fn` is no function, or one whose call does not run its lines.
        """
        running_function(fn, "fn")
        return self._started(
            lambda query, rows, number: refuse_awaitable(fn(rows, number)), checkpoint, every, until_now
        )

    def _started(
        self, take: Callable[[str, Stream[T], int], object], checkpoint: str | None, every: float | None, is_short: bool
    ) -> Any:
        queries: list[Any] = []
        is_started = threading.Event()

        def batch(df: Any, number: int) -> None:
            is_started.wait()  # The id of a query that is new is known when it has started, and Spark begins at once.
            take(queries[0].id, self._rows(df), number)

        writer = self._df.writeStream.foreachBatch(batch)
        if checkpoint is not None:
            writer = writer.option("checkpointLocation", str(checkpoint))
        if is_short:
            writer = writer.trigger(availableNow=True)
        elif every is not None:
            writer = writer.trigger(processingTime=f"{int(every * 1000)} milliseconds")
        queries.append(writer.start())
        is_started.set()
        return queries[0]

    def _rows(self, df: Any) -> Stream[Any]:
        return self._context.from_df(df) if self._kind is None else self._context.from_df(df, self._kind)


def _as_it_is(rows: Stream[T]) -> Stream[T]:
    return rows
