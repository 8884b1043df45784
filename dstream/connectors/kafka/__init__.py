"""Kafka as source and sink: consumers, producers, offsets and transactions.

`settings` has the configuration of a cluster, `sources` the topics that are read, `consumers` the reading of their
ranges in tasks; `sinks` has the jobs that write, `producers` their messages and transactions.
"""
