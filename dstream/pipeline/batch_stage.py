"""`BatchStage`: a stage of a pipeline through which bounded data flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from dstream.pipeline.peeking import peeked
from dstream.pipeline.reducing_stage import ReducingStage
from dstream.pipeline.stage_arguments import comes_later
from dstream.plan import PartitionBy, call_site
from dstream.plan.nodes_of_stages import Spread
from dstream.stream.stream_arguments import optional_function

__all__ = ["BatchStage"]

T = TypeVar("T")


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

    # For unbounded data

    def add_timestamps(self, fn: Callable[[T], Any] | None = None, allowed_lag: float = 0) -> NoReturn:
        """Refuse: timestamps are for unbounded data, which comes later.

        Raises:
            UnsupportedError: always.
        """
        raise comes_later("add_timestamps(...)")

    def to_stream_stage(self, *, timestamp: Callable[[T], Any] | None = None, allowed_lag: float = 0) -> NoReturn:
        """Refuse: a bounded source cannot be run as unbounded data yet.

        Raises:
            UnsupportedError: always.
        """
        raise comes_later("to_stream_stage(...)")

    def window(self, window: Any) -> NoReturn:
        """Refuse: windows of time are for unbounded data, which comes later; `chunked(n)` makes windows by count.

        Raises:
            UnsupportedError: always.
        """
        raise comes_later("window(...)")
