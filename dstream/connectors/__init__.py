"""Connectors: the source and the sink of each system, and the items of this process.

A system is a package or a module: `files`, `kafka`, `sql`, `sockets`, `collections`, `functions`; none imports another.
`base` has the bases that they share, `memory` the items of the caller, `dataframes` DataFrames and Arrow tables.
Users call the factories of the packages `sources` and `reducers`.
"""
