"""SQL databases as sources and sinks: queries, growing tables, staged rows.

`databases` has the URL, the dialect and the columns of a database. `sources` reads rows, `rows` makes
items of them; `sinks` has the job that writes, `staging` the staged rows and their tables.
"""
