"""Runs of physical plans, as far as they are the same wherever the tasks run.

`graphs` makes the decisions of a graph, `splits` lists its sources, `results` makes the result of the rows of its last
job, `rows` are those that come to this process.
"""

from __future__ import annotations
