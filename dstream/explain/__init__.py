"""Explanation of a plan before it runs: stages, routes of functions, cost, and drawings.

`stages` makes the stages that either engine would run: `estimates` follows the decisions of a physical plan through
every possible report and count, `worst_case` has the case with the most work, `routes` the reasons for columns and
calls, `bounds` the bounds of items, stages and shuffles. `text` and `drawing` show the result. Nothing runs.
"""

from __future__ import annotations
