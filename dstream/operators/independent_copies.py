"""Copies that share nothing with a container, which goes on to change after it was combined, dumped, or handed out."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Collection
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from types import NoneType
from typing import Any, TypeAlias

from dstream.spi import AggregateOperation, identity

__all__ = ["Copies", "copies_of", "copy_of_results"]

Copies: TypeAlias = Callable[[Collection[Any]], Collection[Any]]
"""Takes containers and gives copies of them, in order; those that nothing can change stand for themselves."""

_UNCHANGING = frozenset({int, float, complex, str, bytes, bool, NoneType, Decimal, Fraction, date, datetime, timedelta})


def copies_of(operation: AggregateOperation[Any, Any, Any]) -> Copies:
    """Return what copies containers of an operation, as `operation.on_input` has them."""
    return _shallow if operation.combine is None or _gathers(operation) else _deep


def copy_of_results(operation: AggregateOperation[Any, Any, Any]) -> Callable[[Any], Any]:
    """Return what makes a result that shares nothing with the container that it was made of.

    A finisher may hand out the container, or parts of it, such as the list in the tuple of `all_of(to_list(), ...)`.
    """
    if operation.combine is None:
        return identity  # Its container was made for this result alone.
    return copy.copy if operation.finish is identity and _gathers(operation) else _copied


def _copied(result: Any) -> Any:
    return result if type(result) in _UNCHANGING else next(iter(_deep([result])))


def _gathers(operation: AggregateOperation[Any, Any, Any]) -> bool:
    """Say whether a container is a collection of items, which nobody changes."""
    return all(accumulate in (list.append, set.add) for accumulate in operation.accumulates)


def _shallow(containers: Collection[Any]) -> Collection[Any]:
    return list(map(copy.copy, containers))


def _deep(containers: Collection[Any]) -> Collection[Any]:
    if _UNCHANGING.issuperset(map(type, containers)):
        return containers
    try:  # A quarter of the time of `deepcopy`: one call for all of them.
        found: list[Any] = pickle.loads(pickle.dumps(list(containers), pickle.HIGHEST_PROTOCOL))
    except Exception:  # A class that the user's script made has no name that pickle finds again in a worker.
        return [copy.deepcopy(container) for container in containers]
    return found
