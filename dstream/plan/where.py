"""`Where`: the file and line of the user's call that made a node."""

from __future__ import annotations

import sys
from types import FrameType
from typing import NamedTuple

from dstream.failures import is_ours
from dstream.failures.showing import cell_of

__all__ = ["Where", "call_site", "entry_point"]


class Where(NamedTuple):
    """A place in the user's code.

    Attributes:
        cell: the number of the notebook cell, which a worker could not find out; None for any other file.
    """

    file: str
    line: int
    cell: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.cell is None else f"cell {self.cell}, line {self.line}"


def _where(frame: FrameType) -> Where:
    file = frame.f_code.co_filename
    return Where(file, frame.f_lineno, cell_of(file))


def call_site() -> Where | None:
    """Return the place in the user's code that called into dstream, or None outside of any."""
    frame = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame):
            return _where(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def entry_point() -> tuple[str, Where | None]:
    """Return the name of the function by which the user's code called into dstream, and the place of that call."""
    frame = sys._getframe(1)
    name = frame.f_code.co_name
    while frame is not None:
        if not is_ours(frame):
            return name, _where(frame)
        name = frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return name, None
