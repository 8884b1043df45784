"""Properties of a plan: order, bounds, size, parallelism, settings, guards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from dstream.errors import IllegalStateError
from dstream.plan.operations.elementwise import Chain, Gather, ServiceFunction, UsingBatches
from dstream.plan.operations.ends import Several
from dstream.plan.operations.streams import Configure, Fork, Node, Parallel, Read
from dstream.plan.steps import Guard
from dstream.plan.walk import each, fold, topological

__all__ = [
    "bounded_operations",
    "check",
    "configuration",
    "guards_of",
    "is_bounded",
    "is_of_epoch",
    "is_ordered",
    "known_size",
    "ordered_operations",
    "parallelism",
    "served_steps",
]


def check(root: Node, *, needs_end: bool) -> None:
    """Refuse a plan that could never finish.

    Args:
        root: the last operation of the plan.
        needs_end: whether the terminal operation needs every item of `root`.

    A gatherer of the user's is trusted to stop, as a `take_while` is.

    Raises:
        IllegalStateError: an infinite stream is sorted, cached, the side of a join that must end, or read to its end.
    """
    bounded: dict[int, bool] = {}
    for found in topological(root):
        inputs = [bounded[id(upstream)] for upstream in found.inputs()]
        bounded[id(found)] = found.has_end(inputs) or (isinstance(found, Gather) and found.gatherer.may_stop)
        refused = "" if all(inputs) else found.refusal(inputs)
        if refused:
            step = found.upstream.step if isinstance(found, Fork) else found.step
            position = f" at {step.where}" if step.where else ""
            raise IllegalStateError(
                f"an infinite stream cannot be {refused}: {step.label}{position}; limit() it before"
            )
    if needs_end and not bounded[id(root)]:
        raise IllegalStateError(
            "this operation needs every item and the stream is infinite; end it with limit() or take_while() before"
        )


def is_ordered(root: Node) -> bool:
    """Return whether the items of `root` have an encounter order that must be preserved."""
    return fold(root, lambda operation, inputs: operation.has_order(inputs))


def is_bounded(root: Node) -> bool:
    """Return whether the items of `root` end; `take_while` is trusted to end."""
    return fold(root, lambda operation, inputs: operation.has_end(inputs))


def is_of_epoch(root: Node) -> bool:
    """Return whether a plan is an epoch of a job over unbounded data, or has operations that only epochs have."""
    if isinstance(root, Several) and root.is_epoch:
        return True
    return any(found.is_of_epoch for found in topological(root))


def ordered_operations(root: Node) -> dict[int, bool]:
    """Return, for each operation of the plan by its `id`, whether its items have an encounter order."""
    return each(root, lambda operation, inputs: operation.has_order(inputs))


def bounded_operations(root: Node) -> dict[int, bool]:
    """Return, for each operation of the plan by its `id`, whether its items end."""
    return each(root, lambda operation, inputs: operation.has_end(inputs))


def parallelism(root: Node) -> int | None:
    """Return the number of partitions that the last `parallel` or `sequential` asked for, or None."""
    requested = [found.partitions for found in topological(root) if isinstance(found, Parallel)]
    return requested[-1] if requested else None


def configuration(root: Node) -> dict[str, str]:
    """Return the settings of every `configure`, the later ones winning."""
    settings: dict[str, str] = {}
    for found in topological(root):
        if isinstance(found, Configure):
            settings.update(found.settings)
    return settings


def known_size(root: Node) -> int | None:
    """Return how many items `root` has if its sources know the number and no function of the user's follows them.

    Nothing is read. None if that is known only by running the plan. It needs the plan as the user wrote it: after
    `rewrite`, calls that check their items and calls that only change their type look alike.
    """
    # Sources are queried only if their sizes can matter: sources of files list each file.
    if fold(root, lambda each, counts: 0 if isinstance(each, Read) else _item_count(each, counts)) is None:
        return None
    return fold(root, _item_count)


def _item_count(operation: Node, counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return operation.item_count(known) if len(known) == len(counts) else None


def served_steps(operations: Iterable[Node]) -> Iterator[ServiceFunction]:
    """Yield the functions of the operations of a plan that need a service."""
    for node in operations:
        if isinstance(node, Chain):
            yield from (op.fn for op in node.ops if isinstance(op.fn, ServiceFunction))
        elif isinstance(node, UsingBatches):
            yield node.served()


def guards_of(operations: Iterable[Node]) -> Iterator[Guard]:
    """Yield the guards of the operations of a plan."""
    return chain.from_iterable(node.all_guards() for node in operations)
