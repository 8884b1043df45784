"""Functions that are called for each item, whatever they do: those of operations that take items one by one."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any

from dstream.engine.compiler.compiling import Facts
from dstream.engine.graph.decided import Decided
from dstream.failures import is_our_name
from dstream.plan.core import Called, Core
from dstream.spi import Collector, Gatherer

__all__ = ["called_as", "called_by", "is_ours"]


def called_by(node: Core, facts: Facts) -> tuple[Decided, ...]:
    """Return what is decided of the functions of an operation that takes items one by one; nothing if none is read."""
    return called_as(node, [*(["fn"] if isinstance(node, Called) else []), *_names(node)], facts)


def called_as(node: Core, names: Iterable[str], facts: Facts) -> tuple[Decided, ...]:
    """Return the same of functions that are called so; what has to do with them names itself by its call."""
    if not facts.reads_functions:
        return ()
    what = f"{_method(node.step.label)}() takes items one by one"
    return tuple(Decided(name, obstacle=what) for name in dict.fromkeys(names))


def _method(label: str) -> str:
    """Return the name of the last call of a label, or of the sink that it is given."""
    inside = re.fullmatch(r"\.?(?:write_to|collect)\((.*)\)", label)
    calls = inside[1] if inside else label
    while (without := re.sub(r"\([^()]*\)", "", calls)) != calls:
        calls = without
    return calls.rpartition(".")[2].partition("(")[0]


def _names(value: Any) -> Iterator[str]:
    """Give the names of the fields that hold functions of the user's."""
    for field in dataclasses.fields(value):
        if field.name not in _NOT_OF_ITEMS:
            yield from _names_in(field.name, getattr(value, field.name))


def _names_in(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Collector):
        yield from (each for each, _ in value.functions)
    elif isinstance(value, tuple):
        for each in value:
            yield from _names_in(name, each)
    elif name == "operator" and dataclasses.is_dataclass(value):
        yield from _names(value)
    elif isinstance(value, Gatherer):
        yield from _of_gatherer(value.integrator)
    elif callable(value) and not is_ours(value):
        yield name


def _of_gatherer(integrator: Any) -> Iterator[str]:
    """Give the name of what takes items: ours may call one of the user's for them."""
    if not isinstance(integrator, functools.partial):
        yield from () if is_ours(integrator) else ("integrator",)
    elif any(callable(each) and not is_ours(each) for each in integrator.args):
        yield "fn"


_NOT_OF_ITEMS = frozenset({"create", "kind", "take", "policy"})
"""What makes a state, or runs in the caller's process."""


def is_ours(fn: Any) -> bool:
    """Say whether dstream has written a function, or its class."""
    return is_our_name(getattr(fn, "__module__", None) or type(fn).__module__)
