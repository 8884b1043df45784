"""The physical plan as values: vertices, edges, and the decisions of a run.

`vertices` has its vertices and their inputs, `graph` the decisions between its jobs. The compiler
(`dstream.engine.compiler`) makes it from core operations, and an engine runs it. No module of this package uses Spark.
"""

from __future__ import annotations
