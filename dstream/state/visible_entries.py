"""The entries of the state of a running job, for whoever looks into it from outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dstream.spi.state_files import StateFiles
from dstream.spi.state_operator import StateOperator
from dstream.state.loading import ShardFiles
from dstream.state.shard_index import ShardIndex

__all__ = ["entries"]


def entries(
    index: ShardIndex, files: StateFiles, operator: StateOperator, shards: Iterable[int] | None = None
) -> Iterator[tuple[Any, Any]]:
    """Give the keys of a step with their states, as of the epoch of the index, one shard in memory at a time.

    They are copies: nothing that is done to them comes back to the job.

    Args:
        index: where the state is.
        files: of the job.
        operator: of the step; another one that fits does as well.
        shards: the numbers of those that are asked for, so that several tasks share the work; None: all.

    Raises:
        IllegalStateError: the operator does not fit; or a file is damaged, or missing since the job has gone on and
            has removed it.
    """
    index.check_fits(operator)
    shard_files = ShardFiles(files, index.stage)
    for number in range(len(index.shards)) if shards is None else shards:
        yield from shard_files.state(number, index.shards[number], operator, None).entries()
