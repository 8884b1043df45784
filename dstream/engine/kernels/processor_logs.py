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


def _heard() -> int:
    return logging.getLogger(_LOGGER).getEffectiveLevel()


@dataclass(frozen=True)
class ProcessorLogs:
    """Made in the caller, where it sees which lines are heard; it travels to the tasks.

    Attributes:
        level: the least that is heard of the loggers of processors.
        process: the caller's.
    """

    level: int = field(default_factory=_heard)
    process: int = field(default_factory=os.getpid)

    def begin(self) -> None:
        """Let processors be heard as in the caller; there, and where somebody has made a handler, nothing is added."""
        logger = logging.getLogger(_LOGGER)
        if os.getpid() == self.process:
            return
        logger.setLevel(self.level)
        if not logger.hasHandlers():
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
            logger.addHandler(handler)
