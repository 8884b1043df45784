"""Programs by chance whose steps are counted, as those of jobs are: columns count what a loop over items counts.

The programs are those on numbers and on texts, with steps that count among the others. Some are read to the end, some
up to an item, some block by block. `python -m tests.soak.columns --kinds counting --programs 20000` runs many.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any
from unittest.mock import patch

import dstream.operators.rows.blocks as column_items
from dstream.engine.compiler.evaluation import read_op
from dstream.engine.tasks.runtime import StageTask
from dstream.errors import EngineError
from dstream.operators.rows.blocks import ColumnItems, given
from dstream.operators.rows.operations import ItemCount
from dstream.plan.steps import Op, Step, unchanged
from tests.differential import column_programs, text_programs
from tests.differential.column_programs import (
    Checks,
    Outcome,
    Program,
    chained,
    judged,
    outcome_of,
    possible_outcomes,
    watched,
)
from tests.differential.text_programs import ways_of_texts

__all__ = ["counted_program", "main", "outcomes"]

_BOUND = 2**40
_ALL_KINDS = frozenset({int, float, bool, tuple, str, type(None)})
_FIRST_CHANNEL = 100


def counted_program(seed: int) -> Program:
    """Make a program with one to four steps that count; some do nothing else."""
    random = Random(seed)
    made = random.choice((column_programs.program, text_programs.program))(seed)
    ops = [] if random.random() < 0.1 else list(made.ops)
    if random.random() < 0.2:
        ops.append(Op("map", repr, None, Step("repr", None, 4, 4)))
        made = replace(made, collector=None)
    for channel in range(random.randrange(1, 5)):
        step = Step("", None, _FIRST_CHANNEL + channel, 4)
        ops.insert(random.randrange(len(ops) + 1), read_op(Op("count", unchanged, None, step)).op)
    text = f"{[op.step.position if op.action == 'count' else op.step.label for op in ops]} of {made.text}"
    return replace(made, ops=tuple(ops), text=text)


def outcomes(made: Program, seed: int, *, verified: bool = False) -> list[tuple[Outcome, list[Outcome]]]:
    """Return for each way to run a program what columns give and count, and what plain Python may give and count."""
    random = Random(seed)
    rows = random.choice((1, 3, 7, 16))
    plain = replace(made.plain(), parts=[list(list.__iter__(part)) for part in made.parts])
    found = []
    for end in ways_of_texts(made) if made.collector else [_listed, _by_blocks, _cut(random.randrange(1, 12))]:
        with patch.multiple(column_items, _FEWEST=1, _ROWS=rows, _WORTH_A_LIST=0, _NUMBERS=_ALL_KINDS):
            ran = _told(end, made.verified() if verified else made)
        found.append((ran, possible_outcomes(functools.partial(_told, end), plain, ran)))
    return found


def _told(end: Callable[[Program, list[Any]], Any], made: Program) -> Outcome:
    """Return what a program gives, and what its steps have counted.

    Where a collector or a whole block fails, how many items came before that is nobody's promise.
    """
    with _counted() as numbers:
        outcome = outcome_of(end, made)
        told = outcome[0] == "gives" or (made.collector is None and end is not _by_blocks)
        totals: Counter[int] = Counter()
        for position, number in numbers:
            totals[position] += number.total()
        return outcome, dict(+totals) if told else None


@contextmanager
def _counted() -> Iterator[list[tuple[int, ItemCount]]]:
    """Give what tasks count meanwhile, by the channels."""
    made: list[tuple[int, ItemCount]] = []

    def counting(task: StageTask, op: Op) -> ItemCount:
        made.append((op.step.position, ItemCount()))
        return made[-1][1]

    with patch.object(StageTask, "counting", counting):
        yield made


def _listed(made: Program, seen: list[Any]) -> Any:
    for number, part in enumerate(made.parts):
        seen.extend(chained(made, part, StageTask(number, _BOUND)))
    return seen


def _by_blocks(made: Program, seen: list[Any]) -> Any:
    for number, part in enumerate(made.parts):
        items = chained(made, part, StageTask(number, _BOUND))
        for block in items.blocks() if type(items) is ColumnItems else iter((items,)):
            seen.extend(given(block))
    return seen


def _cut(most: int) -> Callable[[Program, list[Any]], Any]:
    """Return what takes a few items of each part, and then no more."""

    def cut(made: Program, seen: list[Any]) -> Any:
        for number, part in enumerate(made.parts):
            items = chained(made, part, StageTask(number, _BOUND))
            seen.extend(islice(items, most))
            _OPEN.append(items)  # A task counts what was read when it ends, and not when its items are let go of.
        return seen

    _OPEN.clear()
    return cut


_OPEN: list[Iterator[Any]] = []


def main(first: int, last: int) -> Counter[str]:
    """Run programs; print those that differ, and return what became of all."""
    counts: Counter[str] = Counter()
    with watched(counts):
        return judged(range(first, last), _checks_of, counts)


def _checks_of(seed: int) -> tuple[str, Checks]:
    made = counted_program(seed)
    # An EngineError is right nowhere, also where plain Python has the same.
    found_and_possible = (
        (found, [each for each in possible if EngineError not in each[0]])
        for found, possible in outcomes(made, seed, verified=seed % 4 == 0)
    )
    return made.text, ((found[0][0], found, possible) for found, possible in found_and_possible)
