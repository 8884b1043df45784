"""What the line says: facts in, one line of text out."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Facts", "written"]

_GAP = "  "


@dataclass(frozen=True)
class Facts:
    """How far an operation is.

    Attributes:
        title: what runs, in the user's words, such as `sorted(key=len) orders.py:12`.
        items: how many items were read from sources; None if nobody counts.
        tasks: how many of all tasks are done, as (done, all); None where there are no tasks.
        stage: which of all stages runs, as (number, all).
    """

    title: str
    items: int | None = None
    tasks: tuple[int, int] | None = None
    stage: tuple[int, int] | None = None


def written(facts: Facts, seconds: float, width: int | None = None, others: int = 0) -> str:
    """Write the line; where it is too narrow, the title is cut first.

    Args:
        facts: how far the operation is.
        seconds: how long it has been running.
        width: how many cells there are; None for any number.
        others: how many other operations run meanwhile.

    Example:
        >>> written(Facts("count() orders.py:3", 1_200_000, (14, 24), (2, 3)), 12)
        'count() orders.py:3  stage 2 of 3  14/24 tasks  1,200,000 items  0:12'
    """
    rest = _GAP.join(_parts(facts, seconds, others))
    line = _GAP.join((facts.title, rest))
    return line if width is None else _cut(facts.title, rest, width)


def _parts(facts: Facts, seconds: float, others: int) -> list[str]:
    parts = []
    if facts.stage is not None and facts.stage[1] > 1:
        parts.append(f"stage {facts.stage[0]} of {facts.stage[1]}")
    if facts.tasks is not None:
        parts.append(f"{facts.tasks[0]}/{facts.tasks[1]} tasks")
    if facts.items:
        parts.append(f"{facts.items:,} item{'s' if facts.items > 1 else ''}")
    parts.append(_clock(seconds))
    if others:
        parts.append(f"and {others} more job{'s' if others > 1 else ''}")
    return parts


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _cut(title: str, rest: str, width: int) -> str:
    """Fit title and rest into `width` cells, at the cost of the title, then of the end of the rest."""
    from rich.cells import cell_len
    from rich.text import Text

    room = width - cell_len(rest) - len(_GAP)
    short = Text(title)
    short.truncate(max(room, 0), overflow="ellipsis")
    line = Text(_GAP.join((short.plain, rest)) if room > 1 else rest)
    line.truncate(width, overflow="ellipsis")
    return line.plain
