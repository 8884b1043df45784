"""Whose code it is: that of dstream, of Python and of what is installed, or the user's own.

Names decide nothing here: a user's folder may be called `sources`, and so may a checkout that stands above it.
"""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType

__all__ = ["is_installed", "is_our_name", "is_ours"]

_PACKAGES = frozenset({"dstream", "collectors", "reducers", "sources"})
_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_HOMES = tuple(os.path.join(_HOME, name, "") for name in sorted(_PACKAGES))
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def is_ours(frame: FrameType) -> bool:
    """Say whether a frame runs code of dstream's four packages."""
    return _are_ours(frame.f_globals.get("__name__", ""), frame.f_globals.get("__file__"))


def is_our_name(module: str) -> bool:
    """Say whether the module of this name belongs to dstream's four packages."""
    return _are_ours(module, getattr(sys.modules.get(module), "__file__", None))


@functools.lru_cache(maxsize=4096)
def _are_ours(name: str, file: str | None) -> bool:
    """Say it of a module; each call of the user's asks for some frames of the same few modules."""
    if name.partition(".")[0] not in _PACKAGES:
        return False
    # pytest names a user's `sources/tests/test_orders.py` like a module of ours. Generated code has no file.
    return file is None or file.startswith(_HOMES)


def is_installed(file: str) -> bool:
    """Say whether a file belongs to Python, or to a package that was installed for it.

    A folder called `site-packages` counts if Python searches it for modules, not if it stands above the user's own.
    """
    return os.path.abspath(file).startswith(_folders(tuple(sys.path)))


@functools.lru_cache(maxsize=8)
def _folders(search_path: tuple[str, ...]) -> tuple[str, ...]:
    import sysconfig  # It takes a millisecond, and only a failure needs it.

    of_python = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    searched = (entry for entry in map(os.path.abspath, search_path) if os.path.basename(entry) in _INSTALLED)
    return tuple({os.path.join(os.path.abspath(folder), "") for folder in (*of_python, *searched)})
