"""`java.util.stream` over distributed collections, with Spark as the engine.

Start with `connect()` or with `Stream.of(...)`; collectors come from `collectors`, sources from
`sources`, reducers from `reducers`. These are short names of `dstream.collectors`, `dstream.sources` and
`dstream.reducers`, for programs without files of such names.

What users call:

- `stream`: the fluent API, and the terminal operations that run a stream.
- `pipeline`: stages that fork, join and end in several sinks.
- `core`: the Core API, with vertices, edges and processors.
- `session`: `connect()` and `Context`.
- `jobs`: submitted pipelines that survive a crash.
- `collections`: maps, lists, caches and sets in a storage.
- `sources`, `reducers`: factories of sources and sinks.
- `collectors`, `gatherers`, `windows`: reductions, operations on neighbouring items, windows over event time.
- `values`: `Optional`, `Entry`, `DeadLetter` and other values that results contain.
- `errors`: every exception that is raised.
- `explain`: stages, routes and cost of a plan before it runs.
- `testing`: tools for tests of pipelines, collectors and functions.
- `command`: the command `dstream`, which `__main__` runs as `python -m dstream`.

The parts behind them:

- `spi`: the contracts of collectors, sources, sinks, stores and engines.
- `plan`: plans as values, as nodes and as core operations.
- `engine`: compilation of plans, and their runs in the caller's process and on Spark.
- `operators`: the work of tasks on rows, columns, windows, joins and states.
- `processors`: the cooperative runner of graphs of processors.
- `connectors`: the source and the sink of each system.
- `storage`: the stores behind the collections.
- `delta`: the log, commits and checkpoints of Delta tables.
- `filesystem`: files that are local, in object stores or behind fsspec.
- `schema`: types as values and as columns, in each format.
- `expressions`: pure functions of the caller, read as values.
- `keys`: valid keys, their equality and their routing.
- `arguments`: checks of arguments at the call.
- `failures`: the step, the source location and the item of a failure.
- `suggestions`: the intended names behind unknown ones.
- `base`: processes, threads, pickling, memory, logging and URLs.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dstream import collectors, errors, gatherers
from dstream.failures import failure
from dstream.session import Context, connect, default_context, set_default_context
from dstream.spi import Collector
from dstream.spi.runtime import Service
from dstream.stream import DoubleStream, IntStream, LongStream, Stream
from dstream.stream.services import imap_service
from dstream.values import BadRecord, DeadLetter, Entry, JournalEvent, Optional, Predicate, where

if TYPE_CHECKING:
    from dstream import reducers, sources
    from dstream.base.environment import __version__  # noqa: F401
    from dstream.collections import IStreamCache, IStreamList, IStreamMap
    from dstream.collections.counter import IStreamCounter
    from dstream.collections.queue import IStreamQueue
    from dstream.collections.set import IStreamSet
    from dstream.jobs import JobConfig, JobStatus
    from dstream.pipeline import JoinClause, Pipeline
    from dstream.values.attachments import attached

__all__ = [
    "BadRecord",
    "Collector",
    "Context",
    "DeadLetter",
    "DoubleStream",
    "Entry",
    "IStreamCache",
    "IStreamCounter",
    "IStreamList",
    "IStreamMap",
    "IStreamQueue",
    "IStreamSet",
    "IntStream",
    "JobConfig",
    "JobStatus",
    "JoinClause",
    "JournalEvent",
    "LongStream",
    "Optional",
    "Pipeline",
    "Predicate",
    "Service",
    "Stream",
    "attached",
    "collectors",
    "connect",
    "default_context",
    "errors",
    "failure",
    "gatherers",
    "imap_service",
    "reducers",
    "set_default_context",
    "sources",
    "where",
]

_WHEN_ASKED_FOR = {
    "IStreamCache": "dstream.collections.cache",
    "IStreamCounter": "dstream.collections.counter",
    "IStreamList": "dstream.collections.list",
    "IStreamMap": "dstream.collections.map",
    "IStreamQueue": "dstream.collections.queue",
    "IStreamSet": "dstream.collections.set",
    "JobConfig": "dstream.jobs",
    "JobStatus": "dstream.jobs",
    "JoinClause": "dstream.pipeline",
    "Pipeline": "dstream.pipeline",
    "__version__": "dstream.base.environment",
    "attached": "dstream.values.attachments",
}
"""Names that a program of streams does not need, and the modules that are loaded for them."""


if not TYPE_CHECKING:  # A type checker would take it for every name.

    def __getattr__(name: str) -> Any:
        if name in _WHEN_ASKED_FOR:
            found = globals()[name] = getattr(import_module(_WHEN_ASKED_FOR[name]), name)
            return found
        if name in ("reducers", "sources"):
            return import_module(f"dstream.{name}")
        raise AttributeError(f"module 'dstream' has no attribute {name!r}{_where_it_is(name)}")


def _where_it_is(name: str) -> str:
    from dstream.suggestions.packages import place_of  # here: only who mistakes a name needs it

    if name.startswith("_"):
        return ""
    if find_spec(f"dstream.{name}") is not None:
        return f"; import dstream.{name} first"
    return f"; {place}" if (place := place_of(name)) else ""


def __dir__() -> list[str]:
    return sorted(__all__)
