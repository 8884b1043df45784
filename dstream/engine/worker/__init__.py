"""What tasks do on Spark's workers: open an input, run operations, write rows.

`rows` says how items travel, `stage` runs a task, `readers` make items of rows; `sinks`, `routing` and
`partition_summaries` make rows of items. Everything here is pickled in the driver; nothing knows a graph or a session.
"""
