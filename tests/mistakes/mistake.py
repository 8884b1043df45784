"""`@mistake`: one way to get it wrong, with the words that must come of it."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dstream as ds

__all__ = ["BOTH", "LOCAL", "SPARK", "Desk", "Mistake", "mistake", "recorded"]

BOTH, LOCAL, SPARK = ("local", "spark"), ("local",), ("spark",)


@dataclass(frozen=True)
class Desk:
    """What someone who makes a mistake has before them: a context, and a folder of their own."""

    ctx: ds.Context
    folder: Path


@dataclass(frozen=True)
class Mistake:
    """One way to get it wrong.

    Attributes:
        run: makes the mistake; the line that is to blame ends in `# here`.
        error: what it raises.
        says: a pattern for what happened.
        advises: a pattern for what to do.
        engines: where it is made.
    """

    run: Callable[[Desk], Any]
    error: type[BaseException]
    says: str
    advises: str
    engines: tuple[str, ...]

    @property
    def place(self) -> str:
        """The file and line that is to blame."""
        lines, first = inspect.getsourcelines(self.run)
        (blamed,) = (number for number, line in enumerate(lines, first) if line.rstrip().endswith("# here"))
        return f"{Path(inspect.getsourcefile(self.run) or '').name}:{blamed}"

    def words(self, error: BaseException) -> str:
        """Return all that the user reads: the message and the notes."""
        return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])

    def places(self, error: BaseException) -> list[str]:
        """Return every place that the user sees: in the notes, and in the lines of the traceback that are theirs."""
        mine = str(Path(__file__).parent)
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames if frame.filename.startswith(mine)]
        return [*lines, *re.findall(r"([^\s/]+\.py:\d+)", self.words(error))]


recorded: dict[str, Mistake] = {}


def mistake(
    error: type[BaseException], says: str, advises: str, *, engines: tuple[str, ...] = BOTH
) -> Callable[[Callable[[Desk], Any]], Callable[[Desk], Any]]:
    """Record a function that makes a mistake, by its name."""

    def record(run: Callable[[Desk], Any]) -> Callable[[Desk], Any]:
        recorded[run.__name__] = Mistake(run, error, says, advises, engines)
        return run

    return record
