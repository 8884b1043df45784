"""Contexts for tests on both engines, with one Spark session for the whole run, and `on_both_engines`."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from dstream.errors import SetupError
from dstream.session import Context, connect, set_default_context
from dstream.session.contexts import contexts
from dstream.spi import Engine
from dstream.stream import Stream

__all__ = ["MASTER", "SETTINGS", "KitContext", "context_for_test", "end_session", "on_both_engines"]


T = TypeVar("T")

MASTER = "local[2]"
SETTINGS = {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
_keeper: Context | None = None
"""Keeps the session open between tests."""


class KitContext(Context):
    """A context on the engine and the storage of another one.

    Args:
        context: the other one.
        wrap: what to put around its engine.
        partitions: in how many partitions `stream()` puts its items by default.
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

    Without Java, a test of pytest is skipped when it requests Spark.

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
        return connect(_keep_session(), engine="spark", storage="memory:")
    except SetupError as error:
        # pytest sets it while a test runs; a standalone program must see the error.
        if "PYTEST_CURRENT_TEST" not in os.environ:
            raise
        import pytest

        pytest.skip(f"not run on Spark: {error}")


def _keep_session() -> str | None:
    """Start the session of the run, unless Spark runs already; return its master if it was started here."""
    global _keeper
    if _keeper is None and not _spark_runs():
        keeper = connect(MASTER, engine="spark", config=SETTINGS, storage="memory:")
        keeper.running_engine()
        # Not before it runs, since the next test tries again after a failed start.
        _keeper = keeper
    return None if _keeper is None else MASTER


def _spark_runs() -> bool:
    module: Any = sys.modules.get("pyspark.sql")
    return module is not None and module.SparkSession.getActiveSession() is not None


def end_session() -> None:
    """Stop the session if this module started it and nothing else uses it."""
    global _keeper
    if _keeper is not None:
        _keeper.close()
        _keeper = None


F = TypeVar("F", bound=Callable[..., Any])

_CASE = "dstream_case"


@overload
def on_both_engines(test: F, /) -> F: ...


@overload
def on_both_engines(*, partitions: Iterable[int] = ...) -> Callable[[F], F]: ...


def on_both_engines(test: Any = None, /, *, partitions: Iterable[int] = (1, 2, 3)) -> Any:
    """Run a test of pytest on the local engine, and on Spark with each number of partitions.

    The test takes `ctx`, a context with empty collections in memory, which is also the default one.
    Unless the test sets the number of partitions of `ctx.stream(items)`, the number of the case applies. The test may
    take fixtures too. Without Java the cases on Spark are skipped.

    Args:
        test: the test function, or a method.
        partitions: the numbers of partitions for the cases on Spark.

    Raises:
        TypeError: the test has no argument `ctx`.

    Example:
        >>> @on_both_engines(partitions=[2, 5])
        ... def test_longest_word(ctx):
        ...     assert ctx.stream(["a", "bbb", "cc"]).max(key=len).get() == "bbb"
    """
    counts = list(partitions)
    return (lambda test: _marked(test, counts)) if test is None else _marked(test, counts)


def _marked(test: Callable[..., Any], partitions: list[int]) -> Any:
    import pytest

    signature = inspect.signature(test)
    if "ctx" not in signature.parameters:
        raise TypeError(f"a test on both engines takes ctx, a context; {test.__qualname__}{signature} does not")

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> Any:
        case: _Case = kwargs.pop(_CASE)
        with context_for_test(case.engine, partitions=case.partitions) as ctx:
            return test(*args, **kwargs, ctx=ctx)

    kept = [each for each in signature.parameters.values() if each.name != "ctx"]
    case = inspect.Parameter(_CASE, inspect.Parameter.KEYWORD_ONLY)
    marked: Any = run
    # pytest finds the fixtures of a test in its signature.
    marked.__signature__ = signature.replace(parameters=[*kept, case])
    cases = [_Case("local", None), *(_Case("spark", count) for count in partitions)]
    return pytest.mark.parametrize(_CASE, cases, ids=str)(marked)


@dataclass(frozen=True)
class _Case:
    """The engine and the partitions of one run of a test."""

    engine: str
    partitions: int | None

    def __str__(self) -> str:
        return self.engine if self.partitions is None else f"{self.engine}-{self.partitions}"
