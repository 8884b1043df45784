"""Tasks on Spark's workers: inputs, operations, and the rows that they write.

`rows` is the schema of items between stages, `stage` runs a task, `readers` turn rows into items; `sinks`, `routing`
and `gatherers` turn items into rows. Everything here is pickled in the driver; nothing knows a graph or a session.
"""

from __future__ import annotations
