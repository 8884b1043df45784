"""Short strings for messages: values, names meant or repeated, source locations, notebook cells, lines of source."""

from __future__ import annotations

import collections
import linecache
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

__all__ = ["add_note", "cell_of", "class_name", "did_you_mean", "near", "repeated", "shown", "source_line"]


def shown(value: Any) -> str:
    """Return how a value reads, cut at 200 characters; `repr` may be the user's own, and fail."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr fails with {type(error).__name__}>"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


_LONGEST = 200


def class_name(kind: type) -> str:
    """Return the name of a class with its module, unless it is built in."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception, unless its class refuses notes, as a frozen dataclass does."""
    with suppress(Exception):
        error.add_note(note)


def did_you_mean(name: str, known: Iterable[str], n: int = 1, show: Callable[[str], str] = repr) -> str:
    """Return a question that names the known names most like an unknown one, at most `n`; an empty string for none."""
    from difflib import get_close_matches  # imported on use: only needed for an error

    close = get_close_matches(name, list(known), n)
    return f"did you mean {' or '.join(map(show, close))}?" if close else ""


def repeated(names: Iterable[str]) -> str:
    """Return the names that occur more than once, as a string; empty if there are none."""
    return ", ".join(repr(name) for name, count in collections.Counter(names).items() if count > 1)


def near(file: str, line: int) -> str:
    """Return a source location in the user's terms: `orders.py:12`; in a notebook `cell 3, line 2`."""
    cell = cell_of(file)
    if cell is not None:
        return f"cell {cell}, line {line}"
    try:
        here = os.getcwd() + os.sep
    except OSError:  # The working directory may have been removed.
        here = os.sep
    return f"{file.removeprefix(here) if here != os.sep else file}:{line}"


def cell_of(file: str) -> int | None:
    """Return the number of the notebook cell that IPython runs under this file name."""
    module = sys.modules.get("IPython")
    if module is None:
        return None
    shell = module.get_ipython() if hasattr(module, "get_ipython") else None
    names: dict[str, int] = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return names.get(file)


def source_line(file: str, line: int) -> str:
    """Return a line of source, or an empty string if the source is not available."""
    return linecache.getline(file, line).strip()
