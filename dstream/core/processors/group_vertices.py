"""Vertices that aggregate all that comes to them: in one group or by key, in one stage or in two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from collectors.groups import groups_of_any_key
from dstream.core.key_functions import entry_key, entry_value, whole_item
from dstream.core.processors.grouping_processor import (
    CombiningProcessor,
    FirstGrouping,
    GroupingProcessor,
    groups_of_containers,
)
from dstream.core.processors.library_supplier import LibrarySupplier, shown_call
from dstream.core.processors.taken_containers import of_containers, to_containers
from dstream.operators.window_arguments import check_keys
from dstream.spi import AggregateOperation
from dstream.spi.processor_suppliers import GroupsByKey, ProcessorMetaSupplier, TwoStages
from dstream.spi.wrong_arguments import hint_of_a_collector
from dstream.stream.stream_arguments import function, kind_of, optional_function
from dstream.values import Entry

__all__ = [
    "accumulate",
    "accumulate_by_key",
    "aggregate",
    "aggregate_by_key",
    "checked_keys",
    "checked_operation",
    "combine",
    "combine_by_key",
]

Operation = AggregateOperation[Any, Any, Any]
Keys = Sequence[Callable[[Any], Any]]


def aggregate(operation: Operation) -> ProcessorMetaSupplier:
    """Return what makes processors that emit the result of all items that come to them, when these have ended.

    A processor without an item emits the result of nothing: give the vertex one processor.

    Args:
        operation: takes the items of each inbound edge as one input.

    Raises:
        TypeError: it is none.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors
        >>> processors.aggregate(counting())
        aggregate(counting())
    """
    checked = checked_operation(operation, "aggregate")
    return _shared(shown_call("aggregate", operation), None, checked, None, gives_empty=True)


def accumulate(operation: Operation) -> ProcessorMetaSupplier:
    """Return the first of two stages: what makes processors that emit the container of the items that come to them.

    A processor without an item emits nothing.

    Args:
        operation: takes the items of each inbound edge as one input; it has a `combine`.

    Raises:
        TypeError: it is none, or has no `combine`.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors
        >>> processors.accumulate(counting())
        accumulate(counting())
    """
    checked = to_containers(checked_operation(operation, "accumulate"), "accumulate")
    return _shared(shown_call("accumulate", operation), None, checked, None)


def combine(operation: Operation) -> ProcessorMetaSupplier:
    """Return the second stage: what makes processors that emit the result of all containers that come to them.

    A processor without an item emits the result of nothing: give the vertex one processor.

    Args:
        operation: that of the `accumulate` before it.

    Raises:
        TypeError: it is none, or has no `combine`.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors
        >>> processors.combine(counting())
        combine(counting())
    """
    checked = of_containers(checked_operation(operation, "combine"), whole_item, "combine")
    create = partial(GroupingProcessor, None, checked, None, gives_empty=True)
    return LibrarySupplier(create, shown_call("combine", operation), inputs=checked.arity)


def aggregate_by_key(
    keys: Keys, operation: Operation, to: Callable[[Any, Any], Any] | None = None
) -> ProcessorMetaSupplier:
    """Return what makes processors that emit the result of the items of each key, when these have ended.

    The edges that lead to the vertex are partitioned by the same keys.

    Args:
        keys: gives the key of an item, one function for each inbound edge.
        operation: takes the items of each inbound edge as one input.
        to: takes (key, result), and makes what is emitted; None: an `Entry`.

    Raises:
        TypeError: one of these is of another kind, or there is not one key function for each input.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors, whole_item
        >>> processors.aggregate_by_key([whole_item], counting())
        aggregate_by_key([whole_item], counting())
    """
    checked = checked_operation(operation, "aggregate_by_key")
    shown = shown_call("aggregate_by_key", keys, operation, to=to)
    return _shared(shown, checked_keys(keys, checked), checked, optional_function(to, "to") or Entry)


def accumulate_by_key(keys: Keys, operation: Operation) -> ProcessorMetaSupplier:
    """Return the first of two stages: what makes processors that emit an entry of each key and its container.

    Args:
        keys: gives the key of an item, one function for each inbound edge.
        operation: takes the items of each inbound edge as one input; it has a `combine`.

    Raises:
        TypeError: one of these is of another kind, there is not one key function for each input, or the operation has
            no `combine`.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors, whole_item
        >>> processors.accumulate_by_key([whole_item], counting())
        accumulate_by_key([whole_item], counting())
    """
    checked = to_containers(checked_operation(operation, "accumulate_by_key"), "accumulate_by_key")
    shown = shown_call("accumulate_by_key", keys, operation)
    return _shared(shown, checked_keys(keys, checked), checked, Entry)


def combine_by_key(operation: Operation, to: Callable[[Any, Any], Any] | None = None) -> ProcessorMetaSupplier:
    """Return the second stage: what makes processors that emit the result of the containers of each key.

    The edge that leads to the vertex is partitioned by `entry_key`.

    Args:
        operation: that of the `accumulate_by_key` before it.
        to: takes (key, result), and makes what is emitted; None: an `Entry`.

    Raises:
        TypeError: one of these is of another kind, or the operation has no `combine`.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors
        >>> processors.combine_by_key(counting())
        combine_by_key(counting())
    """
    checked = of_containers(checked_operation(operation, "combine_by_key"), entry_value, "combine_by_key")
    create = partial(CombiningProcessor, checked, optional_function(to, "to") or Entry)
    groups = GroupsByKey(entry_key, checked, groups_of_containers(checked), True) if to is None else None
    return LibrarySupplier(create, shown_call("combine_by_key", operation, to=to), groups=groups, inputs=checked.arity)


def _shared(
    shown: str, keys: tuple[Callable[[Any], Any], ...] | None, operation: Operation, to: Any, gives_empty: bool = False
) -> LibrarySupplier:
    """Return what makes processors of an operation, a part of whose work those can do who send the items."""
    create = partial(GroupingProcessor, keys, operation, to, gives_empty)
    if operation.combine is None:
        return LibrarySupplier(create, shown, inputs=operation.arity)
    stages = TwoStages(keys, partial(_first, keys, operation), partial(_second, create))
    groups = _groups(keys, operation, to)
    return LibrarySupplier(create, shown, two_stages=stages, groups=groups, inputs=operation.arity)


def _groups(
    keys: tuple[Callable[[Any], Any], ...] | None, operation: Operation, to: Callable[[Any, Any], Any] | None
) -> GroupsByKey | None:
    """Return what processors with one inbound edge emit, if these are entries of keys and results."""
    if keys is None or len(keys) != 1 or to is not Entry:
        return None
    return GroupsByKey(keys[0], operation, groups_of_any_key(keys[0], operation.on_input(0)))


def _first(
    keys: tuple[Callable[[Any], Any], ...] | None, operation: Operation, number: int
) -> Callable[[], FirstGrouping]:
    return partial(FirstGrouping, None if keys is None else keys[number], operation.on_input(number))


def _second(create: Callable[..., GroupingProcessor], edges: frozenset[int]) -> Callable[[], GroupingProcessor]:
    return partial(create, entries_of=edges)


def checked_operation(operation: Any, name: str) -> Operation:
    """Return an operation of any number of inputs.

    Raises:
        TypeError: it is something else; the message names the function of the library.
    """
    if not isinstance(operation, AggregateOperation):
        hint = hint_of_a_collector(operation)
        raise TypeError(f"{name}: operation must be an AggregateOperation, not {kind_of(operation)}{hint}")
    return operation


def checked_keys(keys: Any, operation: Operation) -> tuple[Callable[[Any], Any], ...]:
    """Return the key functions of an operation.

    Raises:
        TypeError: there is not one for each input, or one of them is no function.
    """
    if callable(keys) or isinstance(keys, str):
        raise TypeError(f"keys must be a list with a function for each inbound edge, not {kind_of(keys)}")
    found = tuple(function(each, "a key") for each in keys)
    check_keys(found, operation)
    return found
