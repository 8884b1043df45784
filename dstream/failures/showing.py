"""How items, places and lines of source read in a message: short, and never with an error of their own."""

from __future__ import annotations

import linecache
import os
import sys

from dstream.values.blaming import shown

__all__ = ["cell_of", "near", "shown", "source_line"]


def near(file: str, line: int) -> str:
    """Return a place as its user would say it: `orders.py:12`; in a notebook `cell 3, line 2`."""
    cell = cell_of(file)
    if cell is not None:
        return f"cell {cell}, line {line}"
    try:
        here = os.getcwd() + os.sep
    except OSError:
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
    """Return a line of source, or an empty text where the source is not at hand."""
    return linecache.getline(file, line).strip()
