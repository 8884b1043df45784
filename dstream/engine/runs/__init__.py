"""Runs of physical plans, as far as they are the same wherever the tasks run.

`graphs` makes the decisions of a graph, `splits` lists its sources, `results` makes the result from the rows of its
last job, `rows` handles the rows that are sent to this process. `moves` has the contract of a run that continues on
another engine, `item_use` decides on copies of the caller's items.
"""

from __future__ import annotations
