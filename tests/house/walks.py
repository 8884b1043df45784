"""Five walks through the house: which of our modules an operation enters, and how often it goes from one to another.

A call counts if a function of ours is called, directly or through code of others, by a function in another module of
ours. All threads and all Python workers count; resumptions of generators and the bodies of modules do not. Each walk
runs once before it is counted, so that imports and first starts are not in it.
"""

from __future__ import annotations

import inspect
import operator
import pickle
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import dstream as ds
from collectors import grouping_by
from dstream.gatherers import window_sliding
from reducers import to_imap

__all__ = ["MASTER", "Walk", "walks"]

MASTER = "local[2]"
_HOME = Path(ds.__file__).parents[1]
_OURS = tuple(f"{_HOME / name}/" for name in ("collectors", "dstream", "reducers", "sources"))
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE


class Walk:
    """What was seen of one operation.

    Attributes:
        modules: the files that were entered.
        calls: how many calls went from one of them to another.
    """

    def __init__(self, ours: tuple[str, ...]) -> None:
        self.modules: set[str] = set()
        self.calls = 0
        self._ours = ours

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Look at an event, as `sys.setprofile` gives it."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(self._ours) or code.co_name == "<module>":
            return
        if code.co_flags & _GENERATORS and frame.f_lasti > _BEGINNING:
            return
        self.modules.add(code.co_filename)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(self._ours):
            caller = caller.f_back
        self.calls += caller is not None and caller.f_code.co_filename != code.co_filename


_BEGINNING = 4
"""A generator that has not begun yet stands at an instruction no later than this (CPython 3.11 to 3.13)."""


@contextmanager
def _on_workers(reports: Path) -> Iterator[None]:
    """Let Spark's workers count too, each task into a file of its own."""
    from pyspark.sql.classic.dataframe import DataFrame

    theirs: Any = DataFrame.mapInArrow
    ours = _OURS

    def map_in_arrow(frame: Any, function: Callable[..., Any], schema: Any) -> Any:
        def counted(batches: Iterator[Any]) -> Iterator[Any]:
            from tests.house.walks import Walk

            walk = Walk(ours)
            sys.setprofile(walk)
            try:
                yield from function(batches)
            finally:
                sys.setprofile(None)
                (reports / uuid.uuid4().hex).write_bytes(pickle.dumps((walk.modules, walk.calls)))

        return theirs(frame, counted, schema)

    DataFrame.mapInArrow = map_in_arrow  # type: ignore[method-assign]
    try:
        yield
    finally:
        DataFrame.mapInArrow = theirs  # type: ignore[method-assign]


def _walked(operation: Callable[[], object], reports: Path) -> Walk:
    operation()
    for report in reports.iterdir():
        report.unlink()
    walk = Walk(_OURS)
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        operation()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    for report in reports.iterdir():
        modules, calls = pickle.loads(report.read_bytes())
        walk.modules |= modules
        walk.calls += calls
    return walk


def walks() -> Iterator[tuple[str, Walk]]:
    """Give the name of each operation and what was seen of it, on a Spark session that is started for it."""
    with tempfile.TemporaryDirectory() as folder, _on_workers(reports := Path(folder, "reports")):
        reports.mkdir()
        with ds.connect(storage=str(Path(folder, "lake")), master=MASTER) as context:
            squares = context.get_map("squares")
            squares.update({number: number * number for number in range(20)})
            for name, operation in _operations(context):
                yield name, _walked(operation, reports)


def _operations(context: ds.Context) -> Iterator[tuple[str, Callable[[], object]]]:
    def items() -> ds.Stream[int]:
        return context.stream(range(8))

    yield (
        "map.filter.collect(grouping_by)",
        lambda: items().map(_next).filter(_is_odd).collect(grouping_by(_rest)),
    )
    yield "collect(to_imap)", lambda: items().collect(to_imap("counts", _rest, _one, operator.add))
    yield "map.stream().to_list()", lambda: context.get_map("squares").stream().to_list()
    yield "map[key]", lambda: context.get_map("squares")[3]
    yield "window_sliding.max", lambda: items().gather(window_sliding(3)).map(max).to_list()


def _next(number: int) -> int:
    return number + 1


def _is_odd(number: int) -> bool:
    return number % 2 == 1


def _rest(number: int) -> int:
    return number % 3


def _one(number: int) -> int:
    return 1
