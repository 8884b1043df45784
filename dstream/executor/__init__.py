"""The cooperative executor: runs the processors of a graph in one thread, as Hazelcast Jet's does.

`graph_run` runs them, `edge_routing` says which processor gets an item, `graph_groups` cuts a graph where items have to
move between tasks, `graph_operator` lets a graph run epoch by epoch. Nothing here knows an engine or a job.
"""
