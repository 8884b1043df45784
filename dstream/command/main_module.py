"""The module `__main__` of what a user runs or types: functions in it travel to the workers by value."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType
from typing import Any

__all__ = ["new_main"]


def new_main(**names: Any) -> ModuleType:
    """Put a new module in the place of `__main__`, with these names in it."""
    main = ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, **names})
    sys.modules["__main__"] = main
    return main
