"""Log lines that users requested: to a logger, or to stderr without a logging setup.

Python shows nothing below WARNING until a program configures logging, but lines that were requested must be shown.
"""

from __future__ import annotations

import logging
import sys

__all__ = ["is_enabled", "log_line"]


def is_enabled(logger: logging.Logger) -> bool:
    """Return whether a line at the level INFO is written anywhere."""
    return logger.isEnabledFor(logging.INFO) or _is_as_python_left_it(logger)


def log_line(logger: logging.Logger, text: object) -> None:
    """Log a line at the level INFO, or print it to stderr if the program has set up no logging."""
    if logger.hasHandlers():
        logger.info("%s", text)
    elif is_enabled(logger):
        print(f"{logger.name}: {text}", file=sys.stderr)


def _is_as_python_left_it(logger: logging.Logger) -> bool:
    """Return whether neither a handler nor a level was set, for it or above it."""
    return not logger.hasHandlers() and logger.getEffectiveLevel() == logging.WARNING
