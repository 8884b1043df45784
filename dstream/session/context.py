"""`Context`: an engine, a storage, and the streams and collections on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, get_args, overload

from dstream.arguments import check_options, checked_source
from dstream.base.environment import inside_a_worker
from dstream.base.showing import add_note
from dstream.base.urls import shown_url, without_secrets
from dstream.errors import IllegalStateError, SerializationError, UnsupportedError
from dstream.failures import shown
from dstream.plan import Node
from dstream.session.contexts import contexts, refused_on_a_worker
from dstream.spi import Engine, Kind, Options, ProcessorSource, Source, Storage
from dstream.stream import Stream
from dstream.stream.objects import from_iterable, read

if TYPE_CHECKING:
    from dstream.collections import IStreamCache, IStreamList, IStreamMap
    from dstream.collections.counter import IStreamCounter
    from dstream.collections.queue import IStreamQueue
    from dstream.collections.set import IStreamSet
    from dstream.jobs import Job, JobConfig
    from dstream.jobs.registry import Jobs, Planned
    from dstream.jobs.snapshots import Snapshot, Snapshots
    from dstream.pipeline.plan import PipelinePlan
    from dstream.plan.stages import Stages
    from dstream.session.streaming import StreamingFrame

__all__ = ["CollectionName", "Context"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class CollectionName(NamedTuple):
    """The kind and the name by which a collection is found in its storage."""

    kind: Kind
    name: str


class Context:
    """An engine and the streams on it. Make one with `connect()`; close it, or use it in a `with` block.

    Nothing starts before the first terminal operation needs it, except with `connect(warm=True)`.
    """

    def __init__(
        self,
        start: Callable[[], Engine],
        engine_name: str,
        open_storage: Callable[[], Storage],
        stages: Callable[[Any, Any], Stages],
        shown: str = "",
        open_other: Callable[[str], Storage] | None = None,
        jobs: JobConfig | None = None,
        end_start: Callable[[], None] | None = None,
    ) -> None:
        self._end_start = end_start
        self._of_all_jobs = jobs
        self._start = start
        self._shown = shown
        self._stages = stages
        self._engine_name = engine_name
        self._engine: Engine | None = None
        self._open_storage = open_storage
        self._storage: Storage | None = None
        self._open_other = open_other
        self._others: dict[str, Context] = {}
        self._jobs: Jobs | None = None
        self._is_closed = False
        self._beside: Context | None = None
        from dstream.base.threads import RenewedLock  # lazily: a program without a context needs none

        self._lock = RenewedLock()

    @property
    def engine(self) -> str:
        """The name of the engine: `"spark"`, `"local"` or `"auto"`."""
        return self._engine_name

    @property
    def spark(self) -> Any:
        """The Spark session, started if it was not.

        Raises:
            UnsupportedError: this context has the local engine.
        """
        engine = self.running_engine()
        session = getattr(engine, "spark", None)
        if session is None:
            raise UnsupportedError(
                f"the {self._engine_name} engine has no Spark session; connect(engine='spark') gives one"
            )
        return session

    def stream(self, iterable: Iterable[T], partitions: int | None = None) -> Stream[T]:
        """Return a stream of the items of `iterable` on this context; see `Stream.from_iterable`.

        Example:
            >>> with connect(engine="local") as ctx:
            ...     ctx.stream([1, 2, 3]).map(lambda n: n * n).to_list()
            [1, 4, 9]
        """
        self.check_open()
        return from_iterable(iterable, partitions, self)

    def read(self, source: Source[T] | ProcessorSource[T]) -> Stream[T]:
        """Return a stream of the items of `source` on this context.

        Raises:
            TypeError: `source` is no source.
            UnsupportedError: it has no end, as `watch_files(...)`.
            SourceError: it names a collection that is not there.
        """
        self.check_open()
        return read(checked_source(source, self), f"read({shown(source)})", self)

    @overload
    def from_df(self, df: Any) -> Stream[Any]: ...

    @overload
    def from_df(self, df: Any, kind: type[T]) -> Stream[T]: ...

    def from_df(self, df: Any, kind: type[Any] | None = None) -> Stream[Any]:
        """Return a stream of the rows of a table.

        A pandas DataFrame, an Arrow table, or anything else with `__arrow_c_stream__`, such as a Polars
        DataFrame, is taken as it is now. Its rows are dictionaries, in order, on every engine; a missing value of
        pandas (NaN, NaT, NA) is None, and an index is left out: `reset_index()` makes columns of it.

        The rows of a Spark DataFrame are unordered, with timestamps in UTC; Spark runs it when the stream needs it.

        Args:
            df: the DataFrame or table; a Spark DataFrame must belong to this context's session, `ctx.spark`.
            kind: a dataclass, a named tuple, a `TypedDict` or a pydantic model that each row becomes by the names and
                the types of its fields, nested ones too, as in `parquet_rows`; fields with a default need no column.
                Unset, items are dictionaries, in which maps of Arrow are lists of pairs, or, for a Spark DataFrame,
                `pyspark.sql.Row`.

        Raises:
            TypeError: `df` is no table, or has no column for a field of `kind`; a field is of a type that no value of a
                table becomes.
            ValueError: two columns have one name.
            UnsupportedError: it is a Spark DataFrame, and the engine is not Spark.
            SourceError: when it runs: a row does not become a `kind`; the message names the field and the row.

        Example:
            >>> import pandas
            >>> frame = pandas.DataFrame({"ship": ["Pequod", "Rachel"], "crew": [30, 26]})
            >>> with connect(engine="local") as ctx:
            ...     ctx.from_df(frame).pluck("ship").to_list()
            ['Pequod', 'Rachel']
        """
        from dstream.session import dataframes  # lazily: few programs have a table

        self.check_open()
        if dataframes.is_table_here(df):
            return read(dataframes.table_rows(df, kind), dataframes.from_df_label(df, kind), self)
        return Stream(dataframes.table_node(df, kind, self._engine_name), self)

    @overload
    def from_streaming_df(self, df: Any) -> StreamingFrame[Any]: ...

    @overload
    def from_streaming_df(self, df: Any, kind: type[T]) -> StreamingFrame[T]: ...

    def from_streaming_df(self, df: Any, kind: type[Any] | None = None) -> StreamingFrame[Any]:
        """Read the batches of a streaming DataFrame of Spark, for data that Structured Streaming alone can read.

        `.collect(sink, through=fn, checkpoint=folder)` writes the result of a function for each batch into a sink,
        exactly once. Define windows and states on the DataFrame; for dstream's own, read with a source and submit a
        job.

        Args:
            df: of `ctx.spark.readStream`, as it is or after operations of Spark.
            kind: a class that rows become, as in `from_df`.

        Raises:
            TypeError: `df` is no streaming DataFrame, or has no column for a field of `kind`.
            UnsupportedError: the engine is not Spark, or the session one of Spark Connect, whose server calls no
                function of this process.
        """
        from dstream.session.dataframes import items_of_columns
        from dstream.session.streaming import StreamingFrame, check_streams  # lazily: few programs need it

        self.check_open()
        check_streams(df, self._engine_name)
        items_of_columns(df, kind)
        return StreamingFrame(self, df, kind)

    @overload
    def get_map(
        self,
        name: str,
        *,
        key_type: type[K],
        value_type: type[V],
        buckets: int | None = None,
        journal: bool | None = None,
        strict: bool | None = None,
    ) -> IStreamMap[K, V]: ...

    @overload
    def get_map(
        self,
        name: str,
        *,
        key_type: Any = None,
        value_type: Any = None,
        buckets: int | None = None,
        journal: bool | None = None,
        strict: bool | None = None,
    ) -> IStreamMap[Any, Any]: ...

    def get_map(
        self,
        name: str,
        *,
        key_type: Any = None,
        value_type: Any = None,
        buckets: int | None = None,
        journal: bool | None = None,
        strict: bool | None = None,
    ) -> IStreamMap[Any, Any]:
        """Return the distributed map `name`, made if there is none.

        Args:
            name: its name; a list or a cache may have the same.
            key_type: the type of its keys, such as `str`; unset, the first commit decides.
            value_type: the type of its values, such as `int`, `list[float]` or a dataclass; unset, the first
                commit decides. Values of other types are stored too, unless `strict`.
            buckets: the number of parts into which its entries are divided, which bounds the number of concurrent tasks
                that read or write it; 16 by default, at most 65536.
            journal: record every change with its old value, for `journal()`.
            strict: refuse keys and values of other types.

        Raises:
            ValueError: it exists with other options; the message names both.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages", key_type=str, value_type=int)
            ...     ages["Ada"] = 36
            ...     ages["Ada"]
            36
        """
        options = Options(key_type, value_type, buckets, journal, strict)
        found: IStreamMap[Any, Any] = self._handle("map", self._created("map", name, options))
        return found

    @overload
    def get_list(self, name: str, *, value_type: type[T], strict: bool | None = None) -> IStreamList[T]: ...

    @overload
    def get_list(self, name: str, *, value_type: Any = None, strict: bool | None = None) -> IStreamList[Any]: ...

    def get_list(self, name: str, *, value_type: Any = None, strict: bool | None = None) -> IStreamList[Any]:
        """Return the distributed list `name`, made if there is none; arguments as for `get_map`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     names = ctx.get_list("names")
            ...     names.extend(["Ada", "Grace"])
            ...     names[-1]
            'Grace'
        """
        options = Options(value_type=value_type, strict=strict)
        found: IStreamList[Any] = self._handle("list", self._created("list", name, options))
        return found

    @overload
    def get_cache(
        self,
        name: str,
        *,
        key_type: type[K],
        value_type: type[V],
        ttl: float | None = None,
        max_idle: float | None = None,
        buckets: int | None = None,
        journal: bool | None = None,
        strict: bool | None = None,
    ) -> IStreamCache[K, V]: ...

    @overload
    def get_cache(
        self,
        name: str,
        *,
        key_type: Any = None,
        value_type: Any = None,
        ttl: float | None = None,
        max_idle: float | None = None,
        buckets: int | None = None,
        journal: bool | None = None,
        strict: bool | None = None,
    ) -> IStreamCache[Any, Any]: ...

    def get_cache(
        self,
        name: str,
        *,
        key_type: Any = None,
        value_type: Any = None,
        ttl: float | None = None,
        max_idle: float | None = None,
        buckets: int | None = None,
        journal: bool | None = None,
        strict: bool | None = None,
    ) -> IStreamCache[Any, Any]:
        """Return the cache `name`; `ttl` or `max_idle` configures it, made if there is none.

        Args:
            name: its name.
            key_type: as for `get_map`.
            value_type: as for `get_map`.
            ttl: seconds after its last write until an entry expires.
            max_idle: seconds after its last use until an entry expires.
            buckets: as for `get_map`.
            journal: as for `get_map`.
            strict: as for `get_map`.

        Raises:
            CacheNotExistsError: it was never configured, and neither `ttl` nor `max_idle` is passed.
            ValueError: it exists with other options; the message names both.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     sessions = ctx.get_cache("sessions", ttl=1800)
            ...     sessions["Ada"] = "token"
            ...     ctx.get_cache("sessions")["Ada"]
            'token'
        """
        options = Options(key_type, value_type, buckets, journal, strict, ttl, max_idle)
        check_options(name, options)
        from dstream.collections.cache import cache_store  # lazily: few programs have a cache

        found: IStreamCache[Any, Any] = self._handle("cache", cache_store(self.running_storage(), name, options))
        return found

    @overload
    def get_set(
        self, name: str, *, value_type: type[T], buckets: int | None = None, strict: bool | None = None
    ) -> IStreamSet[T]: ...

    @overload
    def get_set(
        self, name: str, *, value_type: Any = None, buckets: int | None = None, strict: bool | None = None
    ) -> IStreamSet[Any]: ...

    def get_set(
        self, name: str, *, value_type: Any = None, buckets: int | None = None, strict: bool | None = None
    ) -> IStreamSet[Any]:
        """Return the distributed set `name`, made if there is none; arguments as for `get_map`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     names = ctx.get_set("names")
            ...     names.update(["Ada", "Grace", "Ada"])
            ...     len(names)
            2
        """
        options = Options(key_type=value_type, value_type=bool, buckets=buckets, strict=strict)
        found: IStreamSet[Any] = self._handle("set", self._created("set", name, options))
        return found

    def get_counter(self, name: str) -> IStreamCounter:
        """Return the distributed counter `name`, made if there is none: a number that many processes add to.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ctx.get_counter("visits").add(3)
            3
        """
        options = Options(key_type=str, value_type=int, buckets=1)
        found: IStreamCounter = self._handle("counter", self._created("counter", name, options))
        return found

    def get_queue(self, name: str) -> IStreamQueue[Any]:
        """Return the distributed queue `name`, made if there is none: many processes put and take items.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ctx.get_queue("jobs").put("index")
            ...     ctx.get_queue("jobs").take()
            'index'
        """
        options = Options(key_type=int, value_type=tuple, buckets=1)  # A commit then writes one file.
        found: IStreamQueue[Any] = self._handle("queue", self._created("queue", name, options))
        return found

    def new_job(
        self,
        pipeline: Planned | PipelinePlan,
        *,
        name: str | None = None,
        config: JobConfig | None = None,
        afresh: bool = False,
    ) -> Job:
        """Submit a pipeline: check it, register it in the storage, start it in the background, and return its job.

        A job of that name whose driver is gone is resumed, and so is one that failed while its sinks published: if it
        had begun to publish, the rest is published and nothing is read, which is logged; otherwise the pipeline runs
        again from its sources. Its sinks contain one copy in either case.

        Args:
            pipeline: what runs; it may be changed and submitted again afterwards.
            name: the name of the job; `config` may contain it as well.
            config: the options of the job; unset fields are taken from `connect(job=)` and the file of settings.
            afresh: whether to forget such a job, and begin with its sources: sinks that have published will contain a
                second copy.

        Raises:
            JobExistsError: a job of that name is running already.
            IllegalStateError: a job of that name has still to publish the output of another pipeline.
            TypeError: an argument is of another type.
            ValueError: the pipeline has no sink, or the job two names.
        """
        return self._jobs_here().submit(pipeline, name, config, "new_job", afresh=afresh)

    def new_job_if_absent(
        self, pipeline: Planned | PipelinePlan, *, name: str | None = None, config: JobConfig | None = None
    ) -> Job:
        """Submit a job as `new_job` does, unless a job of that name is running: return that one, with any pipeline."""
        return self._jobs_here().submit(pipeline, name, config, "new_job_if_absent")

    def jobs(self, name: str | None = None) -> list[Job]:
        """Return the jobs of this storage, or only those with a name, newest first: also ended ones, of all processes.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ctx.jobs()
            []
        """
        return self._jobs_here().all(name)

    def job(self, name_or_id: str) -> Job | None:
        """Return the latest job of a name, or the one of an id; None if there is none.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ctx.job("sales") is None
            True
        """
        return self._jobs_here().find(name_or_id)

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots that jobs have exported into this storage, newest first: `job.export_snapshot(name)`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ctx.snapshots()
            []
        """
        return self._snapshots().all()

    def remove_snapshot(self, name: str) -> bool:
        """Remove an exported snapshot; return False if there is none of that name.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ctx.remove_snapshot("before the change")
            False
        """
        return self._snapshots().remove(name)

    def _snapshots(self) -> Snapshots:
        self.running_storage()
        from dstream.jobs.snapshots import Snapshots  # lazily: few programs export jobs

        return Snapshots(self)

    def elsewhere(self, storage: str) -> Context:
        """Return a context on the same engine with the collections of another storage; it is closed with this one.

        Args:
            storage: a folder or a URL, as for `connect`.

        Raises:
            IllegalStateError: this context is closed.
            ValueError: the URL is not that of a storage.

        Example:
            >>> import tempfile
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ctx.elsewhere(tempfile.mkdtemp()).get_list("names").append("Ada")
            ...     ctx.collections()
            []
        """
        if not isinstance(storage, str):
            raise TypeError(f"storage must be a str, not {type(storage).__name__}")
        opening = self._open_other
        if opening is None:
            raise UnsupportedError("this context opens no other storage")
        with self._lock:
            self.check_open()
            if storage not in self._others:
                shown = f", storage {shown_url(storage)}"
                other = Context(
                    self.running_engine, self._engine_name, lambda: opening(storage), self._stages, shown, opening
                )
                other._beside = self
                self._others[storage] = other
            return self._others[storage]

    def existing(self, kind: Kind, name: str) -> Any:
        """Return the collection of that kind and name, or None if there is none: it makes no collection.

        Args:
            kind: `"map"`, `"list"`, `"cache"`, `"set"`, `"counter"` or `"queue"`.
            name: its name.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ctx.get_list("names").append("Ada")
            ...     ctx.existing("list", "names"), ctx.existing("map", "names")
            (IStreamList('names', 1 item, str: ['Ada']), None)
        """
        if kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {', '.join(map(repr, get_args(Kind)))}, not {shown(kind)}")
        check_options(name, Options())
        store = self.running_storage().open(kind, name, Options())
        return None if store is None else self._handle(kind, store)

    def collections(self) -> list[CollectionName]:
        """Return the kind and the name of every collection in the storage, sorted.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ctx.get_list("names").append("Ada")
            ...     ctx.collections()
            [CollectionName(kind='list', name='names')]
        """
        return [CollectionName(kind, name) for kind, name in self.running_storage().names()]

    def vacuum(self, older_than: float | timedelta = 24 * 60 * 60.0) -> int:
        """Remove from the whole storage data that no reader can need any more; return the number of pieces.

        That is what `vacuum()` of each collection removes, and the files of collections that were destroyed.
        Handles to those still raise that they were destroyed.

        Args:
            older_than: seconds, or a timedelta; data that a reader which started less than this ago may need is
                retained.

        Raises:
            TypeError, ValueError: `older_than` is neither; it is negative.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ctx.get_list("names").destroy()
            ...     ctx.vacuum()
            0
        """
        from dstream.values.time import seconds  # lazily: few programs have durations

        return self.running_storage().vacuum(seconds(older_than, "older_than"))

    def check_open(self) -> None:
        """Refuse calls to a closed context; its streams and collections call this.

        Raises:
            IllegalStateError: this context is closed.
        """
        if self._is_closed:
            raise IllegalStateError("this context is closed; connect() again")

    def running_storage(self) -> Storage:
        """Return the storage, opened if it was not.

        Raises:
            IllegalStateError: this context is closed.
            SetupError: a package that it needs is not installed.
        """
        self._check_process()
        with self._lock:
            self.check_open()
            if self._storage is None:
                self._storage = self._open_storage()
            return self._storage

    def running_engine(self) -> Engine:
        """Return the engine, started if it was not.

        Raises:
            IllegalStateError: this context is closed.
            SetupError: the engine cannot start on this machine.
        """
        self._check_process()
        with self._lock:
            self.check_open()
            # Asked each time, since a job may have renewed it.
            if self._beside is not None:
                return self._beside.running_engine()
            if self._engine is None:
                self._engine = self._start()
            return self._engine

    def renew_engine(self) -> None:
        """Drop an engine that has lost its base, such as Java; a job that starts again calls this."""
        if self._beside is not None:
            self._beside.renew_engine()
            return
        with self._lock:
            engine = self._engine
            if engine is None or not engine.is_lost():
                return
            self._engine = None
        engine.close()

    def engine_here(self) -> Engine:
        """Return an engine of this process, for items that are in it already, such as dead letters."""
        from dstream.base.memory import DEFAULT_BOUND
        from dstream.engine.local import LocalEngine

        return LocalEngine(DEFAULT_BOUND)

    def stages(self, node: Node, into: Any) -> Stages:
        """Return the stages that a plan would run as in this context; `stream.explain()` calls this. Nothing starts.

        Raises:
            IllegalStateError: this context is closed.
        """
        self.check_open()
        return self._stages(node, into)

    def close(self) -> None:
        """Wait for the jobs that run in this process, and stop the engine if this context started it.

        A second call does nothing. A `with` block that Ctrl-C leaves cancels the jobs that have an end.
        """
        self._end(is_interrupted=False)

    def _end(self, *, is_interrupted: bool) -> None:
        # Jobs first, since they use the storage and the engine until they end.
        ends = [] if self._jobs is None else [partial(self._jobs.close, is_interrupted=is_interrupted)]
        # Contexts of other storages next: their jobs use the engine of this one, which has to be open until they end.
        others = [partial(other._end, is_interrupted=is_interrupted) for other in list(self._others.values())]
        _call_each([*ends, *others, self._close])

    def _close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        contexts.forget(self)
        # Again, since one may have been opened meanwhile.
        closes = [other.close for other in self._others.values()]
        if self._storage is not None:
            closes.append(self._storage.close)
        if self._end_start is not None:
            closes.append(self._end_start)
        if self._engine is not None:  # A context that shares another's engine has none.
            closes.append(self._engine.close)
        _call_each(closes)

    def _jobs_here(self) -> Jobs:
        storage = self.running_storage()
        from dstream.jobs.registry import Jobs  # lazily: few programs submit jobs

        with self._lock:
            # The threads of the jobs are not in a forked process.
            if self._jobs is None or self._jobs.is_elsewhere:
                self._jobs = Jobs(self, storage.records, storage.load_pickle, of_all=self._of_all_jobs)
            return self._jobs

    def _created(self, kind: Kind, name: str, options: Options) -> Any:
        check_options(name, options)
        return self.running_storage().create(kind, name, options)

    def _handle(self, kind: Kind, store: Any) -> Any:
        """Return a handle to a store; its module is imported lazily: a program of streams needs none."""
        module = import_module(f"dstream.collections.{kind}")
        return getattr(module, f"IStream{kind.capitalize()}")(store, self)

    def _check_process(self) -> None:
        """Refuse the use of a context of Spark, and of its parts, on a worker."""
        if self._engine_name != "local" and inside_a_worker():
            raise refused_on_a_worker("a context, or a stream or collection of it,")

    def __enter__(self) -> Context:
        self.check_open()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._end(is_interrupted=isinstance(error, KeyboardInterrupt))

    if not TYPE_CHECKING:  # A type checker would take it for every name.

        def __getattr__(self, name: str) -> NoReturn:
            from dstream.suggestions.contexts import no_such_name  # lazily: only an unknown name needs it

            raise AttributeError(no_such_name(type(self), name))

    def __dir__(self) -> list[str]:
        """Return the users' names: not those that streams, collections and jobs use of their context."""
        return sorted(set(super().__dir__()) - _OF_THE_PARTS)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "running" if self._has_engine() else "open"
        return f"<dstream context on {self._engine_name}{self._shown}, {state}>"

    def _has_engine(self) -> bool:
        return self._engine is not None if self._beside is None else self._beside._has_engine()

    def _stays_in_the_driver(self) -> str:
        """Explain why a function that runs on the workers cannot take this along, and the alternative."""
        return (
            "cannot be used inside a function that runs on the workers; read what you need before and let the function "
            "capture the result"
        )

    def __reduce__(self) -> NoReturn:
        raise SerializationError(f"a context {self._stays_in_the_driver()}")


def _call_each(calls: Iterable[Callable[[], object]]) -> None:
    """Call each function, also after one that fails, and raise the first error; its notes name the others."""
    first: BaseException | None = None
    for call in calls:
        try:
            call()
        except BaseException as error:
            if first is None:
                first = error
            else:
                add_note(first, without_secrets(f"after it, closing failed with {type(error).__name__}: {error}"))
    if first is not None:
        raise first


_OF_THE_PARTS = frozenset(("check_open", "engine_here", "renew_engine", "running_engine", "running_storage", "stages"))
