"""The stages in the language of Mermaid, which many pages of Markdown draw."""

from __future__ import annotations

import re

from dstream.plan.show.shortening import folded, last_ones, shortened
from dstream.plan.show.wording import exchange_words, short_place, summary, titled
from dstream.plan.stages import Stages

__all__ = ["as_mermaid"]

_MOST_STAGES = 24
_MOST_CALLS = 12
_ARROWS = {"pipe": "-->", "kept": "-.->", "sent": "-.->", "shuffle": "==>", "written": "-->"}


def as_mermaid(stages: Stages) -> str:
    """Write a flowchart: a box for each stage, an arrow for each exchange."""
    shown = folded(stages.stages, _MOST_STAGES)
    about = (re.sub(r"[^ -~]", "?", line) for line in (summary(stages), *stages.notes))
    lines = [*(f"%% {line}" for line in about), "flowchart TD"]
    for number, one in enumerate(shown):
        calls = (f"{call.label}  {short_place(call.where)}" for call in shortened(one.stage.calls, _MOST_CALLS))
        lines.append(f"  s{number}[{_quoted(titled(one, stages), *calls)}]")
        for exchange in one.stage.inputs:
            words = [word for word in (exchange_words(exchange), exchange.why) if word]
            label = f"|{_quoted(*words)}|" if words else ""
            lines.append(f"  s{exchange.source} {_ARROWS[exchange.how]}{label} s{number}")
    if stages.outcome:
        lines.append(f"  done([{_quoted(stages.end.label, stages.outcome)}])")
        lines += [f"  s{number} --> done" for number in last_ones(shown)]
    return "\n".join(lines)


def _quoted(*lines: str) -> str:
    """Return a quoted text: whatever Mermaid could take for its own stands as the number of its character."""
    escaped = (re.sub(r"[^A-Za-z0-9 .,_:=+/-]", lambda found: f"#{ord(found[0])};", line.strip()) for line in lines)
    return '"' + "<br/>".join(escaped) + '"'
