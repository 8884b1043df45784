"""What operations do to the items of one partition: in the caller's process on the local engine, on workers on Spark.

Nothing here knows an engine. `operations` has the registry; each other module, a kind of operation or what they hold.
"""
