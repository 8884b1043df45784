"""Kafka as source and sink: consumers, producers, offsets and transactions.

`settings` has the configuration of a cluster, `topics` the source, `consumers` the reading of its ranges in tasks;
`sinks` has the jobs that write, `producers` their messages and transactions.
"""
