"""`Port`: the contract of a Spark session with the engine.

There are two forms: `ClassicPort` for a session in this process, which Python reaches through Java, and `ConnectPort`
for one on a server, which is reached through Spark Connect. What only one of them can do is said where it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

    from dstream.engine.tasks.process import Payloads

__all__ = ["ArrowFunction", "HowFar", "Port", "SparkJobs"]


ArrowFunction = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


class HowFar(NamedTuple):
    """The progress of a job: pairs of a number and the number of all, of tasks done, and of the stage that runs."""

    tasks: tuple[int, int]
    stage: tuple[int, int]


class SparkJobs(Protocol):
    """The Spark jobs of one terminal operation, known by a tag."""

    def named(self, description: str) -> AbstractContextManager[None]:
        """Attribute the jobs that start in this thread meanwhile to this operation.

        The user's own properties of jobs in the thread are restored at the end.
        """
        ...

    def cancel(self) -> None:
        """Cancel these jobs only, also one that is about to begin."""
        ...

    def how_far(self) -> HowFar | None:
        """Return how far the newest job is; None if none runs, or none that is known yet."""
        ...


class Port(Protocol):
    """A Spark session.

    Attributes:
        session: the session itself.
    """

    session: SparkSession

    def cores(self) -> int:
        """Return how many tasks run at the same time."""
        ...

    def java_memory(self) -> int:
        """Return how many bytes of memory a process of Java has, of those that rows go through the smallest one."""
        ...

    def is_running(self) -> bool:
        """Return whether Spark is running, as far as this process can check it."""
        ...

    def is_alive(self) -> bool:
        """Return whether Spark runs and answers, which is asked of it."""
        ...

    def with_settings(self, settings: Mapping[str, str]) -> Port:
        """Return a port to a session that differs in these settings, which no other run sees."""
        ...

    def workers_see_files(self) -> bool:
        """Return whether workers see the files of this process."""
        ...

    def reads(self, frame: DataFrame) -> bool:
        """Return whether the session may read `frame`, which may be of another session."""
        ...

    def column(self, name: str) -> Column:
        """Return a column by its name, for expressions."""
        ...

    def mapped(
        self, frame: DataFrame, function: ArrowFunction, schema: StructType | str, names: Sequence[str] | None = None
    ) -> DataFrame:
        """Return the results of `function` for each partition of `frame`, on an interpreter with the user's modules.

        Args:
            frame: the input.
            function: takes the Arrow batches of a partition, and yields others.
            schema: the columns of its results.
            names: the columns of `frame`, if known, which avoids a request to Spark.
        """
        ...

    def placed(self, frame: DataFrame, partitions: int, place: Column) -> DataFrame:
        """Return the rows of `frame`, each in the partition whose number is in `place`.

        Args:
            frame: the rows.
            partitions: the number of partitions.
            place: an int of each row, from 0 to `partitions` - 1.
        """
        ...

    def frame_of(self, table: pa.Table) -> DataFrame:
        """Return a frame of the rows of a table."""
        ...

    def batches(self, frame: DataFrame, stage: str | None = None) -> list[pa.RecordBatch]:
        """Run a job and return the Arrow batches of `frame`, in order.

        Args:
            frame: the frame to compute.
            stage: the pickled stage that the job carries for its tasks.
        """
        ...

    def may_carry(self) -> bool:
        """Return whether a job, instead of its plan, may carry the last pickle of this thread."""
        ...

    def local_folder(self) -> str | None:
        """Return a folder for temporary files that all workers and this process see; None if there is none."""
        ...

    def pinned(self, frame: DataFrame) -> DataFrame:
        """Return `frame` so that it is computed once, by the next job, and stored where it was computed."""
        ...

    def partitions(self, pinned: DataFrame) -> int:
        """Return how many partitions the rows of a pinned frame have."""
        ...

    def release(self, pinned: DataFrame) -> None:
        """Release Spark's copy of a pinned frame, if it still runs."""
        ...

    def in_turn(self, frame: DataFrame) -> Iterator[Row]:
        """Yield the rows of `frame` partition by partition, the next one computed while this one is read.

        The job, or the first of them, begins before this returns.
        """
        ...

    def jobs(self, tag: str) -> SparkJobs:
        """Return the jobs that are known by `tag`."""
        ...

    def where_workers_connect(self) -> tuple[str, str] | None:
        """Return how workers call this machine, and the address on which to listen; None if they do not reach it."""
        ...

    def send_to_all(self, name: str, payloads: Sequence[Any], holder: object) -> Payloads:
        """Send many bytes to all workers, for as long as `holder` lives or longer."""
        ...

    def sums(self, adding: Any) -> Any:
        """Return an accumulator of numbers by key, which `adding`, an `AccumulatorParam`, adds; None if it has none."""
        ...
