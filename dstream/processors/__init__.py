"""The cooperative runner of graphs of processors, in one thread, as in Hazelcast Jet.

`run` runs the processors of a graph, each a tasklet (`tasklets`) with its inbox and outbox (`inbox_outbox`); `edges`
routes items between them and cuts a graph where items have to move between tasks, `tasks` runs a graph or a part of it
in a task, and `graph_operator` runs one epoch by epoch. No module here imports an engine or a job.
"""

from __future__ import annotations
