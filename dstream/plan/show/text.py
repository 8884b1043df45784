"""The stages as text, for terminals."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from dstream.plan.show.shortening import Shown, folded, shortened
from dstream.plan.show.wording import exchange_words, job_lines, place, summary, titled
from dstream.plan.stages import Call, Stages

__all__ = ["as_text"]

_WIDTH = 98
_MOST_STAGES = 40
_MOST_CALLS = 24
_MOST_INPUTS = 6
_WIDEST_LABEL = 60


def as_text(stages: Stages) -> str:
    """Write a line for the whole, then each stage: where its items come from, its calls, what else it does."""
    shown = folded(stages.stages, _MOST_STAGES)
    lines = [summary(stages), *(f"  {line}" for line in (*stages.notes, *job_lines(stages)))]
    for one in shown:
        lines += ["", titled(one, stages), *(f"  {line}" for line in _stage_lines(one, shown))]
    if stages.outcome:
        lines += ["", f"{stages.end.label}: {stages.outcome}"]
    return "\n".join(line.rstrip() for line in lines)


def _stage_lines(one: Shown, shown: Sequence[Shown]) -> Iterator[str]:
    inputs = one.stage.inputs
    for exchange in inputs[:_MOST_INPUTS]:
        words = ": ".join(filter(None, (exchange_words(exchange), exchange.why)))
        yield from _wrapped(", ".join(filter(None, (f"<- {shown[exchange.source].name}", words))), "   ")
    if len(inputs) > _MOST_INPUTS:
        yield f"<- ... {len(inputs) - _MOST_INPUTS:,} more ..."
    yield from _call_lines(shortened(one.stage.calls, _MOST_CALLS))
    for note in one.stage.notes:
        yield from _wrapped(f"({note})", " ")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_long_words=False)


def _call_lines(calls: Sequence[Call]) -> Iterator[str]:
    """Give the calls in columns: the call, its place, what it means here."""
    rows = [(call.label, place(call.where), call.note) for call in calls]
    widths = [min(max(map(len, column)), _WIDEST_LABEL) for column in list(zip(*rows, strict=True))[:2]]
    for label, where, note in rows:
        yield f"{label:<{widths[0]}}  {where:<{widths[1]}}{f'  # {note}' if note else ''}"
