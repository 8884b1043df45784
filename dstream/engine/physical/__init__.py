"""The physical plan as values: vertices, edges, and the decisions of a run.

`vertices` has its vertices and their inputs, `graph` what is decided between its jobs. The compiler
(`dstream.engine.compiler`) makes it of core operations, and an engine runs it. No module of this package uses Spark.
"""

from __future__ import annotations
