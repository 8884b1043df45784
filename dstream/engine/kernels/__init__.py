"""What operations do to the items of one partition: in the caller's process on the local engine, on workers on Spark.

Nothing here knows an engine. `core_operations` has the registry; each other module has a kind of operation, or what
operations hold.
"""
