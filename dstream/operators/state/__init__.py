"""State of steps over epochs: its shards, its files, and the operators on top of them.

`index` is the driver's index: the parts of files of each shard; `index_format` is the index as plain
data in the records of epochs, and the files that may be deleted. `backend` is the state in a task, `shards` reads and
caches shards, `keys` and `disk` contain the states of keys, in memory or in a table on disk. `watermarks` assigns
timestamps to items and advances watermarks; `stateful_steps` runs a step, and `keyed_operators` are operators, for
`items` by key. Decision 45 has the reasons.
"""

from __future__ import annotations
