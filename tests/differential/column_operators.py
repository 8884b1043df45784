"""Operators on columns by chance, and what the same operators give without columns, in value, type, order and failure.

`python -m tests.soak.columns --kinds operator --programs 20000` runs many and prints how many batches had columns.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

import dstream.engine.tasks.distinct as distinct_routing
import dstream.engine.tasks.routing as routing
import dstream.engine.tasks.sorting as sorting
import dstream.operators.columns.distinct as column_distinct
import dstream.operators.columns.entries as column_entries
import dstream.operators.columns.groups as column_groups
import dstream.operators.columns.ranks as column_sorting
import dstream.operators.columns.top as column_top
import dstream.operators.columns.windows as column_windows
import dstream.operators.joins.columns as column_joining
import dstream.operators.joins.key_index as key_index
from collectors import bottom_n, max_by, min_by, to_list, top_n
from dstream.base.pickling import dumps
from dstream.engine.compiler.evaluation import step_evaluation
from dstream.engine.tasks.distinct import (
    RouteBack,
    RouteFirsts,
    RouteForward,
    back_in_order,
    distinct_in_task,
    first_of_each,
    first_of_forwarded,
    one_of_each,
    read_forwarded,
    read_placed,
)
from dstream.engine.tasks.gatherers import AccumulateAcross, AccumulateInside, Bordering
from dstream.engine.tasks.readers import read_batches, read_buckets
from dstream.engine.tasks.routing import RouteSide
from dstream.engine.tasks.rows import SAMPLE, Row
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import Accumulate
from dstream.engine.tasks.sorting import RouteByRange, SortAlone, SortRuns, merge_ranges
from dstream.failures import naming
from dstream.failures.account import known_of
from dstream.gatherers import window_sliding
from dstream.operators.columns.built_rows import BuiltRows
from dstream.operators.columns.entries import JoinedRows, entries_of
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.values import Column, NotColumnar, Objects, Tuples, column_of, items_of, rows_at
from dstream.operators.joins.hash import Matching, Membership
from dstream.operators.joins.pairs import join_batches, join_with
from dstream.operators.rows.batches import loads
from dstream.operators.rows.blocks import Block, ColumnItems, LazyRows, given, one_after_another
from dstream.operators.rows.gatherers import gathered, gathered_ahead
from dstream.operators.rows.group_tables import collected
from dstream.operators.rows.keys import KeysAlone, Side
from dstream.operators.rows.operations import operated, operation
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.sort_limit import Limit, Skip, Sorted, Top
from dstream.plan.steps import KeyInColumns, Op, Step, unchanged
from dstream.stream.reductions import extreme
from dstream.values import Entry
from dstream.values.bad_records import EncodedLines
from dstream.values.entries import as_entry, key_of
from tests.differential.column_programs import Checks, judged
from tests.differential.random_functions import FORMS, Form, function_of, items_of_form, source_of
from tests.differential.written_expressions import expression_of

__all__ = ["Program", "main", "outcomes", "program", "watched"]

_BOUND = 2**40
_STEP = Step("operator", None, 1, 1)
_SOURCE = Limit(None, 0, step=_STEP)  # type: ignore[arg-type]  # Nobody asks it.


@dataclass(frozen=True)
class Program:
    """Items of some tasks, and an operator.

    Attributes:
        parts: the items of each task, in blocks.
        operator: `"sorted"`, `"top"`, `"join"`, `"distinct"`, `"windows"`, `"borders"`, `"skip"` or `"first"`.
        key: gives the key of an item; None: the item is it.
        columns: how keys may stand in columns; None: not at all.
        reverse: the greatest key comes first.
        targets: in how many places items meet.
        text: all of it, for messages.
        behind: steps behind a join, as what they do and their sources; those without one are functions.
    """

    parts: list[list[list[Any]]]
    operator: str
    key: Callable[[Any], Any] | None
    columns: KeyInColumns | None
    reverse: bool
    targets: int
    text: str
    behind: tuple[tuple[str, Any], ...] = ()

    def verified(self) -> Program:
        """Return it so that what columns give is compared with what Python gives."""
        return replace(self, columns=self.columns and replace(self.columns, is_verified=True))


def program(seed: int) -> Program:
    """Make a program."""
    random = Random(seed)
    form = random.choice(FORMS)
    parts = [[_items(form, random) for _ in range(random.randrange(4))] for _ in range(random.randrange(1, 4))]
    source = None if random.random() < 0.3 and not form.is_tuple else _key(form, random)
    key = None if source is None else function_of(source)
    columns = KeyInColumns(expression_of(source or "lambda x: x") if random.random() < 0.8 else None, False)
    operator, reverse, targets = (
        random.choice(("sorted", "top", "first")),
        random.random() < 0.5,
        random.randrange(1, 5),
    )
    choice = random.random()
    if choice < 0.3:
        return _join(random, targets)
    if choice < 0.4:
        operator = random.choice(("windows ahead", "windows alone", "borders", "skip"))
        return Program(parts, operator, None, columns, reverse, targets, f"{parts} {operator}, {targets} in each")
    if choice < 0.55:
        operator = random.choice(("distinct ordered", "distinct unordered", "distinct forward", "distinct here"))
        if random.random() < 0.4:
            parts = [[[*map(_second_of, _numbered_texts(random))] for _ in part] for part in parts]
        return Program(parts, operator, None, columns, False, targets, f"{parts} {operator}, targets={targets}")
    if choice < 0.65:
        parts = [[_numbered_texts(random) for _ in range(random.randrange(4))] for _ in range(random.randrange(1, 4))]
        source, operator = "lambda x: x[0]", "sorted"
        if random.random() < 0.6:
            source, operator = "lambda x: x[1]", random.choice(("top", "first"))
        key, columns = function_of(source), KeyInColumns(expression_of(source), False)
        if operator != "sorted" and random.random() < 0.4:
            parts = [[[text for _, text in block] for block in part] for part in parts]
            source, key, columns = None, None, KeyInColumns(expression_of("lambda x: x"), False)
    text = f"{parts} {operator} by {source}, reverse={reverse}, targets={targets}"
    return Program(parts, operator, key, columns, reverse, targets, text)


def _numbered_texts(random: Random) -> list[Any]:
    """Return pairs of a number, of which several are equal, and a text."""
    numbers = random.choice(([-1, 0, 1, 2], [-1, 0, 1, 2], [0.0, -0.0, math.nan, 1.5], [True, False]))
    size = random.randrange(12)
    items: list[Any] = [(random.choice(numbers), random.choice(_TEXTS) + random.choice(_TEXTS)) for _ in range(size)]
    if random.random() < 0.1:
        items.append((random.choice(numbers), random.choice([None, 1, "\ud800"])))
    return items


def _second_of(item: Any) -> Any:
    return item[1]


def _join(random: Random, targets: int) -> Program:
    kinds = random.choice(([4, 4], [random.choice((0, 0, 0, 1, 2, 3, 4)) for _ in range(2)]))
    sides = [[[_pairs(random, kind) for _ in range(random.randrange(4))] for _ in range(2)] for kind in kinds]
    how, holds_left, travels = random.choice(_HOWS), random.random() < 0.5, random.random() < 0.3
    if how in _OF_KEYS or (travels and how != "inner"):
        holds_left = how == "right"
    travels = travels and how != "full"
    operator = f"join {how} {'left' if holds_left else 'right'} {'travels' if travels else 'meets'}"
    source = random.choice(_KEYS_OF_PAIRS) if random.random() < 0.5 else None
    key = None if source is None else function_of(source)
    if how in _OF_KEYS and random.random() < 0.4:
        sides = [[[list(map(_first_of, block)) for block in part] for part in side] for side in sides]
        key, source = unchanged, "itself"
    behind: tuple[tuple[str, Any], ...] = ()
    if random.random() < 0.4:
        sides = [[[_records(random) for _ in range(random.randrange(4))] for _ in range(2)] for _ in range(2)]
        source = random.choice(_KEYS_OF_RECORDS)
        key = function_of(source)
        behind = tuple(random.sample(_OF_ROWS if how in _OF_KEYS else _OF_PAIRS, random.randrange(4)))
        if how not in _OF_KEYS and random.random() < 0.4:
            # Only rows that pass by where they are read have dicts that are not made.
            side, targets, operator = int(holds_left), 2, f"join inner {'left' if holds_left else 'right'} travels"
            sides[side] = [[list(map(_within_pair, block)) for block in part] for part in sides[side]]
            sides[1 - side] = [[list(map(_alone, block)) for block in part] for part in sides[1 - side]]
            steps = [(action, f"lambda x: {does.format(f'x.value[{side}]')}") for action, does in _OF_NESTED]
            key, source, behind = None, None, (*random.sample(steps, random.randrange(1, 3)), ("map", _grow))
    read = expression_of(source) if source is not None and key is not unchanged and random.random() < 0.8 else None
    text = f"{sides} {operator} by {source} {targets} {read is not None} {behind}"
    return Program(sides[0] + sides[1], operator, key, KeyInColumns(read, False), False, targets, text, behind)


def _records(random: Random) -> list[Any]:
    """Return dicts, most of which may be columns, and of which several have one key."""
    texts, kinds = random.random() < 0.5, random.choice(([int], [int], [float], [int, None]))
    found: list[Any] = []
    for number in range(random.randrange(12)):
        kind = random.choice(kinds)
        key = random.choice(("a", "b", "é", "")) if texts else random.randrange(4)
        found.append({"k": key, "v": None if kind is None else kind(number), "t": str(number)})
    if random.random() < 0.1:
        found.append(
            random.choice([{"v": 1, "k": 2, "t": ""}, {"k": True, "v": 1, "t": ""}, {"k": None, "v": 0, "t": ""}, {}])
        )
    return found


_KEYS_OF_RECORDS = (
    "lambda x: x['k']",
    "lambda x: x['k']",
    "lambda x: x['v']",
    "lambda x: x['v'] % 3",
    "lambda x: x['t'] + ''",
)


def _grow(item: Any) -> Any:
    """Change what the item has, and so what others have that share it."""
    for each in [item] if isinstance(item, dict) else [item, *item] if isinstance(item, tuple) else []:
        for part in each if isinstance(each, tuple) else [each]:
            while isinstance(part, dict):
                part["v"] = 10 + (part.get("v") or 0)
                part = part.get("row")
    return item


_OF_PAIRS = [
    ("map", "lambda x: (x.key, (x.value[0], {'v': x.value[1]['v'] + 1}))"),
    ("map", "lambda x: (x.key, (x.value[0]['v'], x.value[1]['t']))"),
    ("map", "lambda x: (x.key, ({'v': x.value[1]['v'], 'row': x.value[1]}, {**x.value[1], 'v': 5}))"),
    ("map", "lambda x: x.value[1]"),
    ("filter", "lambda x: x.value[1]['v'] > 2"),
    ("filter", "lambda x: x.value[0]['t'] < '3'"),
    ("filter", "lambda x: x.value[0]['v'] + x.value[1]['v'] < 12"),
    ("map", _grow),
    ("map", _grow),
]
_OF_NESTED = [
    ("filter", "{}[0] != 2"),
    ("map", "({0}[1], {0}[0])"),
    ("map", "{}[1]"),
    ("map", "(x.key, {}[1])"),
]
_OF_ROWS = [("map", "lambda x: (x['v'], x['t'])"), ("filter", "lambda x: x['v'] > 2"), ("map", _grow)]


def _within_pair(item: Any) -> Any:
    """Return a key and a value that has a dict within a tuple."""
    return item.get("k"), (len(item.get("t", "")), item)


def _alone(item: Any) -> Any:
    return item.get("k"), item.get("t")


def _first_of(item: Any) -> Any:
    return item[0] if type(item) is tuple else item


_OF_KEYS = ("semi", "anti")
_HOWS = ("inner", "left", "right", "full", *_OF_KEYS)
_KEYS_OF_PAIRS = ("lambda x: x[0]", "lambda x: x[1]", "lambda x: x[0] % 3", "lambda x: x", "lambda x: 1")


_TEXTS = ("", "a", "b", "ab", "é", "𝄞", "\n", "a\n", "a\0")


def _pairs(random: Random, kind: int) -> list[Any]:
    small = [random.randrange(-3, 8) for _ in range(random.randrange(12))]
    if kind == 1:
        small = [random.choice((each, each, float(each), each == 1, 2**63 + each, -(2**63), -1)) for each in small]
    if kind == 4:
        small = [random.choice(_TEXTS)[: each % 3] + random.choice(_TEXTS) for each in small]
    value = random.choice((int, int, float, str, lambda number: math.nan if number % 3 else 0.5))
    items: list[Any] = [(key, (number, "x") if kind == 2 else value(number)) for number, key in enumerate(small)]
    if random.random() < 0.1:
        items.insert(random.randrange(len(items) + 1), random.choice([("a", 1), ((1, None), 2), (math.nan, 3), 7]))
    return [Entry(*each) if kind == 3 and isinstance(each, tuple) else each for each in items]


def _items(form: Form, random: Random) -> list[Any]:
    items = items_of_form(form, random, random.randrange(0, 20))
    if random.random() < 0.1 and not form.is_tuple:
        items += [random.choice((1.0, True, 0.0, -0.0, False, 2.0))] * random.randrange(1, 9)
    return items


def _key(form: Form, random: Random) -> str:
    key = source_of(form, random, random.choice("iiiffb"))
    names = [name for kind in "ifb" for name in form.names(kind)]
    return f"lambda x: {random.choice(names)}" if names and random.random() < 0.5 else key


Outcome = tuple[Any, ...]


def outcomes(made: Program, seed: int) -> tuple[Outcome, Outcome]:
    """Return what an operator gives on columns, and without them."""
    random = Random(seed)
    short, long = random.choice((1, 3, 8)), random.choice((2, 8, 20))
    sizes = {"_RUN_ITEMS": short, "_RANKED_RUN_ITEMS": long, "_SAMPLE_ITEMS": random.randrange(1, 5)}
    limits = {
        "_ROWS": random.choice((1, 3, 16)),
        "_MOST_COLUMNS": random.choice((-1, 2**27)),
        "_MOST_HEADS": random.choice((-1, 2**27)),
    }
    join = {"_MOST_ENTRIES": random.choice((1, 7)), "_FEWEST_LOOKED_UP": random.choice((1, 9))}
    with (
        patch.multiple(sorting, **sizes),
        patch.multiple(column_sorting, **limits),
        patch.multiple(column_joining, **join),
        patch.multiple(
            key_index,
            _FEW_ROUNDS=random.choice((1, 64)),
            _MOST_ROUNDS=random.choice((1, 2, 256)),
            _MIXER=np.uint64(random.choice((0, 2**40 + 1))),
            _MOST_BYTES=random.choice((0, 8, 256)),
        ),
        patch.object(routing, "_MOST_JOINED", short),
        patch.multiple(
            distinct_routing, _MOST_ROWS=random.choice((1, 2**20)), _MOST_BYTES=random.choice((1, 9, 2**26))
        ),
        patch.multiple(column_distinct, _ROWS_OF_PART=random.choice((1, 2, 2**20))),
        patch.multiple(column_groups, _FEW_KEYS=random.choice((1, 2**16))),
    ):
        found = _outcome(made, in_columns=True)
        expected = _outcome(replace(made, columns=None), in_columns=False)
        return found, found if expected is _UNCOMPARABLE else expected


_UNCOMPARABLE = ("fails", "keys of several types")
"""Whether two of them that cannot be compared meet depends on how many items stand in a run."""


def _outcome(made: Program, *, in_columns: bool) -> Outcome:
    try:
        return "gives", _told(_RUN[made.operator.split()[0]](made, [_given(part, in_columns) for part in made.parts]))
    except Exception as error:
        failure = known_of(error)
        blamed = None if failure is None else _told(failure.item)
        if "not supported between instances" in str(error):
            return _UNCOMPARABLE
        return "fails", type(error), str(error), blamed


def _given(part: list[list[Any]], in_columns: bool) -> Iterator[Any]:
    part = deepcopy(part)  # A program may change its items.
    if in_columns:
        return ColumnItems(map(_block, part))
    return (item for block in part for item in block)


def _block(items: list[Any]) -> Block:
    if any(type(item) is Entry for item in items):
        return _entries_of(items)
    if items and all(type(item) is dict and tuple(item) == ("k", "v", "t") for item in items):
        return _rows_of(items)
    if len(items) % 3 == 1 and all(type(item) is str and _NOT_IN_LINES.isdisjoint(item) for item in items):
        lines = "".join(f"{item}\n" for item in items)
        return EncodedLines(lines.encode(), is_ascii=lines.isascii(), are_few=len(items) == 1)
    try:
        return _column(items) if len(items) % 4 else iter(items)
    except NotColumnar:
        return iter(items)


def _entries_of(items: list[Any]) -> Block:
    try:
        are_entries = len(items) % 4 and all(type(item) is Entry for item in items)
        return entries_of(column_of([tuple(item) for item in items])) if are_entries else iter(items)
    except NotColumnar:
        return iter(items)


def _column(items: list[Any]) -> Column:
    """Return a column of items, those that have dicts as `_within_pair` returns them.

    Raises:
        NotColumnar: they are of several types.
    """
    if items and all(type(item) is tuple and [*map(tuple, _dicts(item))] == [("k", "v", "t")] for item in items):
        keys, values = ([*each] for each in zip(*items, strict=True))
        numbers, dicts = ([*each] for each in zip(*values, strict=True))
        return Tuples((column_of(keys), Tuples((column_of(numbers), _rows_of(dicts)), len(items))), len(items))
    return column_of(items)


_NOT_IN_LINES = {"\n", "\ud800"}


def _rows_of(items: list[Any]) -> BuiltRows:
    members = {}
    for name in items[0]:
        values = [item[name] for item in items]
        try:
            members[name] = column_of(values)
        except NotColumnar:
            members[name] = Objects(values)
    return BuiltRows(dict, members, len(items))


def _told(value: Any) -> Any:
    """Return what tells values apart: types, and digits of floats."""
    if isinstance(value, tuple | list):
        return type(value), *map(_told, value)
    if isinstance(value, dict):
        return type(value), *((_told(key), _told(each)) for key, each in value.items())
    return type(value), repr(value)


def _sorted(made: Program, parts: Sequence[Iterator[Any]]) -> list[Any]:
    if made.targets == 1:
        columns = made.columns or KeyInColumns(None, False)
        otherwise = operation(Sorted(_SOURCE, made.key, made.reverse, step=_STEP))
        alone = SortAlone(made.key, made.reverse, _STEP, columns, (), otherwise)
        return list(alone(one_after_another(iter(parts)), StageTask(0, _BOUND)))
    runs, samples, sent = [], [], list[Row]()
    sink = SortRuns(made.key, made.reverse, _STEP, made.columns)
    for number, items in enumerate(parts):
        rows = list(sink(items, StageTask(number, _BOUND)))
        samples += [row.payload for row in rows if row.channel == SAMPLE]
        runs.append([row for row in rows if row.channel != SAMPLE])
    for number, rows in enumerate(runs):
        route = RouteByRange(made.key, made.reverse, samples, made.targets, _STEP, made.columns)
        sent += route(read_batches(iter(rows)), StageTask(number, _BOUND)) if samples and made.targets > 1 else rows
    found = []
    for target in range(made.targets):
        batches = read_batches(row for row in sent if row.target == target)
        found += merge_ranges(made.key, made.reverse, _STEP, batches, StageTask(target, _BOUND))
    return found


def _top(made: Program, parts: Sequence[Iterator[Any]]) -> list[Any]:
    top = Top(_SOURCE, made.targets * 2, made.key, made.reverse, True, step=_STEP)
    first = operation(replace(top, columns=made.columns))
    candidates = [list(first(items, StageTask(number, _BOUND))) for number, items in enumerate(parts)]
    return list(operated((operation(top),), (item for each in candidates for item in each), StageTask(0, _BOUND)))


def _joined(made: Program, parts: Sequence[Iterator[Any]]) -> list[Any]:
    _, how, held_side, way = made.operator.split()
    holds_left, in_columns = held_side == "left", made.columns is not None
    matching: Matching | Membership = Matching.of(how, holds_left)
    read = made.columns if made.columns is not None and made.columns.expression is not None else None
    side = other = Side(made.key, _STEP, read)
    if how in _OF_KEYS:
        matching = Membership(how == "semi")
        side, other = Side(made.key or key_of, _STEP, read), KeysAlone(made.key or key_of, _STEP, read)
    lefts, rights = parts[:2], parts[2:]
    held, passing = (lefts, rights) if holds_left else (rights, lefts)
    route, route_held = (RouteSide(each, made.targets, in_columns) for each in (side, other))
    if way == "travels":
        payloads = [row.payload for items in held for row in route_held(items, StageTask(0, _BOUND))]
        if made.targets % 2:
            # Batches for several targets stand in the order in which they were full.
            kept = sorted((row for items in passing for row in route(items, StageTask(1, _BOUND))), key=_target)
            batches = read_buckets(iter(kept))
            return _behind(made, join_with(payloads, matching, _STEP, None, batches, StageTask(1, _BOUND)))
        tasks = [join_with(payloads, matching, _STEP, side, items, StageTask(1, _BOUND)) for items in passing]
        return [item for each in tasks for item in _behind(made, each)]
    sent = [row for items in held for row in route_held(items, StageTask(0, _BOUND))]
    others = (row for items in passing for row in route(items, StageTask(1, _BOUND)))
    sent += [row._replace(target=row.target + made.targets) for row in others]
    found: list[Any] = []
    for target in range(made.targets):
        here = read_buckets(row for row in sent if row.target % made.targets == target)
        found += _behind(made, join_batches(matching, _STEP, made.targets, here, StageTask(target, _BOUND)))
    return found


def _behind(made: Program, joined: Any) -> list[Any]:
    """Return the items of a join behind the steps, and which of their dicts are one object."""
    if next(_dicts(made.parts), None) is None:
        return list(_by_blocks(joined))
    ops = [_op(*each, in_columns=made.columns is not None) for each in made.behind]
    steps = operation(Chain(_SOURCE, tuple(ops), step=_STEP))
    found = list(steps(joined, StageTask(1, _BOUND)) if ops else joined)
    seen: dict[int, int] = {}
    shared = [seen.setdefault(id(each), len(seen)) for each in _dicts(found)]
    return [*found, tuple(shared)]


def _op(action: Any, does: Any, *, in_columns: bool) -> Op:
    if not isinstance(does, str):
        return Op(action, does, None, _STEP)
    op = Op(action, function_of(does), None, _STEP)
    return replace(op, evaluation=step_evaluation(op, expression_of(does))) if in_columns else op


def _dicts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ():
        yield from _dicts(each)


def _by_blocks(joined: Any) -> Iterator[Any]:
    """Give the items of a join, whose rows were chosen, and have travelled or are read in columns, in two of three."""
    for number, block in enumerate(joined.blocks()):
        if isinstance(block, JoinedRows) and number % 3 == 0:
            yield from _read(rows_at(block, np.arange(block.size)))
        else:
            is_unmade = isinstance(block, LazyRows) and number % 3 == 1
            yield from given(loads(dumps(rows_at(block, np.arange(block.size)))) if is_unmade else block)


def _read(block: JoinedRows) -> Iterator[Any]:
    """Give entries by the columns of their parts, which steps behind a join look at, if there are any."""
    try:
        found = items_of(evaluated(_PARTS, (block,)))
    except NotColumnar:
        yield from given(block)
        return
    yield from (as_entry((key, (left, right))) for key, left, right in found)


_PARTS = expression_of("lambda x: (x[0], x[1][0], x[1][1])")


def _distinct(made: Program, parts: Sequence[Iterator[Any]]) -> list[Any]:
    if made.operator == "distinct here":
        return [*distinct_in_task(_STEP, one_after_another(iter(parts)), StageTask(0, _BOUND))]
    if made.operator == "distinct forward":
        return _distinct_forward(parts, 1 if made.targets == 1 else len(parts))
    is_ordered = made.operator == "distinct ordered"
    route, rows = RouteFirsts(made.targets, _STEP, is_ordered), list[Row]()
    for number, items in enumerate(parts):
        rows += route(items, StageTask(number, _BOUND))
    found: list[Any] = []
    sent: list[Row] = []
    for target in range(made.targets):
        task, here = StageTask(target, _BOUND), [row for row in rows if row.target == target]
        if is_ordered:
            firsts = first_of_each(_STEP, read_placed(iter(here)), task)
            sent += RouteBack(len(parts), made.targets)(firsts, task)
        else:
            found += one_of_each(_STEP, read_batches(iter(here)), task)
    for target in range(made.targets if is_ordered else 0):
        batches = read_batches(row for row in sent if row.target == target)
        found += back_in_order(batches, StageTask(target, _BOUND))
    return found if is_ordered else sorted(found, key=repr)


def _distinct_forward(parts: Sequence[Iterator[Any]], partitions: int) -> list[Any]:
    """Give the items of each target; all of them share one partition, or none does."""
    route, rows, found = RouteForward(None, len(parts), _STEP), list[Row](), list[Any]()
    for number, items in enumerate(parts):
        rows += route(items, StageTask(number, _BOUND))
    rows.sort(key=lambda row: (row.target, row.source, row.sequence))
    for number in range(partitions):
        here = (row for row in rows if row.target % partitions == number)
        found += first_of_forwarded(None, _STEP, read_forwarded(here), StageTask(number, _BOUND))
    return found


def _windows(made: Program, parts: Sequence[Iterator[Any]]) -> list[Any]:
    """Give the windows of each part, with the items of the others behind it; those of all of them for one task."""
    if made.operator == "windows alone":
        return list(gathered(window_sliding(made.targets), _STEP, one_after_another(iter(parts)), StageTask(0, _BOUND)))
    kind, before, found = _kind(made), 0, list[Any]()
    for number, own in enumerate(parts):
        behind = chain.from_iterable(chain.from_iterable(made.parts[number + 1 :]))
        found += gathered_ahead(kind, own, behind, lambda seen=before: seen == 0)  # type: ignore[misc]
        before += sum(map(len, made.parts[number]))
    return found


def _skipped(made: Program, parts: Sequence[Iterator[Any]]) -> list[Any]:
    """Give the items behind the first ones, to who asks for items or for blocks."""
    skip = operation(Skip(_SOURCE, made.targets * 2 - 2, step=_STEP))
    behind = skip(one_after_another(iter(parts)), StageTask(0, _BOUND))
    if made.reverse or type(behind) is not ColumnItems:
        return list(behind)
    return [item for block in behind.blocks() for item in given(block)]


def _first(made: Program, parts: Sequence[Iterator[Any]]) -> Any:
    """Collect the first of some items in the order of their keys, in each part, and together."""
    extremes = [min_by, max_by, functools.partial(top_n, made.targets), functools.partial(bottom_n, made.targets)]
    extremes += [functools.partial(extreme, max), functools.partial(extreme, min)]
    collector: Any = extremes[(made.targets + 3 * made.reverse) % len(extremes)](made.key)
    known = collector.on_columns()
    if made.columns is not None:
        known = replace(known, expression=made.columns.expression, is_verified=made.columns.is_verified)
    collector = replace(collector, in_columns=None if made.columns is None else known)
    with naming(_STEP):
        containers = [collected(collector, items) for items in parts]
        return repr(collector.finisher(functools.reduce(collector.combined, containers)))


def _kind(made: Program) -> Any:
    return window_sliding(made.targets).parallel


def _borders(made: Program, parts: Sequence[Iterator[Any]]) -> list[Any]:
    """Give the windows that lie inside of each part, and then those across borders, in order."""
    source = "lambda x: (x, len(x))"
    op = Op("map", function_of(source), None, _STEP)
    op = replace(op, evaluation=step_evaluation(op, expression_of(source) if made.columns else None))
    behind = operation(Chain(_SOURCE, (op,), step=_STEP))
    bordering = Bordering(_kind(made), (behind,), Accumulate(to_list().as_collector(), _STEP))
    rows = list[Row]()
    for number, items in enumerate(parts):
        rows += AccumulateInside(bordering)(items, StageTask(number, _BOUND))
    rows.sort(key=lambda row: (row.source, row.sequence))
    lists = AccumulateAcross(bordering)(iter(rows), StageTask(0, _BOUND))
    return [item for row in lists for container in loads(row.payload) for item in container]


def _target(row: Row) -> int:
    return row.target


_RUN: dict[str, Callable[[Program, Sequence[Iterator[Any]]], Any]] = {
    "sorted": _sorted,
    "top": _top,
    "first": _first,
    "join": _joined,
    "distinct": _distinct,
    "windows": _windows,
    "borders": _borders,
    "skip": _skipped,
}


@contextmanager
def watched(counts: Counter[str]) -> Iterator[None]:
    """Count how often keys become ranks, and how often they do not."""

    def counted(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def call(*arguments: Any) -> Any:
            counts[f"{name} tried"] += 1
            found = fn(*arguments)
            counts[name] += 1
            return found

        return call

    with (
        patch.object(column_sorting, "ranks_of_column", counted("ranks", column_sorting.ranks_of_column)),
        patch.object(column_top, "ranks_of_column", counted("ranks", column_top.ranks_of_column)),
        patch.object(column_top, "_first_texts", counted("first texts", column_top._first_texts)),
        patch.object(column_windows, "_windows", counted("windows", column_windows._windows)),
        patch.object(column_distinct, "_first_places", counted("firsts", column_distinct._first_places)),
        patch.object(column_distinct, "_first_rows", counted("first rows", column_distinct._first_rows)),
        patch.object(column_entries, "_repeated", counted("repeated", column_entries._repeated)),
        patch.object(column_joining, "_evaluated_keys", counted("keys", column_joining._evaluated_keys)),
        patch.object(column_entries, "check_unshared", counted("unshared", column_entries.check_unshared)),
        patch.object(column_joining.JoinTable, "_looked_up", counted("looked up", column_joining.JoinTable._looked_up)),
    ):
        yield


def main(first: int, last: int) -> Counter[str]:
    """Run programs; print those that differ, and return what became of all."""
    counts: Counter[str] = Counter()
    with watched(counts):
        return judged(range(first, last), _checks_of, counts)


def _checks_of(seed: int) -> tuple[str, Checks]:
    made = program(seed)
    found, expected = outcomes(made, seed)
    return made.text, [(f"{made.operator.split()[0]} {found[0]}", found, [expected])]
