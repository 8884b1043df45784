"""The packages that stand beside this one, and a clear word when another module hides one of them.

Importing this module makes the check, so that it comes before the first import that would fail
with a riddle.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

__all__ = ["check"]

_NEIGHBOURS = ("collectors", "reducers", "sources")


def check(home: str) -> None:
    """Make sure that the packages in `home` are the ones that Python finds.

    Raises:
        ImportError: a module of the same name stands earlier on the search path.
    """
    for name in _NEIGHBOURS:
        found = _place(name)
        ours = os.path.join(home, name, "__init__.py")
        if found is not None and os.path.realpath(found) != os.path.realpath(ours):
            raise ImportError(f"{found} hides the package {name!r} of dstream; rename it", name=name)


def _place(name: str) -> str | None:
    """Return the file of a module; of one that is loaded and has none, as pytest makes them of folders, its folder."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        return getattr(loaded, "__file__", None) or next(iter(getattr(loaded, "__path__", ())), name)
    spec = find_spec(name)
    return None if spec is None else spec.origin


check(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
