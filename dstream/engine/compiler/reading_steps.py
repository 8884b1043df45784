"""Which functions of a plan are read: those of steps that tasks run for each item."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from dstream.engine.compiler.reading_entries import entry_read, read_around
from dstream.engine.graph.decided import Decided
from dstream.engine.kernels.columns.steps_in_columns import obstacle_to_columns
from dstream.engine.kernels.columns.supported import unsupported
from dstream.engine.kernels.inlined import is_inlined
from dstream.expressions.expression import Argument, Expression
from dstream.expressions.function_reading import Unread, may_travel, name_of_callable, read
from dstream.expressions.names_of_function import Namespaces
from dstream.expressions.order_of_evaluation import one_behind_another
from dstream.failures import is_our_name
from dstream.plan.core_of_services import Served
from dstream.plan.steps import Emitted, KeyInColumns, Op, shown_function, unchanged
from dstream.spi import Collector, InColumns
from dstream.values import Predicate
from dstream.values.entry import key_of, value_of

__all__ = [
    "Reading",
    "called",
    "collector_read",
    "key_in_columns",
    "read_op",
    "read_step",
]


class Reading(NamedTuple):
    """A step as the compiler has read it, and what it has decided of its function; None if no task calls one."""

    op: Op
    decided: Decided | None


def read_op(op: Op, namespaces: Namespaces | None = None, *, is_verified: bool = False) -> Reading:
    """Return a step with what its function gives, if that can be read, and what was decided of that function.

    Args:
        op: the step.
        namespaces: what is known of globals, for all steps of a plan.
        is_verified: what columns give is compared with what the function gives.
    """
    found = read_step(op, namespaces)
    if found is None:
        return Reading(op, None)
    if isinstance(found, Unread):
        return Reading(op, Decided(unread=found))
    read_as = dataclasses.replace(op, expression=found, is_verified=is_verified)
    return Reading(
        read_as,
        Decided(
            obstacle=obstacle_to_columns(read_as) or "",
            is_inlined=is_inlined(read_as),
            written=name_of_callable(op.fn),
        ),
    )


def collector_read(
    collector: Collector[Any, Any, Any], namespaces: Namespaces | None = None, *, is_verified: bool
) -> tuple[Collector[Any, Any, Any], tuple[Decided, ...]]:
    """Return a collector with what its functions give, if columns can take it, and what was decided of each of them.

    A collector that columns cannot take has nothing of columns any more.
    """
    known = collector.on_columns()
    if known is None:
        what = f"{collector.name or 'the collector'} takes items one by one"
        return collector, tuple(called(collector.functions, what))
    readings: dict[int, Expression | Unread] = {}
    read_as = _read(known, namespaces, is_verified, readings)
    made = dataclasses.replace(collector, in_columns=read_as)
    return made, tuple(_decided(collector, is_read=read_as is not None, readings=readings))


def _decided(
    collector: Collector[Any, Any, Any], *, is_read: bool, readings: dict[int, Expression | Unread]
) -> Iterator[Decided]:
    """Give what was decided of each function: columns take all of them, or none."""
    for name, fn in collector.functions:
        found = readings.get(id(fn))
        if is_read:
            yield Decided(name)
        elif isinstance(found, Unread):
            yield Decided(name, found)
        else:
            obstacle = None if found is None else unsupported(found)
            yield Decided(name, obstacle=obstacle or "columns do not take the function beside it")


def called(functions: Iterable[tuple[str, Callable[..., Any]]], obstacle: str) -> Iterator[Decided]:
    """Give what is decided of functions that are called for each item whatever they do, since the obstacle is there."""
    return (Decided(name, obstacle=obstacle) for name, _ in functions)


def _read(
    known: InColumns,
    namespaces: Namespaces | None,
    is_verified: bool,
    readings: dict[int, Expression | Unread],
) -> InColumns | None:
    found = _read_of(known, namespaces, readings)
    downstream = None if known.downstream is None else _read(known.downstream, namespaces, is_verified, readings)
    is_read = isinstance(found, Expression) and unsupported(found) is None
    if not isinstance(found, Expression) or not is_read or (downstream is None) != (known.downstream is None):
        return None
    return dataclasses.replace(known, expression=found, downstream=downstream, is_verified=is_verified)


def _read_of(
    known: InColumns, namespaces: Namespaces | None, readings: dict[int, Expression | Unread]
) -> Expression | Unread:
    """Return what is taken of an item, behind all that it goes through before, and note what each function gives."""
    found: Expression | Unread = Argument(0)
    if known.of is not None:
        found = readings[id(known.of)] = _function_read(known.of, namespaces)
    for fn in reversed(known.before):
        first = readings[id(fn)] = _function_read(fn, namespaces)
        if not isinstance(first, Expression) or not isinstance(found, Expression):
            return first if isinstance(found, Expression) else found
        found = one_behind_another(first, found)
    return found if not isinstance(found, Expression) or may_travel(found) else Unread("is long")


def key_in_columns(
    key: Callable[[Any], Any] | None, condition: str, namespaces: Namespaces | None = None, *, is_verified: bool
) -> tuple[KeyInColumns, tuple[Decided, ...]]:
    """Return what is known of a key function, and what was decided of it; None gives each item itself.

    Args:
        key: the function.
        condition: when keys can stand in columns, as far as only the data can say.
        namespaces: what the names in the function mean.
        is_verified: whether columns are compared with what Python gives.
    """
    if key is None:
        return KeyInColumns(Argument(0), is_verified), ()
    found = read(key, 1, namespaces)
    if isinstance(found, Unread):
        return KeyInColumns(None, is_verified), (Decided("key", found),)
    obstacle = unsupported(found)
    if obstacle is not None:
        return KeyInColumns(None, is_verified), (Decided("key", obstacle=obstacle),)
    return KeyInColumns(found, is_verified), (Decided("key", conditions=(condition,)),)


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
    return _function_read(op.fn, namespaces)


def _function_read(fn: Callable[..., Any], namespaces: Namespaces | None) -> Expression | Unread:
    """Return what a function gives of an item: one of the user's, or that of the keys or values of entries."""
    if fn is key_of or fn is value_of:
        return entry_read("key" if fn is key_of else "value")
    return read(fn, 1, namespaces)


_READ = ("map", "filter", "flat_map")
