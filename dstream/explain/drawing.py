"""`Drawing`: the stages of a plan as text, HTML or SVG, and the layout of their boxes."""

from __future__ import annotations

import html
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dstream.explain.text import (
    StageSummary,
    as_dot,
    as_mermaid,
    as_text,
    cost,
    exchange_words,
    folded,
    heading,
    job_lines,
    last_ones,
    place,
    short_place,
    shortened,
    stage_words,
    summary,
    titled,
)
from dstream.plan.operations.streams import Node
from dstream.plan.stages import NOTHING, ONE, Call, Exchange, Stage, Stages
from dstream.plan.walk import topological

__all__ = [
    "BOX_WIDTH",
    "Box",
    "Drawing",
    "Label",
    "Layout",
    "Line",
    "as_html",
    "as_svg",
    "chains",
    "check_format",
    "drawn",
    "escaped",
    "graph_as_written",
    "laid_out",
    "show",
    "with_reasons",
]


BOX_WIDTH = 440
LINE_HEIGHT = 18
PADDING = 12
_GAP = 28
_ARROW = 30
_STEP = BOX_WIDTH + _GAP
_MOST_IN_A_ROW = 3
_BOX_CALLS = 9
_CHARACTERS = 56
"""The number of characters of a monospaced line that fit into a box."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text in a box.

    Attributes:
        kind: `"head"`, `"words"`, `"call"` or `"note"`.
        text: the text on the left.
        right: the text on the right.
        tooltip: the text that a pointer over it shows.
    """

    kind: str
    text: str
    right: str = ""
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """Label above a box, on its incoming items."""

    exchange: Exchange
    lines: tuple[str, ...]

    @property
    def height(self) -> int:
        """The height of the label, with the arrow below."""
        return LINE_HEIGHT * len(self.lines) + _ARROW


@dataclass(frozen=True, slots=True)
class Box:
    """A stage instead of it; `y` is the top of the box itself, whose labels are above."""

    x: int
    y: int
    height: int
    lines: tuple[Line, ...]
    labels: tuple[Label, ...]
    inputs: tuple[Exchange, ...]

    @property
    def middle(self) -> int:
        """The x coordinate of arrows."""
        return self.x + BOX_WIDTH // 2

    @property
    def labels_height(self) -> int:
        """The height of all labels."""
        return sum(label.height for label in self.labels)


@dataclass(frozen=True, slots=True)
class Layout:
    """All boxes, and how much room they take."""

    width: int
    height: int
    boxes: tuple[Box, ...]


def laid_out(shown: Sequence[StageSummary], stages: Stages, top: int) -> Layout:
    """Place the stages from `top` on."""
    rows = _rows(shown)
    width = max((_width(len(row)) for row in rows), default=BOX_WIDTH) + 2 * _GAP
    boxes: dict[int, Box] = {}
    y = top
    for row in rows:
        row_boxes = {number: _box(shown[number], stages) for number in row}
        labels = max(box.labels_height for box in row_boxes.values())
        for number, x in _columns(row, shown, boxes, width).items():
            boxes[number] = replace(row_boxes[number], x=x, y=y + labels)
        y += labels + max(box.height for box in row_boxes.values()) + _ARROW
    return Layout(width, y, tuple(boxes[number] for number in range(len(shown))))


def _columns(row: Sequence[int], shown: Sequence[StageSummary], boxes: Mapping[int, Box], width: int) -> dict[int, int]:
    """Return where each box of a row begins: below those that it reads from, if there is room."""
    # A box without inputs has no preferred position: the row is centred.
    first = (width - _width(len(row))) // 2
    preferred: list[tuple[int, int]] = []
    for column, number in enumerate(row):
        above = [boxes[exchange.source].x for exchange in shown[number].stage.inputs]
        preferred.append((sum(above) // len(above) if above else first + column * _STEP, number))
    columns: dict[int, int] = {}
    free = _GAP
    for left, (x, number) in enumerate(sorted(preferred)):
        # As far right as leaves room for the boxes of the row that are still to be placed.
        last = width - _GAP - BOX_WIDTH - (len(row) - 1 - left) * _STEP
        columns[number] = min(max(x, free), last)
        free = columns[number] + _STEP
    return columns


def _width(columns: int) -> int:
    return columns * BOX_WIDTH + (columns - 1) * _GAP


def _rows(shown: Sequence[StageSummary]) -> list[list[int]]:
    """Return the numbers of the boxes of each row: those that read from above only, at most three."""
    depths: list[int] = []
    for stage_summary in shown:
        depths.append(1 + max((depths[exchange.source] for exchange in stage_summary.stage.inputs), default=0))
    rows: list[list[int]] = []
    for depth in sorted(set(depths)):
        layer = [number for number, found in enumerate(depths) if found == depth]
        rows += [layer[start : start + _MOST_IN_A_ROW] for start in range(0, len(layer), _MOST_IN_A_ROW)]
    return rows


def _box(stage_summary: StageSummary, stages: Stages) -> Box:
    lines = [
        Line("head", stage_summary.name),
        *(Line("words", text) for text in _box_lines(stage_words(stage_summary, stages))),
    ]
    for call in shortened(stage_summary.stage.calls, _BOX_CALLS):
        lines.append(_call_line(call))
        lines += [Line("note", f"  {text}") for text in _box_lines(call.note)]
    lines += [Line("note", text) for note in stage_summary.stage.notes for text in _box_lines(note)]
    labels = tuple(map(_arrow_label, filter(_has_words, stage_summary.stage.inputs)))
    return Box(0, 0, len(lines) * LINE_HEIGHT + 2 * PADDING, tuple(lines), labels, stage_summary.stage.inputs)


def _call_line(call: Call) -> Line:
    right = short_place(call.where)
    room = _CHARACTERS - (len(right) + 2 if right else 0)
    return Line("call", _cut(call.label, room), right, f"{call.label} {place(call.where)}".strip())


def _cut(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: max(most - 1, 8)]}\N{HORIZONTAL ELLIPSIS}"


def _has_words(exchange: Exchange) -> bool:
    return exchange.how != "pipe" and bool(exchange_words(exchange) or exchange.why)


def _arrow_label(exchange: Exchange) -> Label:
    return Label(exchange, tuple(filter(None, (exchange_words(exchange), *_box_lines(exchange.why)))))


def _box_lines(text: str) -> list[str]:
    # Words are in a proportional font, of which more characters fit than of monospaced calls.
    return textwrap.wrap(text, _CHARACTERS + 6, max_lines=4, placeholder=" \N{HORIZONTAL ELLIPSIS}")


_SVG_STAGES = 14
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
    shown = folded(stages.stages, _SVG_STAGES)
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
        # Before the boxes: SVG paints later elements over earlier ones, and an arrow may cross a row.
        *_edges(layout),
        *(
            part
            for box, stage_summary in zip(layout.boxes, shown, strict=True)
            for part in _drawn(box, bool(stage_summary.stage.folded))
        ),
        *(_end(end, layout, last_ones(shown)) if end else ()),
        "</svg>",
    ]
    return "\n".join(parts)


def escaped(text: str) -> str:
    """Return a string for XML: special characters escaped, and characters that XML forbids replaced."""
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
    """Draw the arrows beneath the boxes: down, across between the rows, down again."""
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
    """Draw the output, below the stages that no other one reads."""
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


_HTML_STAGES = 40
_HTML_CALLS = 24


def as_html(stages: Stages) -> str:
    """Write the picture, and below it, folded away, a table; it needs nothing else to be shown."""
    rows = "\n".join(
        row for stage_summary in folded(stages.stages, _HTML_STAGES) for row in _table_rows(stage_summary, stages)
    )
    head = "".join(f'<th style="text-align: left">{name}</th>' for name in ("stage", "call", "file and line", "here"))
    return (
        f"<div>\n{as_svg(stages)}\n<details><summary>calls, files and lines</summary>\n"
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n</details>\n</div>"
    )


def _table_rows(stage_summary: StageSummary, stages: Stages) -> Iterator[str]:
    for number, call in enumerate(shortened(stage_summary.stage.calls, _HTML_CALLS)):
        first = "" if number else titled(stage_summary, stages)
        yield _table_row(first, call.label, place(call.where), call.note)


def _table_row(*cells: str) -> str:
    written = (f'<td style="text-align: left">{escaped(cell)}</td>' for cell in cells)
    return f"<tr>{''.join(written)}</tr>"


def with_reasons(stages: Stages) -> Stages:
    """Return the same stages, whose calls have the reasons why their functions run as they do."""
    reasoned = (replace(stage, calls=tuple(map(_reasoned, stage.calls))) for stage in stages.stages)
    return replace(stages, stages=tuple(reasoned))


def _reasoned(call: Call) -> Call:
    return replace(call, note=f"{call.note}. {call.why}") if call.why else call


_FORMATS: dict[str, Callable[[Stages], str]] = {
    "text": as_text,
    "dot": as_dot,
    "mermaid": as_mermaid,
    "svg": as_svg,
    "html": as_html,
}


class Drawing(str):
    """A drawing as a string in its format; a notebook displays SVG and HTML.

    Attributes:
        kind: the format, such as `"svg"`.
    """

    kind: str

    def __new__(cls, text: str, kind: str = "text") -> Drawing:
        made = super().__new__(cls, text)
        made.kind = kind
        return made

    def _repr_svg_(self) -> str | None:
        return str(self) if self.kind == "svg" else None

    def _repr_html_(self) -> str | None:
        return str(self) if self.kind == "html" else None


def show(stages: Callable[[], Stages], format: str, *, routes: bool = False) -> Drawing | None:
    """Print stages, if the format is text, or return a drawing of them.

    Args:
        stages: makes them, once the format is known to exist.
        format: one of the choices.
        routes: whether to add the reasons for the routes of functions.

    Raises:
        ValueError: there is no such format; the message lists the choices.
    """
    check_format(format)
    drawing = drawn(stages(), format, routes=routes)
    if format != "text":
        return drawing
    print(drawing)
    return None


def check_format(format: object) -> None:
    """Refuse an unknown format.

    Raises:
        ValueError: it is none of the choices, which the message lists.
    """
    if not isinstance(format, str) or format not in _FORMATS:
        raise ValueError(f"format must be one of {', '.join(map(repr, _FORMATS))}, not {format!r}")


def drawn(stages: Stages, format: str, *, routes: bool = False) -> Drawing:
    """Return the stages in a format; with `routes`, including the reasons for the routes of functions."""
    return Drawing(_FORMATS[format](with_reasons(stages) if routes else stages), format)


def graph_as_written(title: str, stages: Sequence[Stage]) -> Stages:
    """Return a graph that has a title and stages, and nothing that only a run has."""
    return Stages("", Call(title), "", tuple(stages), (), ONE, NOTHING, NOTHING)


def chains(root: Node) -> list[Stage]:
    """Return a stage for each chain of calls that starts, forks or meets another chain of a plan."""
    order = topological(root)
    readers = Counter(id(upstream) for node in order for upstream in node.inputs())
    drafts: list[tuple[list[Call], tuple[int, ...]]] = []
    ends: dict[int, int] = {}
    for node in order:
        above = [ends[id(upstream)] for upstream in node.inputs()]
        if len(above) != 1 or readers[id(node.inputs()[0])] > 1:
            drafts.append(([], tuple(above)))
            above = [len(drafts) - 1]
        ends[id(node)] = above[0]
        if label := node.label():
            drafts[above[0]][0].append(Call(label, node.step.where))
    return [Stage(tuple(calls), tuple(Exchange(source, "written") for source in sources)) for calls, sources in drafts]
