"""Programs by chance, in columns and in plain Python: a source, some steps, and a list, a collector or groups.

`python -m tests.soak.columns --kinds number --programs 200000` runs many and says how many blocks stood in columns.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from random import Random
from typing import Any
from unittest.mock import patch

from more_itertools import chunked

import dstream.collectors.batches
import dstream.operators.columns.chain_evaluation as column_steps
import dstream.operators.columns.float_sums as column_sums
import dstream.operators.columns.group_by as column_row_groups
import dstream.operators.rows.blocks as column_items
import dstream.operators.rows.group_tables as column_ends
import dstream.operators.rows.group_tables as tables_by_key
import dstream.operators.rows.spill as spill
from collectors import (
    all_of,
    averaging,
    averaging_double,
    bottom_n,
    collecting_and_then,
    counting,
    filtering,
    frequencies,
    grouping_by,
    mapping,
    max_by,
    min_by,
    summarizing,
    summing,
    summing_double,
    summing_int,
    teeing,
    to_list,
    to_set,
    top_n,
)
from dstream.base.pickling import dumps
from dstream.collectors.groups import groups_of_any_key
from dstream.engine.compiler import evaluation
from dstream.engine.compiler.evaluation import step_evaluation
from dstream.engine.tasks.readers import combine_groups, read_batches
from dstream.engine.tasks.routing import RouteGroups, RoutePartials
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import WriteGroups
from dstream.expressions.tree import one_behind_another
from dstream.failures.account import known_of
from dstream.operators.columns.values import Column
from dstream.operators.rows.aggregates import finishing, partial
from dstream.operators.rows.batches import loads, loads_items
from dstream.operators.rows.group_tables import collected
from dstream.operators.rows.operations import operation
from dstream.operators.windows.bounded import bounded_windows
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.keyed import Aggregate
from dstream.plan.operations.sort_limit import Limit
from dstream.plan.steps import Op, Step, StepEvaluation, unchanged
from dstream.plan.timestamps import InstantOf
from dstream.spi import Collector
from dstream.windows import tumbling
from tests.differential.random_functions import (
    FORMS,
    SOURCES,
    Form,
    building_of,
    function_of,
    items_of_form,
    source_of,
)
from tests.differential.written_expressions import expression_of

__all__ = [
    "STEP",
    "Checks",
    "Outcome",
    "Program",
    "aggregated",
    "bytes_together",
    "chained",
    "compound",
    "judged",
    "limits",
    "main",
    "outcome_of",
    "outcomes",
    "possible_outcomes",
    "program",
    "program_on",
    "watched",
    "ways_to_run",
]

_BOUND = 2**40


@dataclass(frozen=True)
class Program:
    """Items of some tasks, steps, and what becomes of the results.

    Attributes:
        parts: the items of each task.
        ops: the steps, with their expressions.
        collector: takes the results; None for a list.
        text: all of it, for messages.
    """

    parts: list[list[Any]]
    ops: tuple[Op, ...]
    collector: Collector[Any, Any, Any] | None
    text: str

    def plain(self) -> Program:
        """Return it without expressions."""
        ops = tuple(replace(op, evaluation=StepEvaluation()) for op in self.ops)
        return replace(self, ops=ops, collector=self.collector and replace(self.collector, in_columns=None))

    def verified(self) -> Program:
        """Return it so that columns are compared with functions."""
        ops = tuple(replace(op, evaluation=replace(op.evaluation, is_verified=True)) for op in self.ops)
        if self.collector is None or self.collector.in_columns is None:
            return replace(self, ops=ops)
        known = replace(self.collector.in_columns, is_verified=True)
        return replace(self, ops=ops, collector=replace(self.collector, in_columns=known))


def program(seed: int) -> Program:
    """Make a program."""
    random = Random(seed)
    form = random.choice(FORMS)
    parts = [_items(form, random) for _ in range(random.randrange(1, 4))]
    return program_on(parts, form, random, str(parts))


def program_on(parts: list[Any], form: Form, random: Random, shown: str) -> Program:
    """Make a program on some parts, whose items have a form.

    Args:
        parts: what gives the items of each task; they may be `ColumnItems`.
        form: that of the items.
        random: what else is chosen.
        shown: the items, for messages.
    """
    sources, ops = [], []
    for number in range(random.randrange(1, 4)):
        action = random.choice(("map", "map", "filter")) if number else "map"
        source, form = _step(action, form, random)
        kind = random.choice((None, None, None, int, float)) if action == "map" and not form.is_tuple else None
        sources.append(f"{action}({source}, {kind and kind.__name__})")
        op = Op(action, function_of(source), kind, Step(source, None, number + 1, 3))
        ops.append(replace(op, evaluation=step_evaluation(op, expression_of(source))))
    if random.random() < 0.1:
        op = Op("map", unchanged, random.choice((int, float)), Step("unchanged", None, 3, 3))
        ops.append(replace(op, evaluation=step_evaluation(op, None)))
        sources.append(f"unchanged {ops[-1].kind}")
    text, collector = _collector(form, random) if random.random() < 0.8 else ("list", None)
    return Program(parts, tuple(ops), collector, f"{shown} {'.'.join(sources)} -> {text}")


def _items(form: Form, random: Random) -> list[Any]:
    items = items_of_form(form, random, random.randrange(0, 30))
    if random.random() < 0.15:
        other = random.choice([each for each in FORMS if each.kinds == form.kinds])
        items += items_of_form(other, random, random.randrange(0, 20))
    if random.random() < 0.1 and not form.is_tuple:
        items += [random.choice((1.0, True, 0.0, -0.0, False, 2.0))] * random.randrange(1, 9)
    return items


def _step(action: str, form: Form, random: Random) -> tuple[str, Form]:
    """Write a step; return the form of its results."""
    if action == "filter":
        return source_of(form, random, "b"), form
    if random.random() < 0.3:
        return building_of(form, random)
    gives = random.choice("iiifftt")
    if gives == "t" and random.random() < 0.6:
        kinds = "".join(random.choice("iifb") for _ in range(2))
        members = ", ".join(source_of(form, random, kind).removeprefix("lambda x: ") for kind in kinds)
        return f"lambda x: ({members})", Form(form.parts, kinds)
    return source_of(form, random, gives), Form(form.parts, "i" if gives == "t" else gives, is_tuple=gives == "t")


def _collector(form: Form, random: Random) -> tuple[str, Collector[Any, Any, Any]]:
    is_compound = random.random() < 0.35
    if is_compound:
        text, downstream = compound(form, random)
    else:
        text, downstream = _mapping(form, random) if random.random() < 0.2 else _downstream(form, random)
    choice = random.random()
    if choice < 0.1:
        return "frequencies()", _with_expression(frequencies(), "lambda x: x")
    if choice > 0.85:
        return _gathered_groups(form, random)
    if choice < 0.6:
        key = source_of(form, random, random.choice("iiiibf"))
        if random.random() < 0.3:
            parts = [key, *(source_of(form, random, random.choice("ibf")) for _ in range(random.randrange(0, 3)))]
            key = f"lambda x: ({''.join(_few(part, random) + ', ' for part in parts)})"
        elif random.random() < 0.5:
            key = f"lambda x: ({key.removeprefix('lambda x: ')}) % {random.choice((2, 5, 3.0))}"
        collector: Collector[Any, Any, Any] = grouping_by(function_of(key), downstream)
        if is_compound and random.random() < 0.3:
            return _windowed(key, text, downstream, form, random)
        text = f"grouping_by({key}, {text})"
        return text, _as_compiled(collector) if is_compound else _with_expression(collector, key)
    return text, _as_compiled(downstream) if is_compound else downstream


def _windowed(
    key: str, text: str, downstream: Collector[Any, Any, Any], form: Form, random: Random
) -> tuple[str, Collector[Any, Any, Any]]:
    """Return the collector of the windows of streams that end, and of its functions, which are not read yet."""
    timestamp, size = source_of(form, random, random.choice("iiiif")), random.choice((1, 2, 3, 10, 1000, 2**61))
    if random.random() < 0.6:
        timestamp = f"lambda x: int({timestamp.removeprefix('lambda x: ')}) % {random.choice((3, 100))} - 2"
    window = tumbling(size).with_offset(random.choice((0, 0, size // 2, size - 1)))
    frames = bounded_windows(window, downstream, InstantOf(function_of(timestamp)), is_keyed=True).operation
    finished = replace(frames, finisher=functools.partial(_finished_frames, downstream))
    collector = groups_of_any_key(function_of(key), finished)
    return f"{window!r}({timestamp}, {key}, {text})", _as_compiled(collector)


def _finished_frames(downstream: Collector[Any, Any, Any], frames: dict[int, Any]) -> list[Any]:
    return [(end, downstream.finisher(frames[end])) for end in sorted(frames)]


def compound(form: Form, random: Random, depth: int = 2) -> tuple[str, Collector[Any, Any, Any]]:
    """Return a collector of several, of what passes, of results, or of groups, whose functions are not read yet."""
    kinds = ("all_of", "all_of", "teeing", "filtering", "mapping", "grouping_by", "collecting_and_then", "leaf")
    kind = random.choice(kinds) if depth else "leaf"
    if kind == "leaf" or (depth < 2 and random.random() < 0.5):
        return _plain_downstream(form, random)
    if kind in ("all_of", "teeing"):
        parts = [compound(form, random, depth - 1) for _ in range(2 if kind == "teeing" else random.randrange(1, 4))]
        text, collectors = ", ".join(part for part, _ in parts), [each for _, each in parts]
        if kind == "teeing":
            return f"teeing({text})", teeing(*collectors, _in_a_list)
        if random.random() < 0.2:
            return f"all_of({text}, finish)", all_of(*collectors, finish=_in_a_list)  # type: ignore[call-overload]
        return f"all_of({text})", all_of(*collectors)
    if kind == "collecting_and_then":
        text, downstream = compound(form, random, depth - 1)
        return f"collecting_and_then({text})", collecting_and_then(downstream, _in_a_list)
    source = source_of(form, random, "b" if kind == "filtering" else random.choice("iif"))
    if kind == "grouping_by":
        source = f"lambda x: {_few(source, random)}"
    inner = Form(form.parts, random.choice("if")) if kind == "mapping" else form
    source = source_of(form, random, inner.kinds) if kind == "mapping" else source
    text, downstream = compound(inner, random, depth - 1)
    make: Any = {"filtering": filtering, "mapping": mapping, "grouping_by": grouping_by}[kind]
    return f"{kind}({source}, {text})", make(function_of(source), downstream)


def _in_a_list(*results: Any) -> list[Any]:
    return list(results)


def _plain_downstream(form: Form, random: Random) -> tuple[str, Collector[Any, Any, Any]]:
    if random.random() < 0.4:
        return _gathering(form, random)
    if random.random() < 0.3:
        return "counting()", counting()
    name, numeric = random.choice(_NUMERIC)
    source = source_of(form, random, random.choice("iif"))
    return f"{name}({source})", numeric(function_of(source))


def _gathered_groups(form: Form, random: Random) -> tuple[str, Collector[Any, Any, Any]]:
    """Return a collector of the values of few keys, whose functions cannot fail on most items."""
    key = f"lambda x: {random.choice(('x', 'x[0]') if form.is_tuple else ('x',))}"
    value = random.choice(
        ("x", "x[0]", "x[1]", "(x[0], x)", "(x, 1)", "x, x[0]") if form.is_tuple else _VALUES_OF_NUMBERS
    )
    text, gathered = _gathering_of(f"lambda x: ({value})", random)
    if random.random() < 0.4:
        passing = f"lambda x: {random.choice(('x[0] > 1', 'x[0] == x[0]')) if form.is_tuple else 'x > 1'}"
        text, gathered = f"filtering({passing}, {text})", filtering(function_of(passing), gathered)
    if random.random() < 0.3:
        text, gathered = f"all_of({text}, {text})", all_of(gathered, gathered)
    if random.random() < 0.3:
        key = f"lambda x: ({key.removeprefix('lambda x: ')}) == 1"
    return f"grouping_by({key}, {text})", _as_compiled(grouping_by(function_of(key), gathered))


_VALUES_OF_NUMBERS = ("x", "-x", "x, -x", "x > 0", "'one'", "None", "x if x > 0 else None", "(x, 'one')", "-0.0")
_VALUES_OF_TUPLES = ("x", "x[0]", "x[1]", "x[0], x", "x, 1", "x[1], x[0]", "x[0] if x[1] > 0 else None")


def _gathering(form: Form, random: Random) -> tuple[str, Collector[Any, Any, Any]]:
    """Return a collector of values into a list or a set, whose function is not read yet."""
    source = source_of(form, random, random.choice("iifb"))
    if random.random() < 0.3:
        others = (source_of(form, random, random.choice("ifb")) for _ in range(random.randrange(3)))
        source = f"lambda x: ({''.join(_few(part, random) + ', ' for part in (source, *others))})"
    elif random.random() < 0.5:
        source = f"lambda x: {_few(source, random)}"
    return _gathering_of(source, random)


def _gathering_of(source: str, random: Random) -> tuple[str, Collector[Any, Any, Any]]:
    name, gather = random.choice((("to_list()", to_list()), ("to_list()", to_list()), ("to_set()", to_set())))
    if random.random() < 0.2:
        return name, gather
    return f"mapping({source}, {name})", mapping(function_of(source), gather)


def _as_compiled(collector: Collector[Any, Any, Any]) -> Collector[Any, Any, Any]:
    """Return a collector as the compiler leaves it, whose functions were written as text."""
    with patch.object(evaluation, "read", lambda fn, *_: expression_of(SOURCES[fn])):
        return evaluation.collector_read(collector, is_verified=False)[0]


def _mapping(form: Form, random: Random) -> tuple[str, Collector[Any, Any, Any]]:
    """Return a collector of what a function gives, whose expression has it before the one of the other."""
    gives = random.choice("if")
    before = source_of(form, random, gives)
    text, downstream = _downstream(Form(form.parts, gives), random)
    collector: Collector[Any, Any, Any] = mapping(function_of(before), downstream)
    known = collector.on_columns()
    assert known is not None, "it takes what the other one takes"
    assert known.expression is not None, "it has that of the other one"
    composed = one_behind_another(expression_of(before), known.expression)
    made = replace(collector, in_columns=replace(known, expression=composed))
    return f"mapping({before}, {text})", made


def _downstream(form: Form, random: Random) -> tuple[str, Collector[Any, Any, Any]]:
    name, numeric = random.choice(_NUMERIC)
    source = source_of(form, random, random.choice("iif"))
    downstream = _with_expression(numeric(function_of(source)), source)
    text = f"{name}({source})"
    if random.random() < 0.25:
        text, downstream = "counting()", _with_expression(counting(), "lambda x: x")
    if random.random() < 0.25:
        name, ranking = random.choice(_RANKINGS)
        text, downstream = f"{name}, {source}", _with_expression(ranking(function_of(source)), source)
    return text, downstream


_NUMERIC: list[tuple[str, Callable[[Any], Collector[Any, Any, Any]]]] = [
    ("summing", summing),
    ("averaging", averaging),
    ("summarizing", summarizing),
    ("summing_int", summing_int),
    ("summing_double", summing_double),
    ("averaging_double", averaging_double),
]
_RANKINGS: list[tuple[str, Callable[[Any], Collector[Any, Any, Any]]]] = [
    ("min_by", min_by),
    ("max_by", max_by),
    ("top_n(2)", functools.partial(top_n, 2)),
    ("bottom_n(3)", functools.partial(bottom_n, 3)),
]


def _few(source: str, random: Random) -> str:
    """Return what a function gives, often only its remainder, so that keys are equal, or a constant."""
    written = source.removeprefix("lambda x: ")
    return random.choice((written, f"({written}) % 3", f"({written}) % 2.0 - 1", f"(({written}) > 0)", "'one'", "-0.0"))


def _with_expression(collector: Collector[Any, Any, Any], source: str) -> Collector[Any, Any, Any]:
    known = collector.on_columns()
    assert known is not None, "it is one that takes columns"
    downstream = known.downstream
    if downstream is not None and downstream.expression is None:
        downstream = replace(downstream, expression=expression_of("lambda x: x"))
    return replace(collector, in_columns=replace(known, expression=expression_of(source), downstream=downstream))


def ways_to_run(made: Program) -> list[Callable[[Program, list[Any]], Any]]:
    """Return what runs a program: to a list, to a container, or through a shuffle."""
    if made.collector is None:
        return [_listed]
    return [_reduced, *([_shuffled, _in_one_task, aggregated] if made.collector.keyed else [_aggregated_as_one])]


Outcome = tuple[Any, ...]
_ALL_KINDS = frozenset({int, float, bool, tuple, str, type(None)})


def outcomes(made: Program, seed: int) -> list[tuple[Outcome, list[Outcome]]]:
    """Return for each way to run it what columns give, and what plain Python may give."""
    rows = Random(seed).choice((1, 3, 7, 16))
    found = []
    for end in ways_to_run(made):
        with limits(
            (column_items, {"_FEWEST": 1, "_ROWS": rows, "_WORTH_A_LIST": 0, "_NUMBERS": _ALL_KINDS}),
            (column_ends, {"_MOST_GROUPS": 1 + seed % 4}),
            (column_sums, {"_MOST_DIGITS": (24, 200)[seed % 2], "_FEW_ROWS": 1 + seed % 3, "_MOST_ROWS": 1 + seed % 9}),
            (tables_by_key, {"_MOST_BYTES": bytes_together(end, seed)}),
            (
                column_row_groups,
                {"_FEWEST_ROWS": seed % 3, "_MOST_WEIGHT": 5 * (seed % 5), "_MANY_ROWS": seed % 4},
            ),
        ):
            given = outcome_of(end, made)
        found.append((given, possible_outcomes(functools.partial(outcome_of, end), made.plain(), given)))
    return found


@contextmanager
def limits(*changed: tuple[Any, dict[str, Any]]) -> Iterator[None]:
    """Change constants of modules, as `patch.multiple` does, which takes as long as a small program for six of them."""
    before = [(module, {name: getattr(module, name) for name in values}) for module, values in changed]
    try:
        for module, values in changed:
            vars(module).update(values)
        yield
    finally:
        for module, values in before:
            vars(module).update(values)


def possible_outcomes(run: Callable[[Program], Outcome], plain: Program, given: Outcome) -> list[Outcome]:
    """Return what plain Python may give, up to what columns gave, if that is among it.

    A collector calls each of its functions for a batch before the next one: where two of them fail on two items of one
    batch, the sizes of batches decide which of the two is to blame, so both will do.
    """
    found = [run(plain)]
    if plain.collector is None or given in found:
        return found
    one_by_one = replace(plain, collector=replace(plain.collector, accumulate_all=None))
    found.append(run(one_by_one))
    with patch.object(spill, "FEWER_THAN_COLLECTED", 1):
        found.append(run(one_by_one))
    for size in range(2, _LONGEST):
        if given in found:
            break
        with patch.object(dstream.collectors.batches, "pieces", lambda items, most, size=size: chunked(items, size)):
            found.append(run(plain))
    return found


_LONGEST = 80
"""No part of a program has more items."""


def bytes_together(end: Callable[[Program, list[Any]], Any], seed: int) -> int:
    """Return how many bytes of keys may be put together: groups beyond them come in no order, which one way tells."""
    return 2**30 if end is aggregated or seed % 3 else 8 * (seed % 7)


def outcome_of(end: Callable[[Program, list[Any]], Any], made: Program) -> Any:
    """Return what a program gives when it runs in one way, or how it fails."""
    given: list[Any] = []
    try:
        return "gives", told(end(made, given))
    except Exception as error:
        failure = known_of(error)
        blamed = None if failure is None else (failure.step.label, told(failure.item))
        return "fails", type(error), str(error), blamed, told(given)


def told(value: Any) -> Any:
    """Return what tells values apart: types, and digits of floats."""
    if isinstance(value, tuple | list):
        return type(value), *map(told, value)
    if isinstance(value, dict):
        return type(value), *((told(key), told(each)) for key, each in value.items())
    if isinstance(value, set):
        # The order of a set depends on what was added to it before, and on how it was sent.
        return type(value), *sorted(map(told, value), key=repr)
    try:
        return type(value), repr(value)
    except MemoryError:  # It was multiplied by 2^31.
        return (type(value),)


def chained(made: Program, part: list[Any], task: StageTask) -> Any:
    """Give what the steps of a program make of a part of its items."""
    chain = Chain(Limit(None, 0, step=STEP), made.ops, step=STEP)  # type: ignore[arg-type]  # Nobody asks it.
    return operation(chain)(iter(part), task)


STEP = Step("collect", None, 4, 4)


def _listed(made: Program, given: list[Any]) -> Any:
    for number, part in enumerate(made.parts):
        given.extend(chained(made, part, StageTask(number, _BOUND)))
    return given


def _reduced(made: Program, given: list[Any]) -> Any:
    collector = made.collector
    assert collector is not None
    containers = [
        collected(collector, chained(made, part, StageTask(number, _BOUND))) for number, part in enumerate(made.parts)
    ]
    containers = [loads(dumps(each)) for each in containers]
    return collector.finisher(functools.reduce(collector.combined, containers))


def _shuffled(made: Program, given: list[Any]) -> Any:
    collector = made.collector
    assert collector is not None
    assert collector.keyed is not None
    step, targets, rows = STEP, 3, []
    for number, part in enumerate(made.parts):
        task = StageTask(number, _BOUND)
        rows += RouteGroups(collector, targets, step)(chained(made, part, task), task)
    groups: list[Any] = []
    for target in range(targets):
        sent = read_batches(iter([row for row in rows if row.target == target]))
        groups += combine_groups(collector.keyed.downstream, step, sent, StageTask(target, _BOUND))
    groups.sort(key=itemgetter(0))
    return collector.keyed.assemble((key, value) for _, key, value in groups)


def _in_one_task(made: Program, given: list[Any]) -> Any:
    """Give the groups of the first part, as the only task of a job finishes them."""
    collector = made.collector
    assert collector is not None
    assert collector.keyed is not None
    task = StageTask(0, _BOUND)
    rows = WriteGroups(collector, STEP)(chained(made, made.parts[0], task), task)
    groups = chain.from_iterable(loads_items(row.payload) for row in rows)
    return collector.keyed.assemble((key, value) for _, key, value in groups)


def aggregated(made: Program, given: list[Any]) -> Any:
    """Give the results of a stage by key: those of each target in order."""
    collector = made.collector
    assert collector is not None
    assert collector.keyed is not None
    node, targets, rows = _aggregate(collector, collector.keyed.downstream), 3, []
    for number, part in enumerate(made.parts):
        task = StageTask(number, _BOUND)
        rows += RoutePartials(targets, STEP)(partial(node, 0)(chained(made, part, task), task), task)
    return [
        list(
            finishing(node)(
                read_batches(iter([row for row in rows if row.target == target])), StageTask(target, _BOUND)
            )
        )
        for target in range(targets)
    ]


def _aggregated_as_one(made: Program, given: list[Any]) -> Any:
    """Give the one result of a stage."""
    assert made.collector is not None
    node, containers = _aggregate(made.collector, made.collector), list[Any]()
    for number, part in enumerate(made.parts):
        task = StageTask(number, _BOUND)
        containers += partial(node, 0)(chained(made, part, task), task)
    return list(finishing(node)(iter(loads(dumps(containers))), StageTask(0, _BOUND)))


def _aggregate(reduction: Collector[Any, Any, Any], downstream: Collector[Any, Any, Any]) -> Aggregate:
    source: Any = Limit(None, 0, step=STEP)  # type: ignore[arg-type]  # Nobody asks it.
    return Aggregate((source,), downstream, (reduction,), is_keyed=reduction is not downstream, step=STEP)


@contextmanager
def watched(counts: Counter[str]) -> Iterator[None]:
    """Count the blocks that stand in columns, and all that might."""
    passed = column_steps._passed

    def counted(ops: Sequence[Op], passing: Any) -> Column:
        counts["blocks"] += 1
        made = passed(ops, passing)
        counts["blocks in columns"] += 1
        return made

    with patch.object(column_steps, "_passed", counted):
        yield


Checks = Iterable[tuple[str, Any, Container[Any]]]
"""Name the count, the outcome of a program, and the right ones."""


def judged(seeds: Iterable[int], checks_of: Callable[[int], tuple[str, Checks]], counts: Counter[str]) -> Counter[str]:
    """Run the program of each seed; count what became of all, print those that differ, and return the counts."""
    for seed in seeds:
        text, checks = checks_of(seed)
        counts["programs"] += 1
        for kind, found, possible in checks:
            counts[kind] += 1
            if found not in possible:
                counts["DIFFERS"] += 1
                print(f"seed {seed}: {text}\n  columns: {found}\n  Python:  {possible}"[:4000], flush=True)
    print(dict(counts), flush=True)
    return counts


def main(first: int, last: int) -> Counter[str]:
    """Run programs; print those that differ, and return what became of all."""
    counts: Counter[str] = Counter()
    with watched(counts):
        return judged(range(first, last), _checks_of, counts)


def _checks_of(seed: int) -> tuple[str, Checks]:
    made = program(seed)
    return made.text, ((found[0], found, possible) for found, possible in outcomes(made, seed))
