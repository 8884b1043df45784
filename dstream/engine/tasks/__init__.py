"""Tasks on Spark's workers: inputs, operations, and the rows that they write.

`rows` is the schema of items between stages, `frames` has rows of a Spark DataFrame. `stage` runs a task on its
`runtime`, `readers` turn rows into items; `sinks`, `routing`, `distinct`, `sorting`, `shards` of state, `processors`
and `gatherers` turn items into rows. `process` has the state of a worker process, which `daemon` forks. The values of
this package are pickled in the driver and use neither a graph nor a session.
"""

from __future__ import annotations
