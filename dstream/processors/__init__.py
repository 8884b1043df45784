"""The cooperative runner of graphs of processors, in one thread, as in Hazelcast Jet.

No module here imports an engine or a job.

- `run`: runs the processors of a graph.
- `tasklets`: one processor with its inbox, outbox and edges.
- `inbox_outbox`: its inbox and outbox.
- `inbound_edges`: its inbound edges, queues in memory and on disk, and their least watermark.
- `edges`: routing between processors, and cuts of a graph where items move between tasks.
- `blocks`: items with watermarks and ends, between parts of a graph.
- `graph_execution`: the processors of a graph in one process, with their suppliers and log.
- `suppliers`: the meta-suppliers in the driver, from their start to their end.
- `tasks`: a graph, or a part of it, in a task.
- `groups`: results by key of a vertex, computed by tasks without its processors.
- `graph_operator`: a graph that runs epoch by epoch.
"""

from __future__ import annotations
