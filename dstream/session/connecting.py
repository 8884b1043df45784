"""`connect()`: from what a user says to a context; and the default context."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from dstream.distributed import Expiring
from dstream.engine.local import LocalEngine
from dstream.engine.memory import DEFAULT_BOUND
from dstream.failures import shown
from dstream.session.context import Context
from dstream.session.contexts import contexts
from dstream.spi import Engine, Storage
from dstream.storage import Settings, open_storage
from dstream.stream.runtime import bind_default

__all__ = ["connect", "default_context", "set_default_context"]

_ENGINES = ("spark", "local")
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_DEFAULT_STORAGE = "dstream-data"


def connect(
    master: str | None = None,
    engine: str = "spark",
    config: Mapping[str, Any] | None = None,
    *,
    storage: str | os.PathLike[str] | None = None,
    pickle: Literal["trusted", "restricted", "never"] | None = None,
    allowed: Iterable[type] = (),
    durability: Literal["process", "power"] = "process",
    worker_memory: int | str = DEFAULT_BOUND,
    log_level: str | None = None,
) -> Context:
    """Return a context; it becomes the default one if no other is open.

    Args:
        master: the Spark master, such as `"local[4]"` or `"spark://host:7077"`. Unset: the environment
            variable `DSTREAM_MASTER`, a Spark session that runs in this process already, or all
            cores of this machine.
        engine: `"spark"`, or `"local"` for plain Python in this process.
        config: settings of Spark by name, such as `{"spark.executor.memory": "4g"}`.
        storage: where collections live: a folder, `"file:///..."`, `"s3://..."`, `"redis://..."`, or
            `"memory:"` for this process only. Unset: the environment variable `DSTREAM_STORAGE`, or the
            folder `dstream-data`. Nothing is made there before the first collection is.
        pickle: which pickled values are loaded from the storage: all (`"trusted"`), those of plain types
            and of `allowed` classes (`"restricted"`), or none (`"never"`). Unset: `"trusted"` where only
            this user can write, otherwise `"restricted"`; docs/security.md says why.
        allowed: classes whose instances may be loaded in restricted mode.
        durability: what a change that returned survives: the death of any process (`"process"`), or also
            that of the machine (`"power"`), which costs about ten times as much.
        worker_memory: how much memory a worker process may occupy before sorting, grouping and
            `distinct` move to disk, in bytes or as `"512m"`.
        log_level: the level of Spark's own messages, such as `"WARN"`. Unset: the environment variable
            `DSTREAM_LOG`, or none at all.

    Raises:
        SetupError: Java is missing or too old.
        TypeError: `storage` is neither a text nor a path.
        ValueError: an argument is not one of its choices.

    Example:
        >>> with connect(engine="local") as ctx:
        ...     ctx.stream("abc").map(str.upper).to_list()
        ['A', 'B', 'C']
    """
    if engine not in _ENGINES:
        raise ValueError(f"engine must be one of {', '.join(_ENGINES)}, not {engine!r}")
    memory = _bytes(worker_memory)
    opening = _storage_opener(storage, pickle, allowed, durability)
    start = _spark_starter(master, dict(config or {}), log_level, memory) if engine == "spark" else _local(memory)
    context = Context(start, engine, opening)
    contexts.add(context)
    return context


def default_context() -> Context:
    """Return the context of streams that were made without one, connected if there is none yet."""
    return contexts.default() or (connect(engine="local") if _inside_a_worker() else connect())


def set_default_context(context: Context | None) -> None:
    """Make `context` the default one; None leaves the choice to dstream again."""
    if context is not None and not isinstance(context, Context):
        raise TypeError(f"set_default_context() takes a context or None, not {type(context).__name__}")
    contexts.choose(context)


def _local(memory: int) -> Callable[[], Engine]:
    return lambda: LocalEngine(memory)


def _spark_starter(
    master: str | None, config: Mapping[str, Any], log_level: str | None, memory: int
) -> Callable[[], Engine]:
    from dstream.engine.spark import launch

    launch.check_machine()
    settings = launch.Settings(
        master or os.environ.get("DSTREAM_MASTER") or None,
        {str(name): str(value) for name, value in config.items()},
        (log_level or os.environ.get("DSTREAM_LOG") or "OFF").upper(),
        memory,
    )
    return lambda: launch.start(settings)


def _storage_opener(
    storage: str | os.PathLike[str] | None, pickle: Any, allowed: Iterable[type], durability: Any
) -> Callable[[], Storage]:
    if pickle not in (None, "trusted", "restricted", "never"):
        raise ValueError(f"pickle must be 'trusted', 'restricted' or 'never', not {pickle!r}")
    if durability not in ("process", "power"):
        raise ValueError(f"durability must be 'process' or 'power', not {durability!r}")
    classes = tuple(allowed)
    for each in classes:
        if not isinstance(each, type):
            raise TypeError(f"allowed must hold classes, not {shown(each)}")
    url = os.environ.get("DSTREAM_STORAGE") or _DEFAULT_STORAGE if storage is None else _place(storage)
    settings = Settings(pickle, (Expiring, *classes), durability)
    return lambda: open_storage(url, settings)


def _place(storage: Any) -> str:
    place = os.fspath(storage) if isinstance(storage, os.PathLike) else storage
    if not isinstance(place, str):
        raise TypeError(f"storage must be a folder or a URL, as a str or a path, not {shown(storage)}")
    if not place:
        raise ValueError("storage must not be empty; leave it out for the folder dstream-data, or say '.' for this one")
    return place


def _inside_a_worker() -> bool:
    """Say whether this process runs a Spark task: streams made there run on the spot."""
    module = sys.modules.get("pyspark.taskcontext")
    return module is not None and module.TaskContext.get() is not None


def _bytes(size: int | str) -> int:
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    found = re.fullmatch(r"(\d+)\s*([kmg]?)b?", str(size).strip().lower()) if isinstance(size, str) else None
    if found is None or int(found.group(1)) == 0:
        raise ValueError(f"worker_memory must be a number of bytes or a text such as '512m', not {size!r}")
    return int(found.group(1)) * _UNITS[found.group(2)]


bind_default(default_context)
