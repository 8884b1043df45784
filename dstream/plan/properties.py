"""What holds for a plan of core operations: asked of the plan, never kept in a flag."""

from __future__ import annotations

from collections.abc import Sequence

from dstream.errors import IllegalStateError, UnsupportedError
from dstream.plan import nodes
from dstream.plan.core import (
    Cache,
    Concat,
    Configure,
    Core,
    Gather,
    Keeping,
    Limit,
    Parallel,
    PartitionBy,
    Read,
    Recall,
    Sorted,
    Table,
    TakeWhile,
    Top,
    Unordered,
)
from dstream.plan.core_of_epochs import OverEpochs, Stamped
from dstream.plan.core_of_forks import Fork, Several
from dstream.plan.core_of_graphs import Processing
from dstream.plan.core_of_pairs import AsOf, CoGroup, HashJoin, Join, Pairing, SemiJoin, Zip
from dstream.plan.core_of_stages import Aggregate, Spread
from dstream.plan.steps import unchanged
from dstream.plan.walk import each, fold, topological
from dstream.spi.source import SizedSource

__all__ = [
    "bounded_operations",
    "check",
    "configuration",
    "is_bounded",
    "is_of_epoch",
    "is_ordered",
    "is_ordered_after",
    "known_size",
    "ordered_operations",
    "parallelism",
]


def check(root: Core, *, needs_end: bool) -> None:
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
        bounded[id(found)] = _bounded(found, inputs) or (isinstance(found, Gather) and found.gatherer.may_stop)
        refused = "" if all(inputs) else _refused(found, inputs)
        if refused:
            step = found.upstream.step if isinstance(found, Fork) else found.step
            place = f" at {step.where}" if step.where else ""
            raise IllegalStateError(f"an infinite stream cannot be {refused}: {step.label}{place}; limit() it before")
    if needs_end and not bounded[id(root)]:
        raise IllegalStateError(
            "this operation needs every item and the stream is infinite; end it with limit() or take_while() before"
        )


def _refused(operation: Core, ends: Sequence[bool]) -> str:
    """Say what is done to an infinite input that cannot be done."""
    match operation:
        case Sorted() | Top():
            return "sorted"
        case Fork():
            return "read by several stages of a pipeline"
        case Cache():
            return "cached"
        case PartitionBy():
            return "partitioned"
        case CoGroup():
            return "grouped"
        case Aggregate():
            return "aggregated"
        case Spread():
            return "spread over partitions"
        case Join() if not operation.streams(ends):
            return "this side of a join"
        case HashJoin() if not ends[1]:
            return "the right side of a hash join"
        case SemiJoin() if not ends[1]:
            return "the other side here"
        case AsOf():
            return "sorted"
    return ""


def is_ordered(root: Core) -> bool:
    """Say whether the items of `root` have an encounter order that must be kept."""
    return fold(root, _ordered)


def is_ordered_after(operation: Core, before: bool) -> bool:
    """Say whether the items of an operation have an encounter order, if those that it reads have one or not."""
    return _ordered(operation, [before])


def is_bounded(root: Core) -> bool:
    """Say whether the items of `root` end; `take_while` is trusted to end."""
    return fold(root, _bounded)


def is_of_epoch(root: Core) -> bool:
    """Say whether a plan is an epoch of a job over unbounded data, or has operations that only epochs have."""
    if isinstance(root, Several) and root.is_epoch:
        return True
    return any(isinstance(found, Stamped | OverEpochs) for found in topological(root))


def ordered_operations(root: Core) -> dict[int, bool]:
    """Say of every operation of the plan, by its `id`, whether its items have an encounter order."""
    return each(root, _ordered)


def bounded_operations(root: Core) -> dict[int, bool]:
    """Say of every operation of the plan, by its `id`, whether its items end."""
    return each(root, _bounded)


def parallelism(root: Core) -> int | None:
    """Return the number of partitions that the last `parallel` or `sequential` asked for, or None."""
    asked = [found.partitions for found in topological(root) if isinstance(found, Parallel)]
    return asked[-1] if asked else None


def configuration(root: Core) -> dict[str, str]:
    """Return the settings of every `configure`, the later ones winning."""
    settings: dict[str, str] = {}
    for found in topological(root):
        if isinstance(found, Configure):
            settings.update(found.settings)
    return settings


def _ordered(operation: Core, inputs: Sequence[bool]) -> bool:
    match operation:
        case Read(source=source):
            return source.ordered
        case Recall(is_ordered=is_ordered):
            return is_ordered
        case Sorted() | Top():
            return True
        case HashJoin() | Stamped():
            return inputs[0]
        case Aggregate():
            return not operation.is_keyed
        case Unordered() | PartitionBy() | Pairing() | Table() | OverEpochs() | Processing() | Concat(is_union=True):
            return False
        case Keeping() | Concat() | Several() | Zip():
            return all(inputs)
    raise UnsupportedError(f"nobody knows whether the items of {operation.label()} are in order")


def _bounded(operation: Core, inputs: Sequence[bool]) -> bool:
    match operation:
        case Read(source=source):
            return source.bounded
        case Limit() | Top() | TakeWhile() | Table() | Recall() | Stamped() | OverEpochs():
            return True
        case Zip():
            return operation.ends(inputs)
        case Keeping() | Concat() | Pairing() | Aggregate() | Processing() | Several():
            return all(inputs)
    raise UnsupportedError(f"nobody knows whether the items of {operation.label()} end")


def known_size(root: nodes.Node) -> int | None:
    """Return how many items `root` has if its sources know that and no function of the user's stands behind them.

    Nothing is read. None if only running the plan can tell. It is asked of what the user wrote: in core operations the
    calls that check their items and those that only change their type look alike.
    """
    return fold(root, _size)


def _size(node: nodes.Node, inputs: Sequence[int | None]) -> int | None:
    if isinstance(node, nodes.Read):
        return node.source.size() if isinstance(node.source, SizedSource) else None
    sizes = [size for size in inputs if size is not None]
    if not sizes or len(sizes) < len(inputs):
        return None
    match node:
        case nodes.Concat():
            return sum(sizes)
        case nodes.Limit(count=count):
            return min(sizes[0], count)
        case nodes.Skip(count=count):
            return max(sizes[0] - count, 0)
        case nodes.Sorted(key=None) | nodes.Unordered() | nodes.Parallel() | nodes.Configure():
            return sizes[0]
        case nodes.Map(name="as_double_stream", fn=fn) if fn is unchanged:
            return sizes[0]
    return None
