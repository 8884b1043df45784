"""How a function reads in the call that it was given to."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["shown_function"]


def shown_function(fn: Any) -> str:
    """Write a function as short as its user would: `parse`, `lambda`, `partial(parse)`."""
    if isinstance(fn, functools.partial):
        return f"partial({shown_function(fn.func)})"
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    return "lambda" if name.endswith("<lambda>") else name.rpartition("<locals>.")[2]
