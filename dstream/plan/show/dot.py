"""The stages in the language of Graphviz."""

from __future__ import annotations

from dstream.plan.show.shortening import folded, last_ones, shortened
from dstream.plan.show.wording import exchange_words, place, short_place, summary, titled
from dstream.plan.stages import Call, Stages

__all__ = ["as_dot", "quoted"]

_MOST_STAGES = 24
_MOST_CALLS = 12
_STYLES = {"pipe": "solid", "kept": "dashed", "sent": "dashed", "shuffle": "bold", "written": "solid"}


def as_dot(stages: Stages) -> str:
    """Write a digraph: a box for each stage, an edge for each exchange."""
    shown = folded(stages.stages, _MOST_STAGES)
    lines = [
        f"label={quoted(summary(stages), *stages.notes)};",
        "rankdir=TB;",
        'node [shape=box, fontname="monospace"];',
    ]
    for number, one in enumerate(shown):
        calls = shortened(one.stage.calls, _MOST_CALLS)
        label = [titled(one, stages), *map(_call, calls), *one.stage.notes]
        tooltip = [f"{call.label} {place(call.where)}" for call in calls]
        lines.append(f"s{number} [label={quoted(*label)}, tooltip={quoted(*tooltip)}];")
        for exchange in one.stage.inputs:
            words = [word for word in (exchange_words(exchange), exchange.why) if word]
            lines.append(f"s{exchange.source} -> s{number} [label={quoted(*words)}, style={_STYLES[exchange.how]}];")
    if stages.outcome:
        lines.append(f"end [label={quoted(stages.end.label, stages.outcome)}, shape=oval];")
        lines += [f"s{number} -> end;" for number in last_ones(shown)]
    return "\n".join(["digraph dstream {", *(f"  {line}" for line in lines), "}"])


def _call(call: Call) -> str:
    return "  ".join(word for word in (call.label, short_place(call.where), call.note and f"# {call.note}") if word)


def quoted(*lines: str) -> str:
    r"""Return a DOT string of lines that stand left: `\l` ends each if there are several."""
    if not lines:
        return '""'
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for line in lines]
    return f'"{escaped[0]}"' if len(escaped) == 1 else '"' + "".join(f"{line}\\l" for line in escaped) + '"'
