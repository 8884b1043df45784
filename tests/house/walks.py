"""Walks through the house: the modules that an operation enters, and the calls between them, with columns on.

A call counts if a function of ours is called, directly or through code of others, by a function in another module of
ours. All threads and all Python workers count; resumptions of generators and the bodies of modules do not. Each walk
runs before it is counted, so that imports and first starts are not in it. A profiler turns columns off, as users
of profilers expect; here they stay on.
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
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import dstream as ds
from collectors import counting, grouping_by
from dstream.gatherers import window_sliding
from dstream.windows import tumbling
from reducers import to_file, to_imap
from sources import parquet_rows, stream_of, text_files

__all__ = ["MASTER", "Walk", "walks"]

MASTER = "local[2]"
_BEFORE = 3
"""Runs before the one that is counted: Spark may give the next one to a worker that has not run it yet."""
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


def _keep_columns() -> None:
    """Hide from modules that a profiler is set; each has the function under its own name."""
    for module in list(sys.modules.values()):
        if module is not None and module.__name__.startswith("dstream.") and "is_watched" in vars(module):
            module.is_watched = lambda: False  # type: ignore[attr-defined]


_BEGINNING = 4
"""A generator that has not begun yet stands at an instruction no later than this (CPython 3.11 to 3.13)."""


@contextmanager
def _on_workers(reports: Path) -> Iterator[None]:
    """Count in Spark's workers too, each task into a file of its own."""
    from dstream.engine.spark.port.classic import ClassicPort

    theirs: Any = ClassicPort.mapped
    ours = _OURS

    # Here, and not in `DataFrame.mapInArrow`, which stages that read another one's rows go past.
    def mapped(port: Any, frame: Any, function: Callable[..., Any], *schema_and_names: Any) -> Any:
        def counted(batches: Iterator[Any]) -> Iterator[Any]:
            from tests.house.walks import Walk, _keep_columns

            walk = Walk(ours)
            _keep_columns()
            sys.setprofile(walk)
            try:
                yield from function(batches)
            finally:
                sys.setprofile(None)
                (reports / uuid.uuid4().hex).write_bytes(pickle.dumps((walk.modules, walk.calls)))

        return theirs(port, frame, counted, *schema_and_names)

    ClassicPort.mapped = mapped  # type: ignore[method-assign]
    try:
        yield
    finally:
        ClassicPort.mapped = theirs  # type: ignore[method-assign]


def _walked(operation: Callable[[], object], reports: Path) -> Walk:
    for _ in range(_BEFORE):
        operation()
    for report in reports.iterdir():
        report.unlink()
    walk = Walk(_OURS)
    _keep_columns()
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
            for name, operation in _operations(context, Path(folder)):
                yield name, _walked(operation, reports)


def _operations(context: ds.Context, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    def items() -> ds.Stream[int]:
        return context.stream(range(8))

    squares = context.get_map("squares")
    counts = to_imap("words", _itself, _one, operator.add)
    books, table = folder / "books.txt", folder / "numbers.parquet"
    books.write_text("the whale and the sea\n" * 100)
    items().map(_numbered).collect(to_file(table))
    yield (
        "word count of text files into a map",
        lambda: context.read(text_files(books)).flat_map(str.split).collect(counts),
    )
    yield (
        "map.filter.collect(grouping_by)",
        lambda: items().map(_next).filter(_is_odd).collect(grouping_by(_rest)),
    )
    yield "map.stream().to_list()", lambda: squares.stream().to_list()
    yield "map[key]", lambda: squares[3]
    yield "map[key] = value", lambda: squares.update({3: 9})
    yield "window_sliding.max", lambda: items().gather(window_sliding(3)).map(max).to_list()
    yield "stream without an end, window, map (a job)", lambda: _windows_of_a_job(context)
    yield "dataclasses to one file of CSV", lambda: items().map(_numbered).collect(to_file(folder / "numbers.csv"))
    yield (
        "sum of a column of Parquet",
        lambda: context.read(parquet_rows(table, Numbered)).map_to_int(lambda row: row.number * 2).sum(),
    )


@dataclass(frozen=True)
class Numbered:
    """A row of the tables that are read and written."""

    number: int
    name: str


def _windows_of_a_job(context: ds.Context) -> None:
    events = [(number % 3, number * 1000) for number in range(20)]
    pipeline = ds.Pipeline()
    timed = pipeline.read_from(stream_of(events)).add_timestamps(operator.itemgetter(1))
    counts = timed.grouping_key(operator.itemgetter(0)).window(tumbling(5_000)).aggregate(counting())
    counts.write_to(to_imap("windows", _key_and_end, _result))
    context.new_job(pipeline).join()


def _key_and_end(result: Any) -> tuple[object, int]:
    return result.key, result.end


def _result(result: Any) -> object:
    return result.result


def _numbered(number: int) -> Numbered:
    return Numbered(number, f"number {number}")


def _itself(word: str) -> str:
    return word


def _next(number: int) -> int:
    return number + 1


def _is_odd(number: int) -> bool:
    return number % 2 == 1


def _rest(number: int) -> int:
    return number % 3


def _one(number: int) -> int:
    return 1
