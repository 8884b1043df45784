"""The operators over epochs: what becomes of items and of a state that outlives them.

Each is a value that follows `dstream.spi.state_operator`. It knows nothing of jobs, files or engines, so the local
engine, Spark and tests run the same one. They are imported from their modules.
"""
