"""The stages as a piece of HTML: the picture, and a table of the calls with their files and lines."""

from __future__ import annotations

from collections.abc import Iterator

from dstream.plan.show.shortening import Shown, folded, shortened
from dstream.plan.show.svg import as_svg, escaped
from dstream.plan.show.wording import place, titled
from dstream.plan.stages import Stages

__all__ = ["as_html"]

_MOST_STAGES = 40
_MOST_CALLS = 24


def as_html(stages: Stages) -> str:
    """Write the picture, and below it, folded away, a table; it needs nothing else to be shown."""
    rows = "\n".join(row for one in folded(stages.stages, _MOST_STAGES) for row in _rows(one, stages))
    head = "".join(f'<th style="text-align: left">{name}</th>' for name in ("stage", "call", "file and line", "here"))
    return (
        f"<div>\n{as_svg(stages)}\n<details><summary>calls, files and lines</summary>\n"
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n</details>\n</div>"
    )


def _rows(one: Shown, stages: Stages) -> Iterator[str]:
    for number, call in enumerate(shortened(one.stage.calls, _MOST_CALLS)):
        first = "" if number else titled(one, stages)
        yield _row(first, call.label, place(call.where), call.note)


def _row(*cells: str) -> str:
    written = (f'<td style="text-align: left">{escaped(cell)}</td>' for cell in cells)
    return f"<tr>{''.join(written)}</tr>"
