"""Functions that are called for each item, whatever they do: those of operations that take items one by one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from dstream.engine.compiler.compiling import Facts
from dstream.engine.graph.decided import Decided
from dstream.failures import is_our_name
from dstream.plan.core import Called, Core
from dstream.spi import Collector

__all__ = ["called_by"]


def called_by(node: Core, facts: Facts) -> tuple[Decided, ...]:
    """Return what is decided of the functions of an operation that takes items one by one; nothing if none is read."""
    if not facts.reads_functions:
        return ()
    what = f"{node.step.label.partition('(')[0].lstrip('.')}() takes items one by one"
    return tuple(Decided(name, obstacle=what) for name in _names(node))


def _names(node: Core) -> Iterator[str]:
    """Give the names of the fields that hold functions of the user's."""
    if isinstance(node, Called):
        yield "fn"
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if isinstance(value, tuple) and any(isinstance(each, Collector) for each in value):
            yield from (name for each in value if isinstance(each, Collector) for name, _ in each.functions)
        elif field.name not in _NOT_OF_ITEMS and callable(value) and not _is_ours(value):
            yield field.name


_NOT_OF_ITEMS = frozenset({"create", "kind", "take", "policy"})
"""What makes a state, or runs in the caller's process."""


def _is_ours(fn: Any) -> bool:
    """Say whether dstream has written a function, or its class."""
    return is_our_name(getattr(fn, "__module__", None) or type(fn).__module__)
