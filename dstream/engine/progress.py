"""Progress of the terminal operations that an engine runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from dstream.engine.display import BOARD, Board, Display, ProgressFacts, chosen, quietly
from dstream.plan.steps import SourceLocation, Step, entry_point

__all__ = ["Call", "Operation", "Progress"]


_LONGEST = 100
_END = object()


@dataclass(frozen=True)
class Call:
    """A call in the user's code, as it is named while it runs.

    Attributes:
        text: the call, such as `sorted(key=len)`.
        where: its place.
        purpose: what is done for it, if that is not all of it.
    """

    text: str
    where: SourceLocation | None
    purpose: str = ""

    @staticmethod
    def of_step(step: Step, purpose: str = "") -> Call:
        """Return the call that made a step of the chain."""
        text = step.label.removeprefix(".")
        return Call(text if len(text) <= _LONGEST else text[:_LONGEST] + "...", step.where, purpose)

    @staticmethod
    def of_user() -> Call:
        """Return the call by which the user's code came here."""
        name, where = entry_point()
        return Call("iterating" if name == "__iter__" else f"{name}()", where)

    def title(self) -> str:
        """Return it for the line, such as `sorted(key=len) orders.py:12`."""
        return f"{self.text} {self._place()}" if self.where else self.text

    def description(self) -> str:
        """Return it in full, such as `sorted(key=len) at orders.py:12: sample of keys`."""
        place = f" at {self._place()}" if self.where else ""
        return f"{self.text}{place}{': ' if self.purpose else ''}{self.purpose}"

    def _place(self) -> str:
        assert self.where is not None
        return os.path.basename(str(self.where))


class Progress:
    """Whether the operations of a context show how far they are.

    Args:
        asked: whether the user wants it; None for where it can be seen: in terminals and notebooks.
        board: what shows them.
        choose: chooses the display when an operation begins.
    """

    def __init__(
        self,
        asked: bool | None = None,
        board: Board = BOARD,
        choose: Callable[[bool | None], Display | None] = chosen,
    ) -> None:
        self._asked = asked
        self._board = board
        self._choose = choose

    def begin(self, facts: Callable[[], ProgressFacts]) -> Operation | None:
        """Return an operation that asks for `facts` when it is shown; None if it is not to be shown."""
        display = quietly(lambda: self._choose(self._asked))
        return None if display is None else Operation(self._board, display, facts)

    def tell(self, line: str) -> None:
        """Write a line about what happened to stderr, unless the user wants none; nobody's job depends on it."""
        if self._asked is not False and sys.stderr is not None:
            quietly(lambda: print(line, file=sys.stderr, flush=True))


class Operation:
    """A terminal operation. As a context it is shown while the caller waits inside."""

    def __init__(self, board: Board, display: Display, facts: Callable[[], ProgressFacts]) -> None:
        self.started = board.clock()
        self.display = display
        self.context = copy_context()
        self.facts = facts
        self._board = board

    def __enter__(self) -> None:
        self._board.enter(self)

    def __exit__(self, *exc_info: object) -> None:
        self._board.leave(self)

    def lazily(self, items: Iterator[Any]) -> Iterator[Any]:
        """Give the items; the line goes away whenever it is the caller's turn."""
        enter, pause = self._board.enter, self._board.pause
        each = None
        try:
            while each is not _END:
                enter(self)
                try:
                    each = next(items, _END)
                finally:
                    pause(self)
                if each is not _END:
                    yield each
        finally:
            self._board.settle(self)
