"""Where the boxes of a drawing stand: in layers from top to bottom, the parts of a concat side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dstream.plan.show.shortening import Shown, shortened
from dstream.plan.show.wording import exchange_words, place, short_place, stage_words
from dstream.plan.stages import Call, Exchange, Stages

__all__ = ["BOX_WIDTH", "Box", "Label", "Layout", "Line", "laid_out"]

BOX_WIDTH = 440
LINE_HEIGHT = 18
PADDING = 12
_GAP = 28
_ARROW = 30
_STEP = BOX_WIDTH + _GAP
_MOST_IN_A_ROW = 3
_MOST_CALLS = 9
_CHARACTERS = 56
"""How many characters of a monospaced line fit into a box."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text in a box.

    Attributes:
        kind: `"head"`, `"words"`, `"call"` or `"note"`.
        text: what stands on the left.
        right: what stands on the right.
        tooltip: what a pointer over it shows.
    """

    kind: str
    text: str
    right: str = ""
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """What stands above a box about the items that come in."""

    exchange: Exchange
    lines: tuple[str, ...]

    @property
    def height(self) -> int:
        """How much room it needs, with the arrow below."""
        return LINE_HEIGHT * len(self.lines) + _ARROW


@dataclass(frozen=True, slots=True)
class Box:
    """A stage in its place; `y` is the top of the box itself, whose labels stand above."""

    x: int
    y: int
    height: int
    lines: tuple[Line, ...]
    labels: tuple[Label, ...]
    inputs: tuple[Exchange, ...]

    @property
    def middle(self) -> int:
        """Where arrows come and go."""
        return self.x + BOX_WIDTH // 2

    @property
    def labels_height(self) -> int:
        """How much room the labels need."""
        return sum(label.height for label in self.labels)


@dataclass(frozen=True, slots=True)
class Layout:
    """All boxes, and how much room they take."""

    width: int
    height: int
    boxes: tuple[Box, ...]


def laid_out(shown: Sequence[Shown], stages: Stages, top: int) -> Layout:
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


def _columns(row: Sequence[int], shown: Sequence[Shown], boxes: Mapping[int, Box], width: int) -> dict[int, int]:
    """Return where each box of a row begins: below those that it reads from, if there is room."""
    first = (width - _width(len(row))) // 2
    wanted: list[tuple[int, int]] = []
    for column, number in enumerate(row):
        above = [boxes[exchange.source].x for exchange in shown[number].stage.inputs]
        wanted.append((sum(above) // len(above) if above else first + column * _STEP, number))
    places: dict[int, int] = {}
    free = _GAP
    for left, (x, number) in enumerate(sorted(wanted)):
        last = width - _GAP - BOX_WIDTH - (len(row) - 1 - left) * _STEP
        places[number] = min(max(x, free), last)
        free = places[number] + _STEP
    return places


def _width(columns: int) -> int:
    return columns * BOX_WIDTH + (columns - 1) * _GAP


def _rows(shown: Sequence[Shown]) -> list[list[int]]:
    """Return the numbers of the boxes of each row: those that read from above only, at most three."""
    depths: list[int] = []
    for one in shown:
        depths.append(1 + max((depths[exchange.source] for exchange in one.stage.inputs), default=0))
    rows: list[list[int]] = []
    for depth in sorted(set(depths)):
        layer = [number for number, found in enumerate(depths) if found == depth]
        rows += [layer[start : start + _MOST_IN_A_ROW] for start in range(0, len(layer), _MOST_IN_A_ROW)]
    return rows


def _box(one: Shown, stages: Stages) -> Box:
    lines = [Line("head", one.name), *(Line("words", text) for text in _wrapped(stage_words(one, stages)))]
    for call in shortened(one.stage.calls, _MOST_CALLS):
        lines.append(_call_line(call))
        lines += [Line("note", f"  {text}") for text in _wrapped(call.note)]
    lines += [Line("note", text) for note in one.stage.notes for text in _wrapped(note)]
    labels = tuple(map(_label, filter(_has_words, one.stage.inputs)))
    return Box(0, 0, len(lines) * LINE_HEIGHT + 2 * PADDING, tuple(lines), labels, one.stage.inputs)


def _call_line(call: Call) -> Line:
    right = short_place(call.where)
    room = _CHARACTERS - (len(right) + 2 if right else 0)
    return Line("call", _cut(call.label, room), right, f"{call.label} {place(call.where)}".strip())


def _cut(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: max(most - 1, 8)]}\N{HORIZONTAL ELLIPSIS}"


def _has_words(exchange: Exchange) -> bool:
    return exchange.how != "pipe" and bool(exchange_words(exchange) or exchange.why)


def _label(exchange: Exchange) -> Label:
    return Label(exchange, tuple(filter(None, (exchange_words(exchange), *_wrapped(exchange.why)))))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _CHARACTERS + 6, max_lines=4, placeholder=" \N{HORIZONTAL ELLIPSIS}")
