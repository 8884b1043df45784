"""The operators of tasks: their work on rows, columns, windows, joins and states.

`rows` has the operations on the items of one partition, `columns` those on blocks of NumPy and Arrow, `joins` those on
two inputs, `windows` and `state` those whose results depend on event time and on earlier epochs. No module here imports
an engine: the local engine, Spark and tests run the same ones. They are imported from their modules.
"""

from __future__ import annotations
