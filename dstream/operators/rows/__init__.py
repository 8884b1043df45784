"""Operators on the items of one partition, in the driver's process and on workers.

No module here imports an engine. `operations` has the registry of core operations, `loops` the generated loop of a
chain of steps, `aggregates` the aggregates, `spill` sorting and grouping beyond the memory bound; `blocks` and
`batches` are the items between them, in columns and in a shuffle.
"""

from __future__ import annotations
