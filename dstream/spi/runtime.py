"""`Engine`, `Running` and `Runtime`: the execution of plans; `Service`: resources of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

from dstream.spi.sink import Collections
from dstream.values.user_functions import refuse_async, refuse_one_that_would_not_run, shown_function

__all__ = [
    "Engine",
    "EngineOfEpoch",
    "EnginesOfEpochs",
    "OpenedLater",
    "RunStatus",
    "Running",
    "Runtime",
    "Service",
    "SparkStatus",
]


class Running(Protocol):
    """One run of a plan, which `Engine.submit` made."""

    @property
    def status(self) -> RunStatus:
        """The status of the run."""
        ...

    def start(self) -> None:
        """Start the run in a separate thread; without this it runs in the thread that calls `result`."""
        ...

    def run_here(self) -> Any:
        """Run it in this thread, where another one can cancel it as if it had been started; return its result."""
        ...

    def result(self) -> Any:
        """Return the result of the run; block until it is complete.

        Raises:
            CancelledError: the run was cancelled.
            Exception: the exception of a function of the user's, or of the engine.
        """
        ...

    def cancel(self) -> None:
        """Cancel this run only; its output so far remains invisible.

        A run that has ended is unchanged. In this process, a run that was started, or runs by `run_here`, checks for
        cancellation before each item; a run in the thread that called `result` does not.
        """
        ...


RunStatus = Literal["waiting", "running", "done", "failed", "cancelled"]


class Engine(Protocol):
    """Runs plans."""

    @property
    def name(self) -> str:
        """The public name: `"local"`, `"spark"` or `"auto"`."""
        ...

    def submit(self, end: Any) -> Running:
        """Return a run of the plan that ends in `end`, which has not begun.

        The result of a `ToList` is a list, of a `Loop` an iterator, of `Partitions` a list of iterators, of a `Collect`
        the result of its collector, of a `Write` the receipts of its writer in encounter order, of `Columns` a
        `pyarrow.Table` or a table of the engine's own kind, of a `ForEachPartition` None, of `Several` ends a list of
        the results of these.

        Args:
            end: a `dstream.plan.operations.ends.End`, or `dstream.plan.operations.ends.Several`.

        Raises:
            UnsupportedError: the engine does not run such a plan. The result may raise it as well.
        """
        ...

    def data_frame(self, splits: Sequence[Any], schema: Any) -> Any:
        """Return a lazy table of the engine's own kind over splits with `read_arrow`, such as the splits of a map.

        Raises:
            UnsupportedError: the engine has no tables.
        """
        ...

    def cores(self) -> int:
        """Return how many tasks run at the same time; where that is not known yet, the engine starts."""
        ...

    def is_lost(self) -> bool:
        """Return whether the engine has lost its base, such as Java's process: another one has to be started."""
        ...

    def close(self) -> None:
        """Release the engine's resources; calling it again does nothing."""
        ...


EngineOfEpoch = Literal["inprocess", "spark"]
SparkStatus = Literal["stopped", "starting", "running", "absent"]


@runtime_checkable
class EnginesOfEpochs(Protocol):
    """An engine that runs each epoch of an unbounded job in this process or on Spark, depending on its plan."""

    @property
    def keeps_epochs_on_spark(self) -> bool:
        """Return whether epochs run on Spark unless a job requests another engine: Spark is a cluster."""
        ...

    def spark_status(self, *, start: bool) -> SparkStatus:
        """Return the status of Spark; `"absent"` if it cannot start.

        Args:
            start: a Spark that is stopped begins to start in the background.
        """
        ...

    def spark_start_seconds(self) -> float:
        """Return an estimate of the seconds that Spark takes to start on this machine; 0 while it runs."""
        ...

    @property
    def spark_failure(self) -> str:
        """The reason why Spark is absent; empty if it is not."""
        ...


class Runtime(Collections, Protocol):
    """A stream's view of its context: an engine, and the collections that sinks write into."""

    def check_open(self) -> None:
        """Refuse calls to a closed context.

        Raises:
            IllegalStateError: the context is closed.
        """
        ...

    def running_engine(self) -> Engine:
        """Return the engine, started if it was not.

        Raises:
            IllegalStateError: the context is closed.
            SetupError: the engine cannot start on this machine.
        """
        ...

    def engine_here(self) -> Engine:
        """Return an engine of this process, regardless of `running_engine`: for a small number of items in memory."""
        ...

    def stages(self, node: Any, into: Any) -> Any:
        """Return the stages that a plan would run as (`dstream.plan.Stages`); nothing runs or starts.

        Args:
            node: the last node of the plan.
            into: a `Collector`, a `Sink`, or None for a list of all items.
        """
        ...


S = TypeVar("S")


@dataclass(frozen=True, repr=False)
class Service(Generic[S]):
    """A shared object that stages use, such as a client of a server: created on the worker, closed last.

    Attributes:
        create: creates it; takes no argument.
        destroy: closes it at the end, also after a failure; None: nothing has to be closed.
        shared: one for each worker process and job; otherwise one for each task.

    Raises:
        TypeError: one of these is of another kind, or an async function.

    Example:
        >>> import io
        >>> Service(io.StringIO, io.StringIO.close)
        Service(StringIO, StringIO.close)
    """

    create: Callable[[], S]
    destroy: Callable[[S], object] | None = None
    shared: bool = True

    def __post_init__(self) -> None:
        if not callable(self.create):
            raise TypeError(f"Service: create must be a function, not {type(self.create).__name__}")
        if self.destroy is not None and not callable(self.destroy):
            raise TypeError(f"Service: destroy must be a function, not {type(self.destroy).__name__}")
        refuse_async(self.create, "Service: create")
        if self.destroy is not None:
            refuse_one_that_would_not_run(self.destroy, "Service: destroy")
        if not isinstance(self.shared, bool):
            raise TypeError(f"Service: shared must be True or False, not {type(self.shared).__name__}")

    def __repr__(self) -> str:
        given = [shown_function(each) for each in (self.create, self.destroy) if each is not None]
        return f"Service({', '.join([*given, *([] if self.shared else ['shared=False'])])})"


@runtime_checkable
class OpenedLater(Protocol):
    """A placeholder of a source or a service until a context exists, such as a map that is only known by name.

    It is sent and stored without one. `dstream.plan.walk.opened` replaces it by the source or the service.
    """

    def opened(self, context: Collections) -> Any:
        """Return the source or the service.

        Args:
            context: has the collections of the storage.
        """
        ...
