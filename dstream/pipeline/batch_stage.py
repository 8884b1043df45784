"""`BatchStage`: a stage of a pipeline through which bounded data flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from dstream.pipeline.any_stage import AnyStage
from dstream.pipeline.keyed_stage import KeyedStage
from dstream.pipeline.peeking import Logged
from dstream.pipeline.reducing_stage import ReducingStage
from dstream.pipeline.sink_stage import SinkStage
from dstream.pipeline.stage_arguments import comes_later, sink_of
from dstream.pipeline.stage_record import StageRecord
from dstream.plan import PartitionBy, Peek, call_site
from dstream.plan.nodes_of_stages import Spread
from dstream.spi import Sink
from dstream.stream.stream_arguments import function, kind_of, optional_function, running

__all__ = ["BatchStage"]

T = TypeVar("T")
S = TypeVar("S", bound="AnyStage | KeyedStage[Any, Any]")


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
        if action is not None and (to_string is not None or should_log is not None):
            raise TypeError("peek() takes an action, or to_string= and should_log= of what it logs itself, not both")
        if action is not None:
            return self._step("peek", Peek(self._record.node, running(action, "action"), where=call_site()))
        text = str if to_string is None else running(to_string, "to_string")
        logged = Logged(text, None if should_log is None else running(should_log, "should_log"))
        return self._step("peek", Peek(self._record.node, logged, logged.given(), where=call_site()))

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

    def apply(self, fn: Callable[[BatchStage[T]], S]) -> S:
        """Return `fn(self)`: a part of a pipeline under a name of its own.

        Args:
            fn: takes this stage and returns one of the same pipeline.

        Raises:
            IllegalStateError: the stage that `fn` returns belongs to another pipeline.
            TypeError: `fn` returns no stage.
        """
        made = function(fn, "fn")(self)
        if not isinstance(made, AnyStage | KeyedStage):
            raise TypeError(f"fn must return a stage, not {kind_of(made)}")
        self._check_same_pipeline(made._stage if isinstance(made, KeyedStage) else made, "apply")
        return made

    def write_to(self, sink: Sink[T, Any]) -> SinkStage:
        """End this branch in a sink, such as `to_imap(...)`; the items are there when the job has ended.

        A job of several sinks writes all of them or none. Each sink object can be used once.

        Args:
            sink: what streams call a reducer.

        Raises:
            TypeError: `sink` is none.
        """
        record = StageRecord("write_to", self._record.node, (self._record,), call_site(), sink=sink_of(sink))
        self._pipeline._add(record)
        return SinkStage(self._pipeline, record)

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
