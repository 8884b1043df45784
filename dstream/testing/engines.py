"""Contexts for tests: fresh ones, with collections in memory, on one Spark session for the whole run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dstream.errors import SetupError
from dstream.session import Context, connect, set_default_context
from dstream.session.open_contexts import contexts
from dstream.spi import Engine
from dstream.stream import Stream

__all__ = ["MASTER", "SETTINGS", "KitContext", "context_for_test", "end_session"]

T = TypeVar("T")

MASTER = "local[2]"
SETTINGS = {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
_keeper: Context | None = None
"""Holds the session open from test to test."""


class KitContext(Context):
    """A context on the engine and the storage of another one.

    Args:
        context: the other one.
        wrap: what to put around its engine.
        partitions: in how many partitions `stream()` puts its items, unless told otherwise.
    """

    def __init__(
        self, context: Context, wrap: Callable[[Engine], Engine] | None = None, partitions: int | None = None
    ) -> None:
        def start() -> Engine:
            engine = context.running_engine()
            return wrap(engine) if wrap else engine

        other = context._open_other
        super().__init__(start, context.engine, context.running_storage, context.stages, context._shown, other)
        self._partitions = partitions

    def stream(self, iterable: Iterable[T], partitions: int | None = None) -> Stream[T]:
        """Return a stream of the items of `iterable` on this context."""
        return super().stream(iterable, partitions or self._partitions)


@contextmanager
def context_for_test(
    engine: str, wrap: Callable[[Engine], Engine] | None = None, partitions: int | None = None
) -> Iterator[KitContext]:
    """Open a context with empty collections in memory; it is the default one inside the block.

    Without Java, a test that pytest runs is skipped here when it asks for Spark.

    Raises:
        SetupError: this machine cannot run Spark, and no test is running.
    """
    chosen = contexts.chosen
    with _connected(engine) as context:
        kit = KitContext(context, wrap, partitions)
        set_default_context(kit)
        try:
            yield kit
        finally:
            set_default_context(chosen)


def _connected(engine: str) -> Context:
    if engine == "local":
        return connect(engine="local", storage="memory:")
    try:
        return connect(_keep_session(), storage="memory:")
    except SetupError as error:
        if "PYTEST_CURRENT_TEST" not in os.environ:
            raise
        import pytest

        pytest.skip(f"not run on Spark: {error}")


def _keep_session() -> str | None:
    """Start the one session of the run, unless Spark runs already; return its master if it is this one."""
    global _keeper
    if _keeper is None and not _spark_runs():
        keeper = connect(MASTER, config=SETTINGS, storage="memory:")
        keeper.running_engine()
        _keeper = keeper
    return None if _keeper is None else MASTER


def _spark_runs() -> bool:
    module: Any = sys.modules.get("pyspark.sql")
    return module is not None and module.SparkSession.getActiveSession() is not None


def end_session() -> None:
    """Stop the session if it was started here and nothing else uses it."""
    global _keeper
    if _keeper is not None:
        _keeper.close()
        _keeper = None
