"""State of steps over epochs: its shards, its files, and the operators on top of them.

`index` is what the driver knows, which parts of which files each shard consists of; `index_format` is the same as plain
data in the records of epochs, and the files that may go. `backend` is what a task gets, `shards` reads and caches
shards, `keys` and `disk` contain the states of keys, in memory or in a table on disk. `watermarks` gives items
timestamps and advances watermarks; `stateful_steps` runs a step, and `keyed_operators` are operators, for `items` by
key. Decision 45 gives the reasons.
"""

from __future__ import annotations
