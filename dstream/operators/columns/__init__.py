"""Operators on columns of NumPy and Arrow, with exactly the results of Python, or none.

`evaluation` evaluates an expression on columns, `chain_evaluation` runs a chain of steps. Where the result of Python is
not certain they raise `NotColumnar`, and the items are the fallback. They load NumPy, so only tasks import them; the
compiler asks `capabilities`, which loads nothing.

Columns: `values` of numbers and their base, `strings`, `encoded` of dates and the like, `entries` of keys and values,
`arrow_rows` of files and tables, `built_rows` of new objects. Operators: `arithmetic`, `string_operators`,
`string_methods`, `string_runs` of characters, `encoded_calls` for each distinct value, `python_rows` row by row.
Aggregation: `collectors`, `groups` by one key, `group_by` any columns, `group_numbers`, `group_results`, `float_sums`,
`windows`. Order: `distinct`, `ranks`, `top`.
"""

from __future__ import annotations
