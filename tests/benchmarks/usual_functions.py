"""`python -m tests.benchmarks.usual_functions`: how tasks evaluate 150 functions as data engineers write them.

With `times` it prints the CPU time of functions that Python evaluates in part between columns, and of the loop instead.

With `further` it takes those of `further_lambdas`.

Each function of `usual_lambdas` runs in a task of this process, on items of a source that it would have. Its route is
observed, and its results are compared with those of plain Python.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa
import pytest

from dstream.connectors.dataframes import rows_of_table
from dstream.engine.compiler import ClusterFacts
from dstream.engine.compiler.evaluation import read_op
from dstream.expressions.reader import Unreadable
from dstream.operators.columns import evaluation
from dstream.operators.columns.chain_evaluation import is_same
from dstream.operators.columns.python_rows import rows_by_python
from dstream.operators.columns.values import NotColumnar
from dstream.plan import Read, ToList, rewrite
from dstream.plan.operations.elementwise import Chain
from dstream.plan.steps import Op
from dstream.sources import csv_rows, json_lines, text_files
from dstream.stream import Stream
from sources import Items
from tests.engine.graphs_here import GraphHere
from tests.engine.watched_columns import Watched

__all__ = ["FURTHER", "USUAL", "Found", "counted", "main"]

USUAL, FURTHER = (Path(__file__).with_name(f"{name}_lambdas.py") for name in ("usual", "further"))
"""Scripts with functions."""
_ROWS = 5_000
"""More than a list or a range needs to become columns."""
_ROWS_OF_TABLE = 1_000
"""Enough to see the route of a function, since a table has columns however few its rows are; times need `_ROWS`."""
_LINES = 10_000
"""Of 54 bytes or more: beyond the 512 KB that a file needs."""


class Found(NamedTuple):
    """How tasks evaluate a function.

    Attributes:
        kind: what it does.
        items: what it takes.
        line: where it stands in the script.
        route: `"columns"`, `"inlined"` or `"called"`.
        why: the reason for another route than columns.
    """

    kind: str
    items: str
    line: int
    route: str
    why: str


def main() -> None:
    """Print routes or times."""
    if sys.argv[1:] == ["times"]:
        _print_times()
    else:
        _print_routes(FURTHER if sys.argv[1:] == ["further"] else USUAL)


def _print_routes(file: Path) -> None:
    """Print the number of functions by kind and route, and the reason for each that is not in columns."""
    with tempfile.TemporaryDirectory() as folder:
        found = list(counted(Path(folder), file=file))
    for each in found:
        if each.route != "columns":
            print(f"{each.kind:15}{each.items:8}{each.line:4} {each.route:8} {each.why}")
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    for each in found:
        by_kind[each.kind][each.route] += 1
        by_kind["all"][each.route] += 1
    print(f"\n{'kind':15}{'columns':>8}{'inlined':>8}{'called':>8}{'all':>8}")
    for kind, routes in sorted(by_kind.items(), key=lambda one: one[0] == "all"):
        print(f"{kind:15}" + "".join(f"{routes[each]:8}" for each in ("columns", "inlined", "called")), end="")
        print(f"{routes.total():8}")


def _print_times() -> None:
    """Print the nanoseconds of a row, the best of several runs in turns, with parts by Python and without."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        script, sources = _script(Path(folder), USUAL, _ROWS)
        for kind, items in (("regex", "sales"), ("formats", "sales"), ("optional", "sales"), ("regex", "lines")):
            functions, best = script["FUNCTIONS"][kind][items], [1e9, 1e9]
            for _ in range(_RUNS):
                for place, by_python in enumerate((rows_by_python, _refused)):
                    patch.setattr(evaluation, "rows_by_python", by_python)
                    best[place] = min(best[place], sum(_seconds(sources[items], fn) for fn in functions))
            rows = len(functions) * (_LINES if items == "lines" else _ROWS)
            print(f"{kind} of {items}: {best[0] / rows * 1e9:.0f} and {best[1] / rows * 1e9:.0f} ns", flush=True)


_RUNS = 5


def _refused(*given: Any) -> NoReturn:
    raise NotColumnar("a part that Python would evaluate")


def _seconds(source: Any, fn: Callable[[Any], Any]) -> float:
    graph, began = _graph(source, fn), time.process_time()
    graph.run()
    return time.process_time() - began


def counted(folder: Path, only: frozenset[str] | None = None, file: Path = USUAL) -> Iterator[Found]:
    """Run the functions and give the route of each.

    Args:
        folder: takes the files that they read.
        only: the kinds that are run; None: all.
        file: the script that has them.

    Raises:
        AssertionError: a task returns something else than plain Python.
    """
    script, sources = _script(folder, file, _ROWS_OF_TABLE)
    with pytest.MonkeyPatch.context() as patch:
        watched = Watched(patch)
        for kind, by_items in script["FUNCTIONS"].items():
            for items, functions in by_items.items() if only is None or kind in only else ():
                for fn in functions:
                    line = getattr(getattr(fn, "__code__", None), "co_firstlineno", 0)
                    yield Found(kind, items, line, *_route(sources[items], fn, watched))


def _script(folder: Path, file: Path, rows: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the names of the script, and the sources of its items, with so many rows of tables."""
    script: dict[str, Any] = {"__name__": "__main__", "__file__": str(file)}
    exec(compile(file.read_text("utf-8"), str(file), "exec", dont_inherit=True), script)
    return script, {
        **{name: make(folder, script) for name, make in SOURCES.items()},
        **{name: rows_of_table(pa.table(_sales(rows)), kind and script[kind]) for name, kind in TABLES.items()},
    }


def _graph(source: Any, fn: Callable[[Any], Any]) -> GraphHere:
    end = rewrite(ToList(Stream(Read(source), None).parallel(1).map(fn)._node))
    return GraphHere(end, ClusterFacts(1, 1, 2**22))


def _route(source: Any, fn: Callable[[Any], Any], watched: Watched) -> tuple[str, str]:
    graph = _graph(source, fn)
    watched.begin()
    found = graph.items()
    expected = [fn(item) for split in source.splits(1) for item in split.read()]
    assert is_same(list(found), expected), f"another result of {fn}"
    (op,) = _ops(graph)
    if watched.has(op.evaluation.expression):
        return "columns", ""
    decided = read_op(op).decided
    if decided is not None and isinstance(decided.unread, Unreadable):
        return "called", decided.unread.reason
    why = op.evaluation.obstacle or "its items, or its results, stand in no columns"
    return ("inlined" if op.evaluation.is_inlined else "called"), why


def _ops(graph: GraphHere) -> Iterator[Op]:
    for vertex in graph.ran:
        for each in vertex.inputs:
            for applied in each.applied:
                if isinstance(applied.node, Chain):
                    yield from applied.node.ops


def _sales(rows: int) -> dict[str, Any]:
    """Return the columns of a table."""
    places = range(rows)
    cities = ("Berlin", "Paris", "Zürich", "Lyon", "Oslo")
    return {
        "id": list(places),
        "shop": [f" Shop  No{n % 40} " for n in places],
        "city": [cities[n % 5] for n in places],
        "country": [("de", "fr", "ch")[n % 3] for n in places],
        "amount": [n * 37 % 5_000 for n in places],
        "price": [n * 31 % 997 / 8 + 0.5 for n in places],
        "quantity": [n % 9 + 1 for n in places],
        "email": [f"user.{n % 700}@host{n % 20}.example" for n in places],
        "sku": [f"{'ABCD'[n % 4]}X-{n % 300}" for n in places],
        "status": [("open", "paid", "lost")[n % 3] for n in places],
        "tags": [("new,red", "old , blue", "x")[n % 3] for n in places],
        "note": [None if n % 4 == 0 else f"note {n % 50}" for n in places],
        "discount": [None if n % 3 else n % 10 / 20 for n in places],
        "paid": [n % 2 == 0 for n in places],
        "day": [date(2023, 11, 5) + timedelta(days=n % 400) for n in places],
        "at": [datetime(2024, 2, 27, 3, 4, 5) + timedelta(minutes=n * 7) for n in places],
        "total": [Decimal(n * 13 % 10_000) / 100 for n in places],
    }


def _lines(text: Callable[[int], str]) -> Callable[[Path, Mapping[str, Any]], Any]:
    def source(folder: Path, script: Mapping[str, Any]) -> Any:
        return text_files(_file(folder, ".txt", map(text, range(_LINES))))

    return source


def _file(folder: Path, ending: str, lines: Iterator[str]) -> str:
    path = folder / f"{len(list(folder.iterdir()))}{ending}"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(path)


def _log(n: int) -> str:
    level = ("INFO", "ERROR", "WARN")[n % 3]
    return f"2024-02-{n % 28 + 1:02} [{level}] code={n % 600} at the host{n % 7} in the hall of  dc{n % 3}"


def _event(n: int) -> str:
    return json.dumps({"user": f"User{n % 90}", "ms": n % 400, "host": {"dc": f"dc{n % 3}", "rack": n % 8, "os": "x"}})


_WORDS = ("The", "whale", "of", "a", "Sea", "12", "été", "bird.", "and", "x")


SOURCES: dict[str, Callable[[Path, Mapping[str, Any]], Any]] = {
    "lines": _lines(_log),
    "words": _lines(lambda n: _WORDS[n % len(_WORDS)] + "-" * (0 if n % 9 else 2_000)),
    "jsons": _lines(_event),
    "numbers": lambda folder, script: Items(range(_ROWS), 1),
    "orders": lambda folder, script: csv_rows(
        _file(folder, ".csv", (_order(n) for n in range(-1, 2 * _LINES))), kind=script["Order"]
    ),
    "events": lambda folder, script: json_lines(_file(folder, ".jsonl", map(_event, range(_LINES)))),
}
"""The items by the names that the script has for them."""
TABLES = {"sales": "Sale", "rows": None}
"""Rows of a table by the names that the script has for them, and the class that it has for such rows."""


def _order(n: int) -> str:
    return "number,customer,amount,day" if n < 0 else f"{n},customer {n % 80},{n % 900 / 4},2024-{n % 12 + 1:02}-09"


if __name__ == "__main__":
    main()
