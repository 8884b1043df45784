"""The stages as a picture in SVG: no script, nothing loaded from elsewhere, readable on light and dark pages."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterator, Sequence

from dstream.plan.show.layout import BOX_WIDTH, LINE_HEIGHT, PADDING, Box, Label, Layout, Line, laid_out
from dstream.plan.show.shortening import folded, last_ones
from dstream.plan.show.wording import cost, heading, job_lines, summary
from dstream.plan.stages import Stages

__all__ = ["as_svg", "escaped"]

_MOST_STAGES = 14
_MARGIN = 28
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = """\
.dstream text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #26303b; }
.dstream .title { font-size: 15px; font-weight: 600; }
.dstream .head { font-weight: 600; }
.dstream .words, .dstream .job { fill: #52606d; font-size: 12px; }
.dstream .call { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; }
.dstream .place { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #66717d; }
.dstream .note { fill: #52606d; font-size: 11.5px; font-style: italic; white-space: pre; }
.dstream .why { fill: #3d4854; font-size: 12px; }
.dstream .shuffle { fill: #a33b0b; font-weight: 700; }
.dstream .kept, .dstream .sent { fill: #1f5f8b; font-weight: 700; }
.dstream .box { fill: #ffffff; stroke: #9aa5b1; stroke-width: 1.2; }
.dstream .more { stroke-dasharray: 5 4; }
.dstream .end { fill: #e6f0f7; }
.dstream .edge { fill: none; stroke: #66717d; stroke-width: 1.6; }
.dstream .edge-shuffle { stroke: #a33b0b; stroke-width: 2.6; }
.dstream .edge-kept, .dstream .edge-sent { stroke: #1f5f8b; stroke-dasharray: 6 4; }
.dstream .behind { fill: #f7f5f0; }
"""


def as_svg(stages: Stages) -> str:
    """Draw a box for each stage and an arrow for each exchange, from the sources at the top to the result."""
    titles, small = _wrapped(heading(stages), 48), _small(stages)
    shown = folded(stages.stages, _MOST_STAGES)
    layout = laid_out(shown, stages, top=_MARGIN + LINE_HEIGHT * (len(titles) + len(small) + 1))
    end = [stages.end.label, *_wrapped(stages.outcome, 66)] if stages.outcome else []
    height = layout.height + (len(end) * LINE_HEIGHT + PADDING * 2 + _MARGIN if end else 0)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dstream" role="img" viewBox="0 0 {layout.width} {height}" '
        f'width="{layout.width}" style="max-width: 100%; height: auto">'
    )
    parts = [
        head,
        f"<title>{escaped(summary(stages))}</title>",
        f"<desc>{escaped(_description(stages))}</desc>",
        f"<style>{_STYLE}</style>",
        f'<rect class="behind" width="{layout.width}" height="{height}" rx="8"/>',
        *_header(titles, small),
        *_edges(layout),
        *(part for box, one in zip(layout.boxes, shown, strict=True) for part in _drawn(box, bool(one.stage.folded))),
        *(_end(end, layout, last_ones(shown)) if end else ()),
        "</svg>",
    ]
    return "\n".join(parts)


def escaped(text: str) -> str:
    """Return a text for XML: its own signs escaped, and what no XML may hold replaced."""
    return html.escape(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _description(stages: Stages) -> str:
    count = len(stages.stages)
    outcome = f": {stages.outcome}" if stages.outcome else ""
    return f"{count:,} stage{'' if count == 1 else 's'} from top to bottom; {stages.end.label}{outcome}."


def _small(stages: Stages) -> list[str]:
    return [text for line in (cost(stages), *stages.notes, *job_lines(stages)) for text in _wrapped(line, 68)]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, max_lines=4, placeholder=" \N{HORIZONTAL ELLIPSIS}")


def _header(titles: Sequence[str], small: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate([*titles, *small]):
        kind = "title" if number < len(titles) else "job"
        yield _text(_MARGIN, _MARGIN + LINE_HEIGHT * number + 6, kind, line)


def _text(x: int, y: int, kind: str, text: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escaped(text)}</text>'


def _edges(layout: Layout) -> Iterator[str]:
    """Draw the arrows behind the boxes: down, across between the rows, down again."""
    for box in layout.boxes:
        for exchange in box.inputs:
            source = layout.boxes[exchange.source]
            start, end = source.y + source.height, box.y
            bend = box.y - box.labels_height - 12
            path = f"M{source.middle} {start} V{bend} H{box.middle} V{end - 7}"
            yield f'<path class="edge edge-{exchange.how}" d="{path}"/>'
            yield _tip(box.middle, end, exchange.how)


def _tip(x: int, y: int, how: str) -> str:
    return f'<path class="edge edge-{how}" d="M{x - 5} {y - 8} L{x} {y - 1} L{x + 5} {y - 8}" stroke-dasharray="none"/>'


def _drawn(box: Box, is_folded: bool) -> Iterator[str]:
    y = box.y - box.labels_height
    for label in box.labels:
        yield from _label(label, box, y)
        y += label.height
    kind = "box more" if is_folded else "box"
    yield f'<rect class="{kind}" x="{box.x}" y="{box.y}" width="{BOX_WIDTH}" height="{box.height}" rx="6"/>'
    for number, line in enumerate(box.lines, start=1):
        yield from _line(line, box, box.y + PADDING + LINE_HEIGHT * number - 5)


def _label(label: Label, box: Box, y: int) -> Iterator[str]:
    """Write over the arrow, on the colour of the page."""
    height = LINE_HEIGHT * len(label.lines) + 4
    yield f'<rect class="behind" x="{box.x}" y="{y}" width="{BOX_WIDTH}" height="{height}"/>'
    for number, text in enumerate(label.lines):
        kind = "why" if number or label.exchange.how == "written" else label.exchange.how
        yield _text(box.middle, y + LINE_HEIGHT * (number + 1) - 4, kind, text, "middle")


def _line(line: Line, box: Box, y: int) -> Iterator[str]:
    yield f"<g>{f'<title>{escaped(line.tooltip)}</title>' if line.tooltip else ''}"
    yield _text(box.x + PADDING, y, line.kind, line.text)
    if line.right:
        yield _text(box.x + BOX_WIDTH - PADDING, y, "place", line.right, "end")
    yield "</g>"


def _end(lines: Sequence[str], layout: Layout, last: Sequence[int]) -> Iterator[str]:
    """Draw what comes out, below the stages that no other one reads."""
    x, height = (layout.width - BOX_WIDTH) // 2, len(lines) * LINE_HEIGHT + 2 * PADDING
    for box in (layout.boxes[number] for number in last):
        path = f"M{box.middle} {box.y + box.height} V{layout.height - 12} H{x + BOX_WIDTH // 2} V{layout.height - 7}"
        yield f'<path class="edge" d="{path}"/>'
    yield _tip(x + BOX_WIDTH // 2, layout.height, "pipe")
    size = f'width="{BOX_WIDTH}" height="{height}" rx="{height // 2}"'
    yield f'<rect class="box end" x="{x}" y="{layout.height}" {size}/>'
    for number, text in enumerate(lines):
        y = layout.height + PADDING + LINE_HEIGHT * (number + 1) - 5
        yield _text(layout.width // 2, y, "words" if number else "head", text, "middle")
