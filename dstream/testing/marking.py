"""`on_both_engines`: a test function that pytest runs once for each engine and number of partitions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from dstream.testing.engines import context_for_test

__all__ = ["on_both_engines"]

F = TypeVar("F", bound=Callable[..., Any])

_CASE = "dstream_case"


@overload
def on_both_engines(test: F, /) -> F: ...


@overload
def on_both_engines(*, partitions: Iterable[int] = ...) -> Callable[[F], F]: ...


def on_both_engines(test: Any = None, /, *, partitions: Iterable[int] = (1, 2, 3)) -> Any:
    """Let pytest run a test on the local engine, and on Spark with each number of partitions.

    The test takes `ctx`, a context with empty collections in memory, which is also the default one.
    Where the test does not say in how many partitions `ctx.stream(items)` puts the items, it puts
    them in as many as the case says. It may take fixtures too. Without Java the cases on Spark are
    skipped.

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
    marked.__signature__ = signature.replace(parameters=[*kept, case])
    cases = [_Case("local", None), *(_Case("spark", count) for count in partitions)]
    return pytest.mark.parametrize(_CASE, cases, ids=str)(marked)


@dataclass(frozen=True)
class _Case:
    """Where one run of a test happens."""

    engine: str
    partitions: int | None

    def __str__(self) -> str:
        return self.engine if self.partitions is None else f"{self.engine}-{self.partitions}"
