"""What of many stages is drawn: the first ones and the last ones, and one that stands for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dstream.plan.stages import Call, Exchange, Stage, total

__all__ = ["Shown", "folded", "last_ones", "shortened"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A stage in a picture.

    Attributes:
        name: how the picture calls it, such as "stage 3".
        stage: the stage; the `source` of each of its exchanges is a place in the picture.
    """

    name: str
    stage: Stage


def folded(stages: Sequence[Stage], most: int) -> list[Shown]:
    """Return at most `most` stages of a plan; those in the middle become one."""
    hidden = len(stages) - most + 1 if len(stages) > most else 0
    first = (most - 1) // 2 if hidden else len(stages)

    def place(number: int) -> int:
        return number if number < first else max(number - hidden + 1, first)

    def one(number: int) -> Shown:
        return Shown(stages[number].name or f"stage {number + 1}", _moved(stages[number], place))

    shown = [one(number) for number in range(first)]
    if hidden:
        shown.append(_rest(stages[first : first + hidden], first, place))
        shown += [one(number) for number in range(first + hidden, len(stages))]
    return shown


def last_ones(shown: Sequence[Shown]) -> list[int]:
    """Return the places of those whose items go to the caller: no other reads them."""
    read = {each.source for one in shown for each in one.stage.inputs}
    return [number for number in range(len(shown)) if number not in read]


def _moved(stage: Stage, place: Callable[[int], int]) -> Stage:
    """Return the stage with its exchanges counted in the picture, each kind from each place once."""
    exchanges: dict[tuple[int, str, str], Exchange] = {}
    for exchange in stage.inputs:
        moved = replace(exchange, source=place(exchange.source))
        exchanges.setdefault((moved.source, moved.how, moved.why), moved)
    return replace(stage, inputs=tuple(exchanges.values()))


def _rest(hidden: Sequence[Stage], position: int, place: Callable[[int], int]) -> Shown:
    """Return the one that stands for the hidden stages: it reads what any of them read from outside."""
    outside = (replace(x, source=place(x.source)) for stage in hidden for x in stage.inputs)
    sources = {x.source: Exchange(x.source, "pipe") for x in outside if x.source < position}
    jobs = tuple(sorted({job for stage in hidden for job in stage.jobs}))
    calls = (Call(f"... {len(hidden):,} more stages ..."),)
    amounts = [stage.tasks for stage in hidden if stage.tasks is not None]
    tasks = total(amounts) if amounts else None
    stage = Stage(calls, tuple(sources.values()), tasks, hidden[-1].is_ordered, jobs, (), len(hidden))
    return Shown(f"{len(hidden):,} more stages", stage)


def shortened(calls: Sequence[Call], most: int) -> list[Call]:
    """Return at most `most` calls; those in the middle become one."""
    if len(calls) <= most:
        return list(calls)
    last = (most - 1) // 2
    first = most - 1 - last
    return [*calls[:first], Call(f"... {len(calls) - most + 1:,} more calls ..."), *calls[len(calls) - last :]]
