"""The engines: compilation of plans, and their runs in the caller's process and on Spark.

`compiler` turns a plan of core operations into a `physical` plan. Its runs, in `spark` and in this process
(`inprocess`), share `runs`, and `tasks` as the part on workers. `local` runs core operations without a physical plan.
`auto` chooses an engine, `calls` are runs of terminal operations, which `display` shows. The work of operations
on one partition is in `dstream.operators`, and `dstream.explain` shows a plan before it runs. `dead_letters` reports
recovered failures, `versions` has the supported versions of Spark.
"""

from __future__ import annotations
