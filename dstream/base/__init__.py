"""The base of all other packages, without knowledge of streams.

- `by_value`: functions and classes as bytes for workers that cannot import them.
- `copies`: copies of the caller's items, of the mutable ones alone.
- `environment`: the installed version, the check for a running Spark task, and temporary folders.
- `functions`: the recognition of plain functions.
- `logging`: log lines that users asked for.
- `memory`: the memory bound of a process.
- `pickling`: items and functions as bytes.
- `records`: `record`, classes of values with fields that are made fast.
- `registry`: stable names of the classes that job state contains.
- `setters`: whether methods of the caller's classes could set attributes.
- `showing`: short strings for messages.
- `threads`: threads that are reused, and locks that survive a fork.
- `urls`: URLs without their secrets.
- `validation`: checks of stored data.
"""
