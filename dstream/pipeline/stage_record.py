"""`StageRecord`: what a pipeline remembers of a stage; handles of stages point to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.plan import Node, Recover, Where
from dstream.spi import Sink

__all__ = ["AS_MANY", "StageRecord", "names_of", "names_of_late_sinks"]

AS_MANY = frozenset(
    (
        "add_timestamps",
        "ingestion_timestamps",
        "map",
        "map_stateful",
        "map_using",
        "map_using_imap",
        "native_timestamps",
        "peek",
        "rebalance",
        "rolling_aggregate",
        "sorted",
    )
)
"""The kinds of stages that give as many items as they take."""


@dataclass(eq=False, slots=True)
class StageRecord:
    """One stage, which its pipeline may go on to change.

    Attributes:
        kind: the name of the method that made it.
        node: the last node of what it does; that of a stage which it reads stands somewhere below.
        upstreams: the stages that it reads, once for each time.
        where: the place of the call that made it.
        given_name: what the user called it, or None.
        parallelism: how many partitions the user wants, or -1.
        sink: what the items go into, if it is an end.
        late_to: what items go into that came too late for it, if the user wants them.
    """

    kind: str
    node: Node
    upstreams: tuple[StageRecord, ...] = ()
    where: Where | None = None
    given_name: str | None = None
    parallelism: int = -1
    sink: Sink[Any, Any] | None = None
    late_to: Sink[Any, Any] | None = None

    @property
    def looks_after(self) -> StageRecord | None:
        """The stage with whose failures this one deals, so that both are one step; None if it is a step itself."""
        if isinstance(self.node, Recover) and self.node.upstream is self.upstreams[0].node:
            return self.upstreams[0]
        return None

    @property
    def step(self) -> StageRecord:
        """The stage that runs: this one, or the one with whose failures it deals."""
        found = self
        while (before := found.looks_after) is not None:
            found = before
        return found


def names_of(records: Sequence[StageRecord]) -> dict[int, str]:
    """Return the name of each stage by its `id`: the given one, or that of its method with the first free number."""
    taken = {each.given_name for each in records if each.given_name is not None}
    numbers: dict[str, int] = {}
    names = {}
    for each in records:
        name = each.given_name
        if name is None:
            name = _free(each.kind, taken, numbers)
            taken.add(name)
        names[id(each)] = name
    return names


def names_of_late_sinks(records: Sequence[StageRecord], names: Mapping[int, str]) -> dict[int, str]:
    """Return the names under which a plan writes what came too late for a stage, by the `id` of the stage."""
    taken, numbers = set(names.values()), dict[str, int]()
    return {id(each): _free(f"{names[id(each)]}-late", taken, numbers) for each in records if each.late_to is not None}


def _free(kind: str, taken: set[str], numbers: dict[str, int]) -> str:
    number = numbers.get(kind, 1)
    while (name := kind if number == 1 else f"{kind}-{number}") in taken:
        number += 1
    numbers[kind] = number + 1
    return name
