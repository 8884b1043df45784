"""Where the lines go that processors log: what the caller hears of them counts, also in worker processes.

A worker of Spark's has no handlers, and hears of warnings alone: what `peek_input`, `write_logger` and the loggers of
processors say there would be lost without a word. So a worker writes to its stderr, as functions that print do.
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass, field

__all__ = ["ProcessorLogs"]

_LOGGER = "dstream.core"


class _ToStderr(logging.StreamHandler):  # type: ignore[type-arg]  # Generic for type checkers alone.
    """Stands in a worker for the handlers of the caller."""


def _level() -> int:
    return logging.getLogger(_LOGGER).getEffectiveLevel()


def _has_handlers() -> bool:
    return logging.getLogger(_LOGGER).hasHandlers()


@dataclass(frozen=True)
class ProcessorLogs:
    """Made in the caller, where it sees which lines are heard; it travels to the tasks.

    Attributes:
        level: the least that is heard of the loggers of processors.
        has_handlers: the caller has set up logging; without, lines that were asked for are printed.
        process: the caller's.
    """

    level: int = field(default_factory=_level)
    has_handlers: bool = field(default_factory=_has_handlers)
    process: int = field(default_factory=os.getpid)

    def begin(self) -> None:
        """Let processors be heard as in the caller; there, and where somebody has made a handler, none is added."""
        if os.getpid() == self.process:
            return
        logger = logging.getLogger(_LOGGER)
        for ours in [each for each in logger.handlers if isinstance(each, _ToStderr)]:
            logger.removeHandler(ours)
        logger.setLevel(self.level)
        if self.has_handlers and not logger.hasHandlers():
            handler = _ToStderr(sys.stderr)
            handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
            logger.addHandler(handler)
