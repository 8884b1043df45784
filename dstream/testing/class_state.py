"""`ClassState`: finds what a processor keeps on its class, which all processors of a process share and none saves."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from dstream.failures import MISSING, shown

__all__ = ["ClassState"]

_OURS = ("dstream", "builtins", "typing", "abc")


class ClassState:
    """The attributes of the user's classes among those of an object, as they are now.

    Functions, properties and their kin are left out. What cannot be copied is compared by identity.

    Args:
        thing: an instance.
    """

    def __init__(self, thing: object) -> None:
        self._classes = [each for each in type(thing).__mro__ if each.__module__.partition(".")[0] not in _OURS]
        self._before = {(kind, name): (value, _copied(value)) for kind, name, value in self._attributes()}

    def _attributes(self) -> Iterator[tuple[type, str, Any]]:
        for kind in self._classes:
            for name, value in list(vars(kind).items()):
                is_pythons = name.startswith(("__", "_abc_"))
                if not is_pythons and not callable(value) and not hasattr(type(value), "__get__"):
                    yield kind, name, value

    def change(self) -> str | None:
        """Return what has changed since, in words; None: nothing."""
        for kind, name, value in self._attributes():
            was, copied = self._before.get((kind, name), (MISSING, MISSING))
            if was is MISSING:
                return f"{kind.__qualname__}.{name} was set to {shown(value)}"
            if was is not value or not _is_same(copied, value):
                return f"{kind.__qualname__}.{name} was {shown(copied)}, and is {shown(value)}"
        return None


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # Such as a lock, which nobody compares.
        return value


def _is_same(before: Any, now: Any) -> bool:
    """Say whether a value is as its copy was; one that only knows itself has no state that could be seen."""
    if before is now or getattr(type(before), "__eq__", None) is object.__eq__:
        return True
    try:
        return bool(before == now)
    except Exception:  # Such as an array, which gives an answer for each of its items.
        return repr(before) == repr(now)
