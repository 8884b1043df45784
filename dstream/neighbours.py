"""The packages that stand beside this one, and a clear word when another module hides one of them.

Importing this module makes the check, so that it comes before the first import that would fail
with a riddle.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

__all__ = ["check"]

_NEIGHBOURS = ("collectors", "reducers", "sources")


def check(home: str) -> None:
    """Make sure that the packages in `home` are the ones that Python finds.

    Raises:
        ImportError: a module of the same name stands earlier on the search path.
    """
    for name in _NEIGHBOURS:
        spec = find_spec(name)
        found = None if spec is None else spec.origin
        ours = os.path.join(home, name, "__init__.py")
        if found is not None and os.path.realpath(found) != os.path.realpath(ours):
            raise ImportError(f"{found} hides the package {name!r} of dstream; rename that file", name=name)


check(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
