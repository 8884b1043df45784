"""Programs of operations that move items, by chance: sorts, joins, distinct items and windows, in columns and not.

The tasks of each run in this process, one after another, and what they send to each other is pickled.
`python -m tests.soak.columns --kinds wide --programs 20000` runs many and says how many blocks stood in columns.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import itemgetter
from random import Random
from typing import Any
from unittest.mock import patch

import dstream.engine.compiler.sort_limit as compile_by_place
import dstream.operators.joins.columns as column_joining
import dstream.operators.rows.blocks as column_items
from dstream.connectors.files import parquet, splits
from dstream.engine.compiler import ClusterFacts
from dstream.operators.columns.arrow_rows import ReferredRows
from dstream.plan import ToList, is_ordered, rewrite
from dstream.stream import Stream
from tests.differential.column_programs import Checks, _step, judged, watched
from tests.differential.random_functions import FORMS, Form, items_of_form, source_of
from tests.differential.record_programs import Workshop, workshop
from tests.differential.text_programs import function_of
from tests.engine.graphs_here import GraphHere

__all__ = ["WideProgram", "main", "outcome", "program", "small_blocks"]

_OF_ROWS = 0.3
"""The share of programs that join rows."""
_KINDS = frozenset({int, float, bool, tuple, str, type(None)})
_OTHERS = [(number, str(number)) for number in range(-5, 25, 2)]


@dataclass(frozen=True)
class WideProgram:
    """A stream that is run.

    Attributes:
        stream: gives the items.
        is_ordered: whether they have an order.
        text: all of it, for messages.
        largest_small_side: how many bytes of one side of a join may travel to every task; below 0, none.
    """

    stream: Stream[Any]
    is_ordered: bool
    text: str
    largest_small_side: int


def program(seed: int, made_by: Workshop) -> WideProgram:
    """Make a program."""
    random = Random(seed)
    if random.random() < 0.6:
        source, form, shown = made_by.source(random)
        stream = made_by.ctx.read(source)
    else:
        form = random.choice(FORMS)
        items = items_of_form(form, random, random.randrange(0, 40))
        stream, shown = made_by.ctx.stream(items, random.randrange(1, 4)), str(items)
    texts = [shown]
    for number in range(random.randrange(0, 3)):
        action = random.choice(("map", "filter")) if number else "map"
        written, form = _step(action, form, random)
        texts.append(f"{action}({written})")
        stream = getattr(stream, action)(function_of(written))
    name, move = random.choice(_MOVES)
    if random.random() < _OF_ROWS:
        name, joined = random.choice(_JOINS_OF_ROWS)
        move = _behind_a_join(name, joined, form)
    written = source_of(form, random, random.choice("iiiffb"))
    made = move(stream, written, random)
    if random.random() < 0.3:
        made, name = made.map(_looked_into), f"{name}.looked_into"
    limit = random.choice((-1, 2**22))
    return WideProgram(made, is_ordered(rewrite(made._node)), f"{' '.join(texts)} {name} {written}", limit)


def _looked_into(item: Any) -> Any:
    """Look for what only Python sees, such as one NaN that stands twice; change what can be changed."""
    if not isinstance(item, tuple) or not item:
        return item
    for part in item:
        if isinstance(part, dict):
            part["more"] = len(part)
    return item.count(item[0]), item


def _pairs(form: str) -> Callable[[str], Callable[[Any], Any]]:
    return lambda written: function_of(f"lambda x: {form}".replace("KEY", written.removeprefix("lambda x: ")))


_KEY_AND_ITEM, _ITEM_TWICE, _KEY_TWICE = map(_pairs, ("(KEY, x)", "(x, x)", "(KEY, KEY, x)"))
_HOW: tuple[Any, ...] = ("inner", "left", "right", "full")
_Move = Callable[[Stream[Any], str, Random], Stream[Any]]
_SIDES = ("e.value[0]", "e.value[1]", "e.value[0]", "e.value[1]", "e.key")


def _behind_a_join(name: str, move: Callable[[Stream[Any], Any, Random], Stream[Any]], form: Form) -> _Move:
    """Return a join of rows, with steps behind that look at a few of their parts; some leave the columns, or fail."""
    sides = _SIDES if name == "join" else ("e",)

    def moved(stream: Stream[Any], written: str, random: Random) -> Stream[Any]:
        key = function_of(f"lambda x: {random.choice([*form.names('i'), *form.names('s'), '1'])}")
        made = move(stream, key, random)
        for _ in range(random.randrange(1, 4)):
            parts = [_of(random.choice(sides), source_of(form, random, random.choice("iifb"))) for _ in range(2)]
            action, body = random.choice((("filter", parts[0]), ("map", f"(e.key, ({parts[0]}, {parts[1]}))")))
            if action == "map" and name != "join":
                return made.map(function_of(f"lambda e: ({parts[0]}, {parts[1]})"))
            made = getattr(made, action)(function_of(f"lambda e: {body}"))
            if action == "map":
                return made
        return made.map(function_of(f"lambda e: {_of(sides[0], source_of(form, random, 'i'))}"))

    return moved


def _of(side: str, written: str) -> str:
    """Return what a function gives, for another item than its argument."""
    tree = ast.parse(written, mode="eval").body
    assert isinstance(tree, ast.Lambda), "it is a function"

    class Renamed(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> Any:
            return ast.parse(side, mode="eval").body if node.id == "x" else node

    return ast.unparse(Renamed().visit(tree.body))


_JOINS_OF_ROWS: list[tuple[str, Callable[[Stream[Any], Any, Random], Stream[Any]]]] = [
    ("join", lambda stream, key, random: stream.join(stream, on=key)),
    ("join", lambda stream, key, random: stream.join(stream, on=key, how=random.choice(_HOW))),
    ("join", lambda stream, key, _: stream.key_by(key).join(stream.key_by(key))),
    ("semi_join", lambda stream, key, _: stream.semi_join(stream.limit(5), on=key)),
]
_MOVES: list[tuple[str, _Move]] = [
    ("sorted", lambda stream, key, random: stream.sorted(function_of(key), reverse=random.random() < 0.5)),
    ("sorted", lambda stream, key, random: stream.sorted(function_of(key)).filter(function_of(key))),
    ("sorted pairs", lambda stream, key, _: stream.map(_KEY_AND_ITEM(key)).sorted(itemgetter(0))),
    ("sorted results", lambda stream, key, random: stream.map(function_of(key)).sorted(reverse=random.random() < 0.5)),
    ("top", lambda stream, key, random: stream.top(random.randrange(1, 5), function_of(key))),
    ("distinct", lambda stream, key, _: stream.distinct()),
    ("distinct results", lambda stream, key, _: stream.map(function_of(key)).distinct()),
    ("item twice", lambda stream, key, _: stream.map(_ITEM_TWICE(key))),
    ("key twice", lambda stream, key, _: stream.map(_KEY_TWICE(key))),
    ("key_by", lambda stream, key, _: stream.key_by(function_of(key))),
    ("pairwise", lambda stream, key, _: stream.pairwise()),
    ("pairwise results", lambda stream, key, _: stream.map(function_of(key)).pairwise().filter(_differ)),
    ("join", lambda stream, key, random: _joined(stream.map(_KEY_AND_ITEM(key)), random)),
    ("join", lambda stream, key, random: _joined(stream.key_by(function_of(key)), random)),
    ("semi_join", lambda stream, key, _: stream.map(_KEY_AND_ITEM(key)).semi_join(_OTHERS)),
    ("subtract", lambda stream, key, _: stream.map(function_of(key)).subtract(range(-3, 9, 2))),
]
_differ = function_of("lambda x: x[0] != x[1]")


def _joined(pairs: Stream[Any], random: Random) -> Stream[Any]:
    return pairs.join(_OTHERS, how=random.choice(_HOW))


def outcome(made: WideProgram, columns: Any) -> Any:
    """Return what a program gives, or that it fails: where items are wrong for two steps, either may be told."""
    end = rewrite(ToList(made.stream._node))
    try:
        items = GraphHere(end, ClusterFacts(3, 2, made.largest_small_side, columns=columns)).items()
    except Exception:
        return ("fails",)
    found = list(map(_told, items))
    return "gives", found if made.is_ordered else sorted(found, key=repr)


def _told(value: Any) -> Any:
    """Return what tells values apart: types, and digits of floats."""
    if isinstance(value, tuple | list):
        return type(value).__name__, *map(_told, value)
    if isinstance(value, dict):
        return type(value).__name__, *((key, _told(each)) for key, each in value.items())
    return type(value).__name__, repr(value)


@contextmanager
def small_blocks() -> Iterator[None]:
    """Put a few items of any kind into columns, in several tasks."""
    with ExitStack() as patches:
        few = {"_FEWEST": 1, "_ROWS": 5, "_WORTH_A_LIST": 0, "_NUMBERS": _KINDS}
        patches.enter_context(patch.multiple(column_items, **few))
        patches.enter_context(patch.multiple(parquet, _FIRST_ROWS=3, _ROWS=5))
        patches.enter_context(patch.object(splits, "SMALLEST_SPLIT", 1))
        patches.enter_context(patch.object(compile_by_place, "_ITEMS_WORTH_A_TARGET", 4))
        yield


def main(first: int, last: int) -> Counter[str]:
    """Run programs; print those that differ, and return what became of all."""
    counts: Counter[str] = Counter()
    with watched(counts), _late_rows(counts), small_blocks():
        for start in range(first, last, 500):
            with workshop() as made_by:
                judged(range(start, min(start + 500, last)), functools.partial(_checks_of, made_by), counts)
    return counts


@contextmanager
def _late_rows(counts: Counter[str]) -> Iterator[None]:
    """Count the blocks of which only some parts travel, and those that are read again."""
    refer, read_again = column_joining.referred_rows, ReferredRows.read_again

    def referred(rows: Any, wanted: Any) -> Any:
        found = refer(rows, wanted)
        counts["blocks in parts"] += found is not None
        return found

    def again(rows: ReferredRows, reopened: Any) -> Any:
        counts["read again"] += 1
        return read_again(rows, reopened)

    with patch.object(column_joining, "referred_rows", referred), patch.object(ReferredRows, "read_again", again):
        yield


def _checks_of(made_by: Workshop, seed: int) -> tuple[str, Checks]:
    made = program(seed, made_by)
    found, expected = (outcome(made, columns) for columns in ("auto", "off"))
    return made.text, [(expected[0], found, [expected])]
