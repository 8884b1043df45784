"""SQL databases as sources and sinks: queries, growing tables, staged rows.

`databases` has the URL, the dialect and the columns of a database. `sources` reads rows, `records` makes
items of them; `sinks` has the job that writes, `tables` the staged rows and their tables.
"""
