"""`connect()`: from arguments to a context with its engine and its explanations; the default context."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from dstream.arguments import hinting
from dstream.base.environment import cores_here, inside_a_worker
from dstream.base.urls import shown_url
from dstream.failures import shown
from dstream.plan import CacheLookup, Step, nothing_kept
from dstream.session.configuration import Configuration, configured
from dstream.session.context import Context
from dstream.session.contexts import contexts, refused_on_a_worker
from dstream.spi import Engine, Storage
from dstream.storage import Settings, open_storage
from dstream.stream.runtime import bind_default

if TYPE_CHECKING:
    from dstream.engine.auto.engine import AutoEngine
    from dstream.engine.auto.placement import Placement
    from dstream.engine.compiler import ColumnMode
    from dstream.jobs import JobConfig
    from dstream.operators.rows.caches import Caches
    from dstream.plan.stages import Stages
    from dstream.session.warmup import WarmStart

__all__ = [
    "Explain",
    "auto_stages",
    "connect",
    "default_context",
    "local_stages",
    "set_default_context",
    "spark_stages",
    "stages_on",
]


Explain = Callable[[Any, Any], "Stages"]
"""Takes the last node of a plan, and the writer of its items or None."""


def local_stages(found: CacheLookup, node: Any, into: Any) -> Stages:
    """Return the stages of a plan on the local engine."""
    from dstream.explain.stages import local_stages as stages
    from dstream.plan import rewrite
    from dstream.spi import Sink
    from dstream.stream.runtime import ended

    if isinstance(into, Sink):
        node, into = ended(node, into)
    return stages(rewrite(node), into, found)


def spark_stages(
    found: CacheLookup, master: str | None, config: Mapping[str, Any], columns: ColumnMode, node: Any, into: Any
) -> Stages:
    """Return the stages of a plan on Spark: on the one that runs, or on one that would start with these settings."""
    from dstream.engine.spark.session.launch import known_cores

    return stages_on(known_cores(master, config), node, into, found, columns)


def stages_on(
    cores: int | None, node: Any, into: Any, found: CacheLookup = nothing_kept, columns: ColumnMode = "auto"
) -> Stages:
    """Return the stages of a plan on Spark with a number of cores; None: not known yet."""
    from dstream.engine.spark.run.execution import largest_small_side
    from dstream.explain.stages import spark_stages as stages
    from dstream.plan import configuration

    plan = _plan(node, into)
    return stages(plan, cores, largest_small_side(configuration(plan)), found, columns)


def _plan(node: Any, into: Any) -> Any:
    """Return the plan with the end that it is explained with, or its own; the target it writes into is not opened."""
    from dstream.plan import Collect, Loop, ToList, is_bounded, rewrite
    from dstream.plan.operations.ends import Several
    from dstream.spi import Collector, Sink
    from dstream.stream.runtime import ended, writing

    if isinstance(node, Several):
        return rewrite(node)
    match into:
        case Collector():
            return rewrite(Collect(node, into, step=Step(f".collect({into.name or '...'})")))
        case Sink():
            return rewrite(writing(*ended(node, into), None))
    return rewrite(ToList(node) if is_bounded(rewrite(node)) else Loop(node))


def auto_stages(
    placement: Callable[[Any], Placement],
    found: CacheLookup,
    master: str | None,
    config: Mapping[str, Any],
    columns: ColumnMode,
    node: Any,
    into: Any,
) -> Stages:
    """Return the stages of a plan where it would begin, with a note on the reason."""
    core = _plan(node, into)
    if _runs_in_epochs(core) and not _is_cluster(master):
        stages = spark_stages(found, master, config, columns, node, into)
        return replace(stages, notes=(_EPOCHS_MOVE, *stages.notes))
    placed = placement(core)
    match placed.engine:
        case "local":
            stages = replace(local_stages(found, node, into), engine="this process")
        case "inprocess":
            assert placed.facts is not None, "graphs of this process have facts"
            tasks, columns = placed.facts.parallelism, placed.facts.columns
            stages = replace(stages_on(tasks, node, into, found, columns), engine="this process")
        case _:
            stages = spark_stages(found, master, config, columns, node, into)
    return replace(stages, notes=(placed.reason, *stages.notes))


def _runs_in_epochs(core: Any) -> bool:
    """Return whether a plan reads an unbounded source, or has operations that only epochs have."""
    from dstream.plan.operations.streams import Read
    from dstream.plan.properties import is_of_epoch
    from dstream.plan.timestamps import StreamRead
    from dstream.plan.walk import topological

    reads = (each for each in topological(core) if isinstance(each, Read))
    return is_of_epoch(core) or any(isinstance(each.source, StreamRead) for each in reads)


_EPOCHS_MOVE = "each epoch runs in this process while that keeps up with the load, and on Spark while it does not"


@hinting(
    app_name='config={"spark.app.name": ...}',
    conf="config=",
    cores='connect("local[4]"), the master with a number of cores',
    parallelism='connect("local[4]"), the master with a number of cores',
    spark="nothing: a session that runs in this process is used",
    threads='connect("local[4]"), the master with a number of cores',
    url="master=",
    workers='connect("local[4]"), the master with a number of cores',
)
def connect(
    master: str | None = None,
    engine: str | None = None,
    config: Mapping[str, Any] | None = None,
    *,
    storage: str | os.PathLike[str] | None = None,
    pickle: Literal["trusted", "restricted", "never"] | None = None,
    allowed: Iterable[type] = (),
    durability: Literal["process", "power"] | None = None,
    worker_memory: int | str | None = None,
    broadcast_limit: int | str | None = None,
    local_limit: float | None = None,
    columns: Literal["auto", "off", "verify"] | None = None,
    class_archive: bool | None = None,
    warm: bool | None = None,
    log_level: str | None = None,
    progress: bool | None = None,
    job: JobConfig | None = None,
    file: str | os.PathLike[str] | None = None,
) -> Context:
    """Return a context; it becomes the default one if no other is open.

    A setting that is not passed is looked up in the environment (`DSTREAM_MASTER`, `DSTREAM_ENGINE`, `DSTREAM_STORAGE`,
    `DSTREAM_PICKLE`, `DSTREAM_DURABILITY`, `DSTREAM_WORKER_MEMORY`, `DSTREAM_BROADCAST_LIMIT`, `DSTREAM_LOCAL_LIMIT`,
    `DSTREAM_COLUMNS`, `DSTREAM_CLASS_ARCHIVE`, `DSTREAM_WARM`, `DSTREAM_LOG`, `DSTREAM_PROGRESS`), and then in the
    file `dstream.toml` of the current folder or the nearest one above; `dstream docs configure` has the details.

    Args:
        master: the Spark master, such as `"local[4]"` or `"spark://host:7077"`, or a server of Spark Connect, such as
            `"sc://host:15002"`. Default: a Spark session that runs in this process already, or all cores of this
            machine.
        engine: `"auto"`, the default: each plan runs in this process or on Spark, where it is estimated to end sooner;
            Spark starts when the first plan needs it. `"spark"` runs every plan on Spark, and is the default with a
            `master` or a `config`, and where a session of Spark runs in this process that dstream has not started.
            `"local"` is plain Python in this process, one item after another. `dstream docs engines` has the details.
        config: settings of Spark by name, such as `{"spark.executor.memory": "4g"}`. They override the table
            `[config]` of the file, one by one.
        storage: the storage of collections: a folder, `"file:///..."`, `"s3://..."`, `"sqlite:data.db"`,
            `"redis://..."`, or `"memory:"` for this process only. Default: the folder `dstream-data`, which the first
            collection creates.
        pickle: the pickled values that are loaded from the storage: all (`"trusted"`), those of plain types
            and of `allowed` classes (`"restricted"`), or none (`"never"`). Default: `"trusted"` where only this user
            can write, otherwise `"restricted"`; `dstream docs security` gives the reasons.
        allowed: the classes whose instances may be loaded in restricted mode.
        durability: what a completed change survives: the death of any process (`"process"`, the default), or also that
            of the machine (`"power"`), which costs about ten times as much.
        worker_memory: the resident memory, in bytes or as `"512m"`, beyond which sorting, grouping, `distinct` and the
            state of keys in jobs spill to disk in a worker process. A run in the caller's process counts from what the
            process occupied before. Default: 512 MB.
        broadcast_limit: the largest right side of a hash join, which every task holds in memory, in bytes or as
            `"64m"`. A hash join may have its own limit. Default: 256 MB.
        local_limit: the seconds of estimated work up to which the engine `"auto"` runs a plan in this process;
            with `math.inf` only plans that cannot run in this process run on Spark. Default: the engine on which the
            plan is estimated to end sooner.
        columns: whether tasks may evaluate functions over columns without calling them: `"auto"`, the default, where
            the result is the same; `"off"` never; `"verify"` runs both and raises an EngineError where they differ.
            Globals are read when the plan starts: later assignments by other modules are not seen. `dstream docs
            columns` has the details.
        class_archive: whether Spark on this machine starts from an archive of the classes that Java loads. The first
            use of Spark makes it in the user's cache folder. Default: True; `dstream docs configure` has the details.
        warm: whether a Spark on this machine starts in the background now, rather than when it is needed. Default:
            at prompts and in notebooks only, with the engine `"spark"`.
        log_level: the level of Spark's own messages, such as `"WARN"`. Default: no messages.
        progress: whether a job that takes longer than a second shows its progress in one line. Default: in terminals
            and notebooks only.
        job: the settings of jobs that do not set them. Its values override the table `[job]` of the file,
            one by one, and the values of a job override both.
        file: the file of settings to read instead of `dstream.toml`, and of the one that the variable
            `DSTREAM_CONFIG` names; an empty string reads none.

    Raises:
        ConfigurationError: the environment or the file has an invalid value; the message names which.
        SetupError: Java is missing or too old for the engine `"spark"`; with `"auto"` the first plan that needs Spark
            raises it.
        TypeError: an argument is of another type.
        ValueError: an argument is not one of its choices.

    Example:
        >>> with connect(engine="local") as ctx:
        ...     ctx.stream("abc").map(str.upper).to_list()
        ['A', 'B', 'C']
    """
    from dstream.operators.rows.caches import Caches

    chosen = configured(
        {
            "master": master,
            "engine": engine,
            "config": config,
            "storage": storage,
            "pickle": pickle,
            "durability": durability,
            "worker_memory": worker_memory,
            "broadcast_limit": broadcast_limit,
            "local_limit": local_limit,
            "columns": columns,
            "class_archive": class_archive,
            "warm": warm,
            "log_level": log_level,
            "progress": progress,
            "job": job,
        },
        file,
    )
    opening = _storage_opener(chosen, allowed)
    # One for both engines of `auto`: each finds what the other one has cached.
    caches = Caches()
    if chosen["engine"] != "local" and inside_a_worker():
        raise refused_on_a_worker("connect()")
    start = _STARTERS[chosen["engine"]](chosen, caches)
    if chosen["engine"] == "spark" and (_is_at_a_prompt() if chosen["warm"] is None else chosen["warm"]):
        start = _started_beside(start, chosen["master"])
    close = getattr(start, "close", None)
    if chosen["engine"] == "spark":
        from dstream.engine.calls import Progress

        start = functools.partial(Progress(chosen["progress"]).of_start, start)
    context = Context(
        start,
        chosen["engine"],
        lambda: opening(chosen["storage"]),
        _stages(chosen, start, caches.found),
        _shown_choices(chosen),
        opening,
        chosen["job"],
        close,
    )
    contexts.add(context)
    return context


def _shown_choices(chosen: Configuration) -> str:
    """Return the choice of the engine, the master and the storage for the `repr` of a context, without a password."""
    master = "" if chosen["engine"] == "local" else f", master {chosen['master'] or 'any that runs, or local[*]'}"
    return f"{chosen.engine_reason()}{master}, storage {shown_url(chosen['storage'])}"


def default_context() -> Context:
    """Return the context of streams that were made without one, connected if there is none yet."""
    # A worker never starts its own Spark.
    return contexts.default() or (connect(engine="local", progress=False) if inside_a_worker() else connect())


def set_default_context(context: Context | None) -> None:
    """Make `context` the default one; None leaves the choice to dstream again."""
    if context is not None and not isinstance(context, Context):
        raise TypeError(f"set_default_context() takes a context or None, not {type(context).__name__}")
    contexts.choose(context)


def _local_starter(chosen: Configuration, caches: Caches) -> Callable[[], Engine]:
    def start() -> Engine:
        from dstream.engine.calls import Progress  # lazily: a program may end without a run
        from dstream.engine.local import LocalEngine

        return LocalEngine(chosen["worker_memory"], Progress(chosen["progress"]), caches, chosen["broadcast_limit"])

    return start


def _spark_starter(chosen: Configuration, caches: Caches) -> Callable[[], Engine]:
    from dstream.engine.spark.session import launch

    # At the call: Spark starts much later, where a message would not name the line of `connect`.
    launch.check_machine(chosen["master"], chosen["config"])
    return functools.partial(_started_spark, chosen, caches)


def _started_spark(chosen: Configuration, caches: Caches) -> Engine:
    from dstream.engine.spark.session import launch
    from dstream.engine.spark.session.settings import Settings

    settings = Settings(
        chosen["master"],
        chosen["config"],
        chosen["log_level"],
        chosen["worker_memory"],
        chosen["progress"],
        chosen["broadcast_limit"],
        chosen["columns"],
        chosen["class_archive"],
    )
    return launch.start(settings, caches)


def _started_beside(start: Callable[[], Any], master: str | None, elsewhere: bool = False) -> Callable[[], Engine]:
    """Begin to start Spark, if this process starts it, and return a function that waits for it.

    Args:
        start: starts Spark.
        master: the master of the context.
        elsewhere: also a Spark that a server, or the JVM of `spark-submit`, starts.
    """
    from dstream.engine.spark.session import launch

    if not launch.starts_here(master) and not (elsewhere and not launch.is_running(master)):
        return start
    from dstream.engine.spark.session.startup import StoppableStart
    from dstream.session.warmup import WarmStart

    spark = StoppableStart()
    return WarmStart(functools.partial(spark.run, start), launch.activate, lambda engine: engine.warm_up(), spark.stop)


def _is_at_a_prompt() -> bool:
    """Return whether code runs at a prompt of Python or IPython, or in a notebook."""
    module = sys.modules.get("IPython")
    # Python sets `sys.ps1` at a prompt alone.
    return hasattr(sys, "ps1") or (module is not None and module.get_ipython() is not None)


def _auto_starter(chosen: Configuration, caches: Caches) -> Callable[[], Engine]:
    if chosen["master"] is not None:
        from dstream.engine.spark.session import launch  # lazily: most programs need none of it

        # At the call, as with the engine Spark; whether there is Java matters to the first plan that needs Spark.
        launch.check_master_of(chosen["master"], chosen["config"])
    return _AutoStart(chosen, caches)


class _AutoStart:
    """Starts the engines of this process, and Spark with the first plan that needs it."""

    def __init__(self, chosen: Configuration, caches: Caches) -> None:
        self._chosen = chosen
        self._caches = caches
        self._engine: AutoEngine | None = None
        # Only if it is asked for: at a prompt, too, most plans do not need it.
        self._warm = self._beside() if chosen["warm"] else None

    def __call__(self) -> AutoEngine:
        if self._engine is None or self._engine.is_lost():
            self._engine = self._made()
        return self._engine

    def placement(self, end: Any) -> Placement:
        """Return where a plan would begin; nothing starts."""
        return self().placement(end)

    def _made(self) -> AutoEngine:
        from dstream.engine.auto.border import SparkStart
        from dstream.engine.auto.engine import AutoEngine
        from dstream.engine.auto.placement import AutoSettings
        from dstream.engine.calls import Progress
        from dstream.engine.inprocess import InProcessEngine

        chosen, caches, progress = self._chosen, self._caches, Progress(self._chosen["progress"])
        memory, broadcast, columns = chosen["worker_memory"], chosen["broadcast_limit"], chosen["columns"]
        # A context that lost its Spark has used that start up: the next Spark starts when a plan needs it.
        begun = self._warm if self._engine is None else None
        return AutoEngine(
            _local_starter(chosen, caches)(),
            InProcessEngine(memory, progress, caches, broadcast, columns),
            SparkStart(
                self._spark,
                functools.partial(self._beside, elsewhere=True),
                progress.report,
                begun,
                chosen["warm"] is not False,
                progress.of_start,
            ),
            functools.partial(_cores_of_spark, chosen),
            caches.found,
            AutoSettings(chosen["local_limit"], broadcast, columns, memory),
            _is_cluster(chosen["master"]),
        )

    def _spark(self) -> Engine:
        from dstream.engine.spark.session import launch

        launch.check_machine(self._chosen["master"], self._chosen["config"])
        return _started_spark(self._chosen, self._caches)

    def _beside(self, elsewhere: bool = False) -> WarmStart[Any] | None:
        """Start Spark in the background, with `elsewhere` also on a server. Return None if it runs already."""
        started: Any = _started_beside(self._spark, self._chosen["master"], elsewhere)
        return None if started == self._spark else started

    def close(self) -> None:
        """End a background start of Spark."""
        if self._warm is not None:
            self._warm.close()


def _is_cluster(master: str | None) -> bool:
    if master is None and _runs_no_spark():
        return False
    from dstream.engine.spark.session.launch import is_cluster

    return is_cluster(master)


def _runs_no_spark() -> bool:
    """Return whether no Spark runs in this process; importing the launcher would take longer than a small plan."""
    return "pyspark" not in sys.modules and "PYSPARK_GATEWAY_PORT" not in os.environ


def _cores_of_spark(chosen: Configuration) -> int | None:
    """Return how many tasks Spark will run at the same time; None if that is known only when it runs."""
    if chosen["master"] is None and "spark.default.parallelism" not in chosen["config"] and _runs_no_spark():
        return cores_here()
    from dstream.engine.spark.session import launch

    known = launch.known_cores(chosen["master"], chosen["config"])
    is_whole = known is None and chosen["master"] in (None, "local[*]") and launch.starts_here(chosen["master"])
    return cores_here() if is_whole else known


_STARTERS = {"spark": _spark_starter, "local": _local_starter, "auto": _auto_starter}


def _storage_opener(chosen: Configuration, allowed: Iterable[type]) -> Callable[[str], Storage]:
    classes = tuple(allowed)
    for each in classes:
        if not isinstance(each, type):
            raise TypeError(f"allowed must hold classes, not {shown(each)}")

    def opened(url: str) -> Storage:
        from dstream.collections.cache import Expiring  # lazily: a program of streams opens no storage

        return open_storage(url, Settings(chosen["pickle"], (Expiring, *classes), chosen["durability"]))

    return opened


def _stages(chosen: Configuration, start: Callable[[], Engine] | None, found: CacheLookup) -> Explain:
    """Return the stages of a plan on the chosen engine, which need not run for that."""
    if chosen["engine"] == "local":
        return functools.partial(local_stages, found)
    of_spark = (found, chosen["master"], chosen["config"], chosen["columns"])
    if isinstance(start, _AutoStart):
        return functools.partial(auto_stages, start.placement, *of_spark)
    return functools.partial(spark_stages, *of_spark)


def _default_stages(node: Any, into: Any) -> Any:
    """Return the stages of a plan on the default context, or on the one that would be made for it."""
    context = contexts.default()
    if context is not None:
        return context.stages(node, into)
    if inside_a_worker():
        return local_stages(nothing_kept, node, into)
    from dstream.operators.rows.caches import Caches

    # No background start: the caller only reads.
    chosen = configured({"warm": False})
    start = _AutoStart(chosen, Caches()) if chosen["engine"] == "auto" else None
    return _stages(chosen, start, nothing_kept)(node, into)


bind_default(default_context, _default_stages)
