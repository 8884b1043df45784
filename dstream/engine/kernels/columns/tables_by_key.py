"""Tables of groups that have arrived: together as long as they fit into memory, beyond it on disk by their keys.

Nothing here loads NumPy before there is a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from dstream.engine.kernels.spilling import DEEPEST, FAN_OUT, Run
from dstream.engine.memory_bound import Bound

if TYPE_CHECKING:
    from dstream.engine.kernels.columns.column_groups import GroupTable
    from dstream.engine.kernels.columns.text_groups import TextGroupTable

__all__ = ["Table", "tables_by_key"]

Table: TypeAlias = Union["GroupTable", "TextGroupTable"]
"""Groups that stand in columns."""

_MOST_BYTES = 2**30
"""Keys of one array need places of 32 bits, whatever fits into memory."""


def tables_by_key(
    batches: Iterator[Any], bound: Bound, level: int = 0
) -> tuple[Iterator[Sequence[Table]], Iterator[Any]]:
    """Return the tables of groups that batches are, those with equal keys together, if all batches are tables.

    Otherwise return none of them, and all batches again; equal keys come in the order in which they came.
    """
    held: list[Table] = []
    buckets: list[Run] = []
    costs = size = 0
    for batch in batches:
        if isinstance(batch, Sequence):
            return iter(()), chain(chain.from_iterable(buckets), held, (batch,), batches)
        held.append(batch)
        costs, size = costs + batch.cost(), size + batch.key_bytes()
        if level < DEEPEST and (size > _MOST_BYTES or bound.exceeded(costs)):
            buckets = buckets or [Run() for _ in range(FAN_OUT)]
            _to_disk(held, buckets, level)
            costs = size = 0
            bound.spilled()
    if not buckets:
        return iter((held,) if held else ()), iter(())
    _to_disk(held, buckets, level)
    return chain.from_iterable(tables_by_key(iter(bucket), bound, level + 1)[0] for bucket in buckets), iter(())


def _to_disk(held: list[Table], buckets: Sequence[Run], level: int) -> None:
    """Put tables on disk, each group into the bucket of its key, and leave none of them."""
    from dstream.engine.kernels.columns.text_groups import parts_by_bucket  # loads NumPy, which made the tables

    for table in held:
        for bucket, part in parts_by_bucket(table, len(buckets), level):
            buckets[bucket].extend((part,))
    held.clear()
