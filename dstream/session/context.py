"""The session: `connect()` and `Context`, the one place where streams and engines meet."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from dstream.engine.local import LocalEngine
from dstream.engine.memory import DEFAULT_BOUND
from dstream.errors import IllegalStateError, SerializationError, UnsupportedError
from dstream.failures import shown
from dstream.spi import Engine, Source
from dstream.stream import Stream
from dstream.stream.runtime import bind_default
from dstream.stream.stream import from_iterable, read

__all__ = ["Context", "connect", "default_context", "set_default_context"]

T = TypeVar("T")

_ENGINES = ("spark", "local")
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


class Context:
    """An engine and the streams on it. Make one with `connect()`; close it, or use it in a `with` block.

    Nothing starts before the first terminal operation needs it.
    """

    def __init__(self, start: Any, engine_name: str) -> None:
        self._start = start
        self._engine_name = engine_name
        self._engine: Engine | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    @property
    def engine(self) -> str:
        """The name of the engine: `"spark"` or `"local"`."""
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
            raise UnsupportedError(f"the {self._engine_name} engine has no Spark session")
        return session

    def stream(self, iterable: Iterable[T], partitions: int | None = None) -> Stream[T]:
        """Return a stream of the items of `iterable` on this context; see `Stream.from_iterable`.

        Example:
            >>> with connect(engine="local") as ctx:
            ...     ctx.stream([1, 2, 3]).map(lambda n: n * n).to_list()
            [1, 4, 9]
        """
        self._check_open()
        return from_iterable(iterable, partitions, self)

    def read(self, source: Source[T]) -> Stream[T]:
        """Return a stream of the items of `source` on this context.

        Raises:
            TypeError: `source` is no source.
        """
        self._check_open()
        if not isinstance(source, Source):
            raise TypeError(f"read() takes a source, such as text_files(...), not {type(source).__name__}")
        return read(source, f"read({shown(source)})", self)

    def get_map(self, name: str, **options: Any) -> NoReturn:
        """Refuse: distributed maps are not there yet."""
        raise UnsupportedError(f"get_map({name!r}): distributed maps do not exist yet; docs/limits.md says what to use")

    def get_list(self, name: str, **options: Any) -> NoReturn:
        """Refuse: distributed lists are not there yet."""
        raise UnsupportedError(
            f"get_list({name!r}): distributed lists do not exist yet; docs/limits.md says what to use"
        )

    def get_cache(self, name: str, **options: Any) -> NoReturn:
        """Refuse: distributed caches are not there yet."""
        raise UnsupportedError(
            f"get_cache({name!r}): distributed caches do not exist yet; docs/limits.md says what to use"
        )

    def running_engine(self) -> Engine:
        """Return the engine, started if it was not.

        Raises:
            IllegalStateError: this context is closed.
            SetupError: the engine cannot start on this machine.
        """
        with self._lock:
            self._check_open()
            if self._engine is None:
                self._engine = self._start()
            return self._engine

    def close(self) -> None:
        """Stop the engine if this context started it; a second call does nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        _contexts.forget(self)
        if self._engine is not None:
            self._engine.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise IllegalStateError("this context is closed; connect() again")

    def __enter__(self) -> Context:
        self._check_open()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open" if self._engine is None else "running"
        return f"<dstream context on {self._engine_name}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise SerializationError(
            "a context cannot be used inside a function that runs on the workers; "
            "read what you need before and let the function capture the result"
        )


class _Contexts:
    """The open contexts of this process, and which of them is the default."""

    def __init__(self) -> None:
        self._open: list[Context] = []
        self._chosen: Context | None = None

    def add(self, context: Context) -> None:
        self._open.append(context)

    def forget(self, context: Context) -> None:
        self._open = [known for known in self._open if known is not context]
        if self._chosen is context:
            self._chosen = None

    def choose(self, context: Context | None) -> None:
        self._chosen = context

    def default(self) -> Context | None:
        return self._chosen or next(iter(self._open), None)


_contexts = _Contexts()


def connect(
    master: str | None = None,
    engine: str = "spark",
    config: Mapping[str, Any] | None = None,
    *,
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
        worker_memory: how much memory a worker process may occupy before sorting, grouping and
            `distinct` move to disk, in bytes or as `"512m"`.
        log_level: the level of Spark's own messages, such as `"WARN"`. Unset: the environment variable
            `DSTREAM_LOG`, or none at all.

    Raises:
        SetupError: Java is missing or too old.
        ValueError: an argument is not one of its choices.

    Example:
        >>> with connect(engine="local") as ctx:
        ...     ctx.stream("abc").map(str.upper).to_list()
        ['A', 'B', 'C']
    """
    if engine not in _ENGINES:
        raise ValueError(f"engine must be one of {', '.join(_ENGINES)}, not {engine!r}")
    memory = _bytes(worker_memory)
    if engine == "local":
        context = Context(lambda: LocalEngine(memory), engine)
    else:
        context = _spark_context(master, dict(config or {}), log_level, memory)
    _contexts.add(context)
    return context


def default_context() -> Context:
    """Return the context of streams that were made without one, connected if there is none yet."""
    return _contexts.default() or (connect(engine="local") if _inside_a_worker() else connect())


def set_default_context(context: Context | None) -> None:
    """Make `context` the default one; None leaves the choice to dstream again."""
    if context is not None and not isinstance(context, Context):
        raise TypeError(f"set_default_context() takes a context or None, not {type(context).__name__}")
    _contexts.choose(context)


def _spark_context(master: str | None, config: Mapping[str, Any], log_level: str | None, memory: int) -> Context:
    from dstream.engine.spark import launch

    launch.check_machine()
    settings = launch.Settings(
        master or os.environ.get("DSTREAM_MASTER") or None,
        {str(name): str(value) for name, value in config.items()},
        (log_level or os.environ.get("DSTREAM_LOG") or "OFF").upper(),
        memory,
    )
    return Context(lambda: launch.start(settings), "spark")


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
