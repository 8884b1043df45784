"""`BatchStage`: a stage of a pipeline through which bounded data flow."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypeAlias, TypeVar

from dstream.pipeline.peeking import peeked
from dstream.pipeline.reducing_stage import ReducingStage
from dstream.pipeline.stage_arguments import needs_time
from dstream.pipeline.stream_stage import StreamStage
from dstream.pipeline.timestamping import check_that_it_runs_in_epochs
from dstream.plan import PartitionBy, call_site
from dstream.plan.nodes_of_stages import Spread
from dstream.spi.epochs import WatermarkPolicy
from dstream.spi.processor_suppliers import AnySupplier
from dstream.stream.stream_arguments import optional_function

__all__ = ["BatchStage"]

T = TypeVar("T")

Duration: TypeAlias = int | timedelta


class BatchStage(ReducingStage[T]):
    """Items on their way from a source that ends to a sink: what `pipeline.read_from(source)` returns.

    Each method adds a stage to the pipeline and returns it. Stages fork where several are attached to one: what they
    share is computed once. Nothing runs before the pipeline does, as a job: `ctx.new_job(pipeline)`. A stage has what
    streams have but for the operations that run them and the settings of a run.

    Example:
        >>> from sources import Items
        >>> from reducers import to_ilist
        >>> pipeline = Pipeline()
        >>> numbers = pipeline.read_from(Items([1, 2, 3, 4])).set_name("numbers")
        >>> numbers.filter(lambda n: n % 2 == 0).write_to(to_ilist("even"))
        <SinkStage 'write_to': to_ilist('even')>
        >>> numbers.map(str).write_to(to_ilist("texts")).name
        'write_to-2'
    """

    __slots__ = ()

    def peek(
        self,
        action: Callable[[T], object] | None = None,
        *,
        to_string: Callable[[T], object] | None = None,
        should_log: Callable[[T], object] | None = None,
    ) -> BatchStage[T]:
        """Log each item of this stage at the level INFO, to the logger `dstream.peek.<stage>`.

        A program that has set up no logging prints the lines to stderr.

        The items pass unchanged. It happens in the caller's process, once for each item that passed here, in encounter
        order, at the end of the job.

        Args:
            action: what to do with an item instead of logging it, as for streams.
            to_string: makes the text of an item; unset, `str`.
            should_log: says which items are logged; unset, all.

        Raises:
            TypeError: `action` stands beside one of the others.
        """
        return self._step("peek", peeked(self._record.node, action, to_string, should_log))

    def rebalance(self, key: Callable[[T], Any] | None = None) -> BatchStage[T]:
        """Spread the items over partitions of equal size; with a key, bring equal keys into one partition.

        Without a key the items keep their order. `set_local_parallelism(n)` says how many partitions there are; unset,
        the cores do.

        Args:
            key: gives the key of an item.
        """
        if optional_function(key, "key") is None:
            return self._step("rebalance", Spread(self._record.node, None, where=call_site()))
        return self._step("rebalance", PartitionBy(self._record.node, None, key, "rebalance", where=call_site()))

    def custom_transform(self, name: str, supplier: AnySupplier) -> BatchStage[Any]:
        """Let processors of your own make of the items what they like: the Core API as a step of a pipeline.

        Each item comes to any one of them; `set_local_parallelism(n)` says how many there are; unset, the cores do.
        What they emit has no order.

        Args:
            name: of the stage.
            supplier: a function that makes a `Processor`, such as a class of processors, or what
                `dstream.core.processors` has; or one of the suppliers.

        Raises:
            TypeError: an argument is of another kind; later, where an item is None.

        Example:
            >>> from dstream import Pipeline
            >>> from dstream.core import processors
            >>> from sources import Items
            >>> letters = Pipeline().read_from(Items("ab"))
            >>> letters.custom_transform("upper", processors.map(str.upper)).name
            'upper'
        """
        stage: BatchStage[Any] = self._transformed(name, supplier, "custom_transform")
        return stage

    # Run as a stream

    def add_timestamps(
        self,
        fn: Callable[[T], Any],
        allowed_lag: Duration = 0,
        policy: WatermarkPolicy | None = None,
        idle_timeout: float | timedelta = 60.0,
        drop_before: int | datetime | None = None,
    ) -> StreamStage[T]:
        """Say when each item happened, and run the source as a stream, of one partition that ends.

        At its end all windows close. Otherwise as `add_timestamps` of a stage without an end.

        Args:
            fn: gives the time of an item: milliseconds since 1970, or a datetime with a time zone.
            allowed_lag: how much older than the newest item one may be, in milliseconds or as a timedelta.
            policy: in place of a lag, how far time has come.
            idle_timeout: in seconds; 0: no partition is ever idle.
            drop_before: items of before this time go no further.

        Raises:
            TypeError: an argument is of another kind, or a policy stands beside a lag.
            UnsupportedError: something stands before that does not take one item at a time.
        """
        return self._as_stream().add_timestamps(fn, allowed_lag, policy, idle_timeout, drop_before)

    def to_stream_stage(
        self, *, timestamp: Callable[[T], Any] | None = None, allowed_lag: Duration = 0
    ) -> StreamStage[T]:
        """Run the source as a stream, of one partition that ends: for tests, and for old data that a stream goes on.

        Args:
            timestamp: gives the time of an item, as for `add_timestamps`; unset, items have none.
            allowed_lag: as for `add_timestamps`.

        Raises:
            UnsupportedError: something stands before that does not take one item at a time.
        """
        stream = self._as_stream()
        if timestamp is not None:
            return stream.add_timestamps(timestamp, allowed_lag)
        check_that_it_runs_in_epochs(self._record.node, "to_stream_stage()")
        return stream

    def _as_stream(self) -> StreamStage[T]:
        return StreamStage(self._pipeline, self._record)

    def window(self, window: Any, late_to: Any = None) -> NoReturn:
        """Refuse: items that end have no time; `chunked(n)` makes windows by count.

        Raises:
            UnsupportedError: always.
        """
        raise needs_time("window(...)")
