"""The base of all other packages: processes, threads, pickling, memory, logging and URLs, without knowledge of streams.

`memory` bounds the memory of a worker, `threads` reuses threads, `by_value` and `pickling` send functions and classes
to workers, `functions` recognizes plain functions, `urls` hides secrets, `validation` checks stored data, `showing`
writes short strings for messages, `registry` names the classes that job state contains.
"""
