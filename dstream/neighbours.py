"""The packages that stand beside this one, and a clear word when another module hides one of them.

Importing this module makes the check, so that it comes before the first import that would fail
with a riddle.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

__all__ = ["check"]

_NEIGHBOURS = ("collectors", "reducers", "sources")


def check(home: Path) -> None:
    """Make sure that the packages in `home` are the ones that Python finds.

    Raises:
        ImportError: a module of the same name stands earlier on the search path.
    """
    for name in _NEIGHBOURS:
        spec = find_spec(name)
        found = None if spec is None or spec.origin is None else Path(spec.origin)
        if found is not None and found.resolve() != (home / name / "__init__.py").resolve():
            raise ImportError(f"{found} hides the package {name!r} of dstream; rename that file", name=name)


check(Path(__file__).parent.parent)
