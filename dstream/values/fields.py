"""The fields of classes that are values with names: dataclasses and named tuples."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, cast

__all__ = ["field_names"]


def field_names(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass or a named tuple; none for other classes.

    Example:
        >>> from dstream.values.fields import field_names
        >>> field_names(Entry)
        ('key', 'value')
    """
    names: tuple[str, ...] = _field_names(cast(Any, kind))
    return names


@functools.lru_cache(maxsize=1024)
def _field_names(kind: Any) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(getattr(kind, "_fields", ())) if issubclass(kind, tuple) else ()
