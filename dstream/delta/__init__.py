"""Delta tables: the log of a table, its commits and checkpoints, for storages and for files.

`actions` has the format of the log and the sum of commits, `checkpoints` reads and writes checkpoints. `collection_log`
is the log of a table that this library owns, `vacuum` removes what no reader needs. `shared_log` writes into a table
that other programs share.
"""
