"""Which functions of a plan are read: those of steps that tasks run for each item."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from dstream.engine.compiler.reading_entries import entry_read, read_around
from dstream.engine.kernels.columns.supported import unsupported
from dstream.expressions.expression import Argument, Expression
from dstream.expressions.function_reading import Unread, may_travel, read
from dstream.expressions.names_of_function import Namespaces
from dstream.expressions.order_of_evaluation import one_behind_another
from dstream.failures import is_our_name
from dstream.plan.core_of_services import Served
from dstream.plan.steps import Emitted, KeyInColumns, Op, shown_function, unchanged
from dstream.spi import Collector, InColumns
from dstream.values import Predicate
from dstream.values.entry import key_of, value_of

__all__ = ["key_in_columns", "read_step", "with_expression", "with_expressions"]


def with_expression(op: Op, namespaces: Namespaces | None = None, *, is_verified: bool = False) -> Op:
    """Return a step with what its function gives, if that can be read.

    Args:
        op: the step.
        namespaces: what is known of globals, for all steps of a plan.
        is_verified: what columns give is compared with what the function gives.
    """
    found = read_step(op, namespaces)
    if not isinstance(found, Expression):
        return op
    return dataclasses.replace(op, expression=found, is_verified=is_verified)


def with_expressions(
    collector: Collector[Any, Any, Any], namespaces: Namespaces | None = None, *, is_verified: bool
) -> Collector[Any, Any, Any]:
    """Return a collector with what its functions give, if columns can take it; otherwise one that takes none."""
    known = collector.on_columns()
    if known is None:
        return collector
    return dataclasses.replace(collector, in_columns=_read(known, namespaces, is_verified))


def _read(known: InColumns, namespaces: Namespaces | None, is_verified: bool) -> InColumns | None:
    found = _read_of(known, namespaces)
    downstream = None if known.downstream is None else _read(known.downstream, namespaces, is_verified)
    is_read = isinstance(found, Expression) and unsupported(found) is None
    if not isinstance(found, Expression) or not is_read or (downstream is None) != (known.downstream is None):
        return None
    return dataclasses.replace(known, expression=found, downstream=downstream, is_verified=is_verified)


def _read_of(known: InColumns, namespaces: Namespaces | None) -> Expression | Unread:
    """Return what is taken of an item, behind all that it goes through before."""
    found = Argument(0) if known.of is None else read(known.of, 1, namespaces)
    for fn in reversed(known.before):
        first = read(fn, 1, namespaces)
        if not isinstance(first, Expression) or not isinstance(found, Expression):
            return first if isinstance(found, Expression) else found
        found = one_behind_another(first, found)
    return found if not isinstance(found, Expression) or may_travel(found) else Unread("is long")


def key_in_columns(
    key: Callable[[Any], Any] | None, namespaces: Namespaces | None = None, *, is_verified: bool
) -> KeyInColumns:
    """Return what is known of a key function; None gives each item itself."""
    found = Argument(0) if key is None else read(key, 1, namespaces)
    is_read = isinstance(found, Expression) and unsupported(found) is None
    return KeyInColumns(found if isinstance(found, Expression) and is_read else None, is_verified)


def read_step(op: Op, namespaces: Namespaces | None = None) -> Expression | Unread | None:
    """Return what the function of a step gives, or why it is not known; None if a task calls no function of the user's.

    A step that looks after its failures calls its function: what failed is known by the exception alone.
    """
    if op.action not in _READ or op.fn is unchanged:
        return None
    if isinstance(op.fn, Served):
        return Unread("calls a service")
    if isinstance(op.fn, Emitted):
        return Unread("emits its items one by one", advice="return a tuple of them to flat_map()")
    if isinstance(op.fn, Predicate):
        return Unread(f"calls {shown_function(op.fn)}", advice="a lambda can be read")
    if op.guards:
        return Unread("is followed by a call that handles its failures")
    if is_our_name(type(op.fn).__module__):
        return read_around(op.fn, namespaces)
    if op.fn is key_of or op.fn is value_of:
        return entry_read("key" if op.fn is key_of else "value")
    return read(op.fn, 1, namespaces)


_READ = ("map", "filter", "flat_map")
