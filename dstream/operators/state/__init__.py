"""State of steps over epochs: its shards, its files, and the operators on top of them.

`shard_index` is what the driver knows: which parts of which files make up each shard; `plain_index` is the same in the
records of epochs. `step_state` is what a task gets; `kept_shards` has the shards that a process has seen, and `loading`
makes the others from their files, of which it keeps the `recent_files`. `state_parts` is what stands in a file,
`compaction_rules` says when a shard is written as a whole. `removable_files` says which files may go, and
`visible_entries` shows the entries. Decision 45 says why.
"""

from __future__ import annotations
