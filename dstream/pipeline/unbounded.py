"""`StreamStage`: a stage of a pipeline with unbounded data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from dstream.pipeline import stateful_nodes
from dstream.pipeline.arguments import not_of_streams, sink_of
from dstream.pipeline.joins import JoiningStage
from dstream.pipeline.keyed import KeyedStreamStage
from dstream.pipeline.operations import LazyStage
from dstream.pipeline.stages import B, Endless, Unbounded
from dstream.pipeline.timestamps import check_timestamps, ingested, natively_stamped
from dstream.pipeline.windows import WindowedStage
from dstream.plan import here
from dstream.plan.operations.streams import Spread
from dstream.spi import Sink
from dstream.stream.keyed import window_of

if TYPE_CHECKING:
    from dstream.pipeline.bounded import Stage
    from dstream.windows import Window

__all__ = ["StreamStage", "UnboundedStage"]


T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")

Duration: TypeAlias = int | timedelta


class UnboundedStage(JoiningStage[T, B], LazyStage[T, B]):
    """A stage with the operations that only items without an end have."""

    __slots__ = ()

    _has_no_end = True
    _keyed = KeyedStreamStage

    def native_timestamps(
        self: Endless[T], allowed_lag: Duration = 0, drop_before: int | datetime | None = None
    ) -> StreamStage[T]:
        """Take the time of each item from the source, such as Kafka; directly after `read_from`.

        Args:
            allowed_lag: as for `add_timestamps`.
            drop_before: as for `add_timestamps`.

        Raises:
            IllegalStateError: a step is between, or the items have timestamps.
            UnsupportedError: the source has none.
        """
        return self._step("native_timestamps", natively_stamped(self._record.node, allowed_lag, drop_before))

    def ingestion_timestamps(self: Endless[T]) -> StreamStage[T]:
        """Take the reading of the clock with which an epoch starts for the time of its items.

        Raises:
            IllegalStateError: the items have timestamps.
            UnsupportedError: a step before moves items, such as a join.
        """
        return self._step("ingestion_timestamps", ingested(self._record.node))

    def window(self: Endless[T], window: Window, late_to: Sink[T, Any] | None = None) -> WindowedStage[T]:
        """Group the items by windows of time; `aggregate(op)` makes a result of each.

        Args:
            window: `tumbling(size)`, `sliding(size, by=...)` or `session(timeout)` of `dstream.windows`.
            late_to: a sink for items that arrive when their window has closed; unset, they are counted and dropped.

        Raises:
            IllegalStateError: the items have no timestamps.
            TypeError: an argument is of another kind.
        """
        found = window_of(window)
        # At the call, where the message can name the line, and not when the job runs.
        check_timestamps(self._record.node, f"window({found!r})")
        return WindowedStage(self, found, None if late_to is None else sink_of(late_to))

    def join_within(
        self: Endless[T],
        other: StreamStage[U],
        *,
        on: tuple[Callable[[T], K], Callable[[U], K]] | Callable[[T | U], K],
        before: Duration = 0,
        after: Duration = 0,
    ) -> StreamStage[tuple[T, U]]:
        """Pair each item with the items of `other` that have its key and are within a time interval around it.

        The interval reaches from `before` earlier than the item of this stage to `after` later, both inclusive. A pair
        has the later timestamp of its two items. Items older than the watermarks of both sides are late, and dropped.

        Args:
            other: another stage of this pipeline without an end, with timestamps.
            on: the key function of both sides, or one for each: `(of_left, of_right)`.
            before: in milliseconds or as a timedelta.
            after: in milliseconds or as a timedelta.

        Raises:
            IllegalStateError: a side has no timestamps, or `other` belongs to another pipeline.
            TypeError: an argument is of another kind.
        """
        stage = self._unending(other, "join_within")
        node = stateful_nodes.joined_within(self._record.node, stage._record.node, on, before, after)
        return self._step("join_within", node, [stage])

    def _as_stream(self) -> StreamStage[T]:
        return cast("StreamStage[T]", self)


if TYPE_CHECKING:
    StreamStage: TypeAlias = Stage[T, Unbounded]
else:

    class StreamStage(UnboundedStage[T, Unbounded]):
        """A stage of unbounded input: the result of `pipeline.read_from(source)` for such a source.

        A job of such a pipeline is a sequence of epochs, each of which processes the items that have arrived. Steps
        that take one item at a time are the same as in a `BatchStage`. Operations that need an end apply to windows,
        once items have timestamps: `add_timestamps(fn).window(tumbling(1000)).aggregate(op)`.

        Example:
            >>> from collectors import counting
            >>> from dstream.windows import tumbling
            >>> from reducers import to_ilist
            >>> from sources import watch_files
            >>> pipeline = Pipeline()
            >>> lines = pipeline.read_from(watch_files("logs")).ingestion_timestamps()
            >>> lines.window(tumbling(1000)).aggregate(counting()).write_to(to_ilist("lines per second"))
            <SinkStage 'write_to': to_ilist('lines per second')>
        """

        __slots__ = ()

        def rebalance(self) -> StreamStage[T]:
            """Spread the items over partitions of equal size, if the pipeline has no timestamps and no states.

            With timestamps or states, items are not moved, since a watermark cannot pass the step that spreads them.
            """
            return self._step("rebalance", Spread(self._record.node, None, step=here()))

        def __getattr__(self, name: str) -> Any:
            return not_of_streams(type(self), name)
