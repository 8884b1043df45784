"""Operators on columns of NumPy and Arrow, with exactly the results of Python, or none.

`values` has the columns, `evaluation` evaluates an expression on them, `chain_evaluation` runs a chain of steps,
`collectors` and `groups` aggregate. Where the result of Python is not certain they raise `NotColumnar`, and the items
are the fallback. They load NumPy, so only tasks import them; the compiler asks `capabilities`, which loads nothing.
"""

from __future__ import annotations
