"""The engines: compilation of plans, and their runs in the caller's process and on Spark.

`compiler` turns a plan of core operations into a `physical` plan, which the Spark engine runs (`spark`), with `tasks`
as the part on its workers. `local` runs core operations without one. `selection` chooses between the two engines,
`calls` are the runs of terminal operations, which `display` shows. The work of operations on one partition is in
`dstream.operators`, and `dstream.explain` shows a plan before it runs.
"""

from __future__ import annotations
