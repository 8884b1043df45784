"""`check_operation`: the laws of an aggregate operation, whatever its number of inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from dstream.spi import AggregateOperation, Collector
from dstream.testing.laws import Laws, check_collector, tried

__all__ = ["check_operation"]


def check_operation(
    operation: AggregateOperation[Any, Any, Any],
    *inputs: Iterable[Any],
    by: Callable[[Any], object] | None = None,
) -> None:
    """Make sure that an aggregate operation keeps its laws on some items, in this process and without an engine.

    - `create` makes a fresh container each time.
    - `finish` leaves the container as it is: it may be asked again, and the container filled further.
    - `combine`, if there is one, is associative: splitting the items in any way and combining the containers gives what
      accumulating them at once gives, and an empty container changes nothing. Items of earlier inputs come first.
    - `deduct`, if there is one, undoes `accumulate` and `combine`, whichever part of the items leaves.
    - The operation and its containers survive pickling, and no item is changed.

    A collector keeps those of `check_collector` too.

    Args:
        operation: the operation.
        inputs: some items for each of its inputs, the more different the better, in their encounter order.
        by: makes a result comparable, such as `sorted` where the order of a list does not count.

    Raises:
        AssertionError: it breaks one; the message names the law, the items, and both results.
        TypeError: it has another number of inputs.

    Example:
        >>> from collectors import co_operation, counting, summing
        >>> check_operation(co_operation(counting(), summing()), ["a", "b"], [1, 2, 3])
    """
    __tracebackhide__ = True
    if operation.arity != len(inputs):
        raise TypeError(f"{operation!r} has {operation.arity} inputs, and there are items for {len(inputs)}")
    if isinstance(operation, Collector):
        check_collector(operation, *inputs, by=by)
        return
    samples = list(inputs[0]) if operation.arity == 1 else _pairs(inputs)
    laws = Laws(_as_collector(operation), samples, by or (lambda result: result))
    for found in tried(laws, _LAWS if operation.combine is not None else _WITHOUT_COMBINING):
        raise AssertionError(_in_words_of_operations(found, operation.arity))


_WITHOUT_COMBINING = ("an item", "the supplier", "the finisher")
_LAWS = (*_WITHOUT_COMBINING, "the identity", "the combiner", "deducting", "pickling")


def _as_collector(operation: AggregateOperation[Any, Any, Any]) -> Collector[Any, Any, Any]:
    """Return a collector that does what the operation does; of several inputs, one of (number of the input, item)."""
    accumulates = operation.accumulates

    def accumulate(container: Any, pair: tuple[int, Any]) -> Any:
        return accumulates[pair[0]](container, pair[1])

    one = accumulates[0] if operation.arity == 1 else accumulate
    return Collector(operation.create, one, operation.combine or _never, operation.finish, deducting=operation.deduct)


def _never(left: Any, right: Any) -> Any:
    raise AssertionError("no law that combines is tried")


def _pairs(inputs: Iterable[Iterable[Any]]) -> list[tuple[int, Any]]:
    return [(number, item) for number, items in enumerate(inputs) for item in items]


def _in_words_of_operations(found: str, arity: int) -> str:
    words = {"the supplier": "create", "the finisher": "finish", "the combiner": "combine", "deducting": "deduct"}
    said = re.sub(f"^({'|'.join(words)})", lambda match: words[match[1]], found)
    return said if arity == 1 else f"{said} (items stand behind the numbers of their inputs)"
