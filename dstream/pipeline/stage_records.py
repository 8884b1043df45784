"""`StageRecord`: the record of a stage in its pipeline, and records and nodes as flat data for pickling."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dstream.plan import Node, Recover, SourceLocation, fold, inputs_first
from dstream.spi import Sink

__all__ = [
    "AS_MANY",
    "At",
    "Flat",
    "StageRecord",
    "copied",
    "flat_nodes",
    "flattened",
    "names_of",
    "names_of_late_sinks",
    "nodes_again",
    "relinked",
    "restored",
]


def relinked(node: Node, instead: Mapping[int, Node]) -> Node:
    """Return `node` with other nodes instead of its upstreams.

    Args:
        node: the last node of a stage.
        instead: the replacement of a node, by the `id` of that; nodes before that are not visited.
    """
    return fold(
        node,
        lambda each, inputs: instead[id(each)] if id(each) in instead else each.reading(inputs),
        lambda each: () if id(each) in instead else each.inputs(),
    )


def fields_with_nodes(node: Node, change: Any) -> dict[str, Any]:
    """Return the fields of a node that contain nodes, by name, with `change` applied to each node."""
    fields = {}
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            fields[field.name] = change(value)
        elif isinstance(value, tuple) and value and all(isinstance(each, Node) for each in value):
            fields[field.name] = tuple(map(change, value))
    return fields


class At(NamedTuple):
    """The position of a node in the list of all nodes, which replaces the node."""

    place: int


class Flat(NamedTuple):
    """A node whose inputs are positions."""

    kind: type[Node]
    fields: dict[str, Any]


def flat_nodes(roots: Sequence[Node]) -> tuple[list[Flat], list[At]]:
    """Return all nodes of the plans, each after its inputs, and the positions of `roots`."""
    positions: dict[int, At] = {}
    flat: list[Flat] = []
    for root in roots:
        for each in inputs_first(root, lambda found: () if id(found) in positions else found.inputs()):
            if id(each) not in positions:
                # After its inputs, so that they exist when the node is restored.
                flat.append(_flat(each, positions))
                positions[id(each)] = At(len(flat) - 1)
    return flat, [positions[id(root)] for root in roots]


def _flat(node: Node, positions: dict[int, At]) -> Flat:
    fields = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
    return Flat(type(node), fields | fields_with_nodes(node, lambda each: positions[id(each)]))


def nodes_again(flat: Sequence[Flat]) -> list[Node]:
    """Return the nodes of which `flat_nodes` made data."""
    nodes: list[Node] = []
    for kind, fields in flat:
        nodes.append(kind(**{name: _with_nodes(value, nodes) for name, value in fields.items()}))
    return nodes


def _with_nodes(value: Any, nodes: Sequence[Node]) -> Any:
    if isinstance(value, At):
        return nodes[value.place]
    # By exact type: `At` is a tuple itself, as named tuples of the user are.
    if type(value) is tuple and value and all(isinstance(each, At) for each in value):
        return tuple(nodes[each.place] for each in value)
    return value


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
"""The kinds of stages that emit one item for each input item."""


@dataclass(eq=False, slots=True)
class StageRecord:
    """The mutable record of one stage.

    Attributes:
        kind: the name of the method that made it.
        node: its last node; the nodes of the stages that it reads are upstream of it.
        upstreams: the stages that it reads, repeated if it reads one several times.
        where: the source location of the call that made it.
        given_name: the user's name for it, or None.
        parallelism: the number of partitions that the user set, or -1.
        sink: the reducer of the items, if it is an end.
        late_to: the reducer of its late items, if the user set one.
    """

    kind: str
    node: Node
    upstreams: tuple[StageRecord, ...] = ()
    where: SourceLocation | None = None
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
    """Return the name of each stage by its `id`: the user's, or that of its method with the first free number."""
    # Names that the user chose take precedence, so that no default name takes one of them.
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
    """Return the names under which a plan writes a stage's late items, by the `id` of the stage."""
    taken, numbers = set(names.values()), dict[str, int]()
    return {id(each): _free(f"{names[id(each)]}-late", taken, numbers) for each in records if each.late_to is not None}


def _free(kind: str, taken: set[str], numbers: dict[str, int]) -> str:
    number = numbers.get(kind, 1)
    while (name := kind if number == 1 else f"{kind}-{number}") in taken:
        number += 1
    # Later stages of this kind search from the next number, so a long pipeline is named in linear time.
    numbers[kind] = number + 1
    return name


def copied(records: Sequence[StageRecord]) -> list[StageRecord]:
    """Return records that can be changed apart from these; their nodes are values, and the same."""
    became: dict[int, StageRecord] = {}
    for each in records:
        upstreams = tuple(became[id(above)] for above in each.upstreams)
        became[id(each)] = dataclasses.replace(each, upstreams=upstreams)
    return list(became.values())


class _FlatRecord(NamedTuple):
    fields: dict[str, Any]
    node: At
    upstreams: tuple[int, ...]


def flattened(records: Sequence[StageRecord]) -> tuple[list[Flat], list[_FlatRecord]]:
    """Return stages as data in which nothing lies inside of a chain of other things."""
    nodes, positions = flat_nodes([each.node for each in records])
    numbers = {id(each): number for number, each in enumerate(records)}
    flat = [
        _FlatRecord(
            {name: getattr(each, name) for name in _PLAIN},
            positions[number],
            tuple(numbers[id(above)] for above in each.upstreams),
        )
        for number, each in enumerate(records)
    ]
    return nodes, flat


_PLAIN = tuple(field.name for field in dataclasses.fields(StageRecord) if field.name not in ("node", "upstreams"))


def restored(state: tuple[list[Flat], list[_FlatRecord]]) -> list[StageRecord]:
    """Return the stages of which `flattened` made data."""
    nodes = nodes_again(state[0])
    records: list[StageRecord] = []
    for each in state[1]:
        upstreams = tuple(records[number] for number in each.upstreams)
        records.append(StageRecord(node=nodes[each.node.place], upstreams=upstreams, **each.fields))
    return records
