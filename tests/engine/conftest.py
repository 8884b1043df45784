"""What the tests of kernels share: plain functions, no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dstream as ds
from dstream.base.memory import Bound
from dstream.keys import check_hash_seed
from dstream.plan import Step
from dstream.plan.steps import Op


class Full(Bound):
    """A bound that always says that too much is held."""

    def exceeded(self) -> bool:
        return True


@pytest.fixture
def full() -> Bound:
    """A bound that makes every operation spill as soon as it asks."""
    return Full()


@pytest.fixture
def roomy() -> Bound:
    """A bound that never makes an operation spill."""
    return Bound(2**60)


@pytest.fixture
def nothing_by_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave to Python no part of an expression, so that columns show what they cannot give."""
    from dstream.operators.columns import evaluation
    from dstream.operators.columns.values import NotColumnar

    def refused(*given: Any) -> None:
        raise NotColumnar("a part that Python would evaluate")

    monkeypatch.setattr(evaluation, "rows_by_python", refused)


@pytest.fixture
def task(roomy: Bound) -> Any:
    """A task in this process, with room enough."""

    class Task:
        partition = 3
        bound = roomy

        def peeking(self, op: Op) -> Callable[[Any], object]:
            return op.fn

        def check_can_route(self) -> None:
            check_hash_seed()

        def at_end_with(self, close: Callable[[BaseException | None], object]) -> None:
            """Never end."""

    return Task()


@pytest.fixture
def step() -> Step:
    """Some step of a chain."""
    return Step(".map(f)", None, 2, 3)


@pytest.fixture
def op() -> Callable[..., Op]:
    """Make a step of a chain: `op("map", str)`."""

    def make(action: str, fn: Callable[..., Any], kind: type | None = None, position: int = 1) -> Op:
        return Op(action, fn, kind, Step(f".{action}({position})", None, position, 999))

    return make


@pytest.fixture
def explained_storage(spark_context: ds.Context) -> Iterator[ds.Context]:
    """A context on the Spark of the test run whose collections live in memory."""
    with ds.connect("local[2]", storage="memory:") as context:
        yield context
