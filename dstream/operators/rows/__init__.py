"""Operators on the items of one partition, in the driver's process and on workers.

No module here imports an engine.

- `operations`: the registry of core operations.
- `loops`: the generated loop of a chain of steps.
- `syntax`: expressions as syntax of such a loop.
- `forms`: expressions without their constants, which share a loop.
- `loop_failures`: attribution of the failures of a loop.
- `guards`: recovery from failed items, and attribution of the failures of sources.
- `aggregates`: aggregates of one partition and of partial results.
- `group_tables`: tables of groups in columns.
- `keys`: keys and values of the items of a side.
- `spill`: sorting and grouping beyond the memory bound.
- `gatherers`: folding, lookahead into the next partitions, concurrent calls.
- `services`: services of a task.
- `caches`: cached items of plans.
- `blocks`: items between operators, in columns.
- `batches`: items in a shuffle, as bytes.
- `stack`: relays between threads for plans of thousands of steps.
"""

from __future__ import annotations
