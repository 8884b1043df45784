"""`DeadLetter`: an item that a step failed on, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["DeadLetter"]


@dataclass(frozen=True)
class DeadLetter:
    """An item that a step failed on: what `stream.on_error(kinds, into=reducer)` hands to the reducer.

    Attributes:
        item: what the step was given; how it reads, as a str, if it cannot be pickled; of a source the `BadRecord`.
        error: the name of the exception's class.
        message: what the exception says.
        step: the call that made the step, such as `.map(parse)`.
        where: the file and line of that call; empty if nobody knows.

    Example:
        >>> DeadLetter("x", "ValueError", "no number", ".map(parse)", "orders.py:7").item
        'x'
    """

    item: Any
    error: str
    message: str
    step: str
    where: str
