"""Expressions over columns: what pure functions give for many rows at once, exactly as Python does, or not at all.

`evaluating` runs an expression, `column_values` has the columns, `column_items` the items that stand in some. They load
NumPy, so only who runs a task imports them; `supported` and `steps_in_columns` load nothing.
"""

from dstream.engine.kernels.columns.steps_in_columns import may_stand_in_columns, obstacle_to_columns
from dstream.engine.kernels.columns.supported import unsupported

__all__ = ["may_stand_in_columns", "obstacle_to_columns", "unsupported"]
