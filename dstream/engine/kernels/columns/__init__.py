"""Expressions over columns: what pure functions give for many rows at once, exactly as Python does, or not at all.

`evaluating` runs an expression, `column_values` has the columns, `column_items` the items that stand in some. They load
NumPy, so only who runs a task imports them; `supported`, `steps_in_columns` and `column_items` load nothing.
"""
