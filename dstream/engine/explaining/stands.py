"""In what items stand: from the sources of a stage through each operation, as far as the graph tells.

A worker looks at the items that come to it. What it will find follows from what the compiler left in the graph: the
sources, the steps as they were read, and what each operation gives (`dstream.engine.graph.decided`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from dstream.engine.graph.decided import ONE_BY_ONE, Stand
from dstream.engine.graph.vertices import Applied
from dstream.engine.kernels.columns.column_items import fewest_items, is_worth_columns, may_stand_in_columns
from dstream.engine.kernels.columns.steps_in_columns import is_in_columns, obstacle_to_columns, work_of
from dstream.failures import is_our_name
from dstream.plan.core import Chain, Read
from dstream.plan.core_of_services import Served
from dstream.plan.stages import Amount
from dstream.plan.steps import Op

__all__ = ["Way", "stands_of_steps", "ways_behind", "ways_in_tasks", "ways_of_batches", "ways_of_source"]


@dataclass(frozen=True)
class Way:
    """One way in which items come to an operation; those of several sources may come in several.

    Attributes:
        stand: in what they stand.
        listed: they are those of a list, which becomes columns if the first steps are worth it: its first item; None:
            they are not.
        is_batch: they are batches that another task has written: the operation that takes these knows how they stood.
    """

    stand: Stand = ONE_BY_ONE
    listed: tuple[Any, ...] | None = None
    is_batch: bool = False

    def only_if(self, condition: str) -> Way:
        """Return the way in which items come in columns only if something else is true, too."""
        stand = self.stand
        return self if stand.obstacle else replace(self, stand=Stand("", (*stand.conditions, condition)))

    def before(self, ops: Sequence[Op]) -> Stand:
        """Return in what the items stand that the first of some steps gets."""
        if any(isinstance(op.fn, Served) for op in ops):
            return Stand("a step beside it takes a service, and so items one by one")
        if self.is_batch:
            return ONE_BY_ONE
        if self.listed is None or self.stand.obstacle:
            return self.stand
        first = list(takewhile(is_in_columns, ops))
        return self.stand if is_worth_columns(list(self.listed), work_of(first)) else Stand(_NOT_WORTH_IT)

    def behind(self, applied: Applied) -> Way:
        """Return the way in which the results of an operation come."""
        if isinstance(applied.node, Chain) and applied.gives is None:
            return self._behind_steps(applied.node.ops)
        if applied.gives is not None:
            return Way(applied.gives.of(ONE_BY_ONE if self.listed is not None else self.stand))
        return self if applied.operation is None else Way()

    def _behind_steps(self, ops: Sequence[Op]) -> Way:
        before = self.before(ops)
        if not before.obstacle and all(map(is_in_columns, ops)) and any(op.expression is not None for op in ops):
            return Way(before)
        return self if all(op.action == "count" for op in ops) else Way()


_NOT_WORTH_IT = "to make columns of a list takes longer than so few operators"


def ways_behind(ways: Iterable[Way], applied: Applied) -> tuple[Way, ...]:
    """Return the ways in which the results of an operation come, each once."""
    return tuple(dict.fromkeys(way.behind(applied) for way in ways))


def stands_of_steps(way: Way, ops: Sequence[Op]) -> Iterable[Stand]:
    """Give in what the items stand that each of some steps gets."""
    stand = way.before(ops)
    for op in ops:
        yield stand
        if not stand.obstacle and (obstacle := obstacle_to_columns(op)) is not None:
            stand = Stand(obstacle)


def ways_of_batches(stages: Iterable[Iterable[Way]], *, are_batches: bool) -> tuple[Way, ...]:
    """Return the ways of what other tasks have written, given those of their items."""
    if not are_batches:
        return (Way(),)
    stands = (ONE_BY_ONE if way.listed is not None else way.stand for ways in stages for way in ways)
    return tuple(Way(stand, is_batch=True) for stand in dict.fromkeys(stands))


def ways_in_tasks(ways: Sequence[Way], pieces: Amount) -> tuple[Way, ...]:
    """Return the ways of items that a task reads one part after another, given in how many parts all stand.

    A list behind or before which others come does not become columns.
    """
    if pieces == Amount(1, 1):
        return tuple(ways)
    return tuple(dict.fromkeys(way if way.listed is None else Way() for way in ways))


def ways_of_source(node: Read, pieces: Amount) -> tuple[Way, ...]:
    """Return the ways in which a source may give its items.

    Args:
        node: the source.
        pieces: into how many parts it is divided.
    """
    source: Any = node.source
    if node.guards:
        return (Way(Stand("bad records are looked after one by one")),)
    if getattr(source, "gives_texts", False) or getattr(source, "has_columns", False):
        condition = getattr(source, "columns_if", "")
        return (Way(Stand("", (condition,) if condition else ())),)
    if getattr(source, "is_free_to_read", False) or isinstance(getattr(source, "iterable", None), range):
        return (Way(_of_sizes(source.count_items(), pieces)),)
    if getattr(source, "is_of_functions", False) or not is_our_name(type(source).__module__):
        return Way(_if_given("range")), Way(_if_given("list of numbers of one type"), (0,))
    return (_of_list(source, pieces),) if hasattr(source, "iterable") else (Way(),)


def _if_given(sequence: str) -> Stand:
    return Stand("", (f"the source gives iter() of a {sequence}", f"a task has {fewest_items():,} items or more"))


def _of_list(source: Any, pieces: Amount) -> Way:
    """Return the way of items that the caller holds, or makes."""
    is_seen = type(source.iterable) in (list, tuple)
    first = tuple(source.iterable[:1]) if is_seen else (0,)
    if not first or not may_stand_in_columns(first[0]):
        return Way()
    kind = type(first[0]).__name__ if is_seen else "numbers of one type"
    conditions = f"all items are {kind}", "those of a task take at most 1 MB"
    return Way(_of_sizes(source.count_items(), pieces, *conditions), first)


def _of_sizes(items: float, pieces: Amount, *conditions: str) -> Stand:
    """Return in what so many items stand, of which few in a task are not worth columns."""
    fewest = fewest_items()
    if items / max(pieces.least, 1) <= fewest - 1:
        return Stand(f"a task has fewer than {fewest:,} items")
    are_enough = pieces.most is not None and items // max(pieces.most, 1) >= fewest
    return Stand("", conditions if are_enough else (*conditions, f"a task has {fewest:,} items or more"))
