"""`Classes`: finds a class that stored data name, if it may be loaded."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

__all__ = ["ClassRefusedError", "Classes", "NotStorableError", "find", "reference"]


class ClassRefusedError(TypeError):
    """Stored data name a class that cannot be found, has changed, or may not be loaded."""


class NotStorableError(ClassRefusedError):
    """A value cannot be pickled, whatever is allowed."""


class Classes(Protocol):
    """Decides which classes may be loaded by name; `Pickles` is one."""

    def resolve(self, reference: str) -> type:
        """Return the class that `reference` ("module:qualname") names.

        Raises:
            ClassRefusedError: there is none, or it may not be loaded; a `TypeError` that says what to do.
        """
        ...


def reference(kind: type) -> str:
    """Return the name under which stored data refer to a class."""
    return f"{kind.__module__}:{kind.__qualname__}"


def find(name: str) -> type:
    """Import the class that a reference names.

    Raises:
        ClassRefusedError: there is no such class in this process.
    """
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise ClassRefusedError(f"the class {name} cannot be found here: {error}") from error
    if not isinstance(found, type):
        raise ClassRefusedError(f"{name} is no class")
    return found
