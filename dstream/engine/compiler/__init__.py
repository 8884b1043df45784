"""The compiler: from core operations to a physical plan.

`walk` has the registry of handlers; the other modules register theirs, for `inputs` to `ends`. The compiler is pure: it
reads no source, runs no function of the user's, and does not use Spark.
"""

from __future__ import annotations

from dstream.engine.compiler import ends as ends
from dstream.engine.compiler import gatherers as gatherers
from dstream.engine.compiler import inputs as inputs
from dstream.engine.compiler import joins as joins
from dstream.engine.compiler import keyed as keyed
from dstream.engine.compiler import processors as processors
from dstream.engine.compiler import sort_limit as sort_limit
from dstream.engine.compiler import stateful_steps as stateful_steps
from dstream.engine.compiler.walk import ClusterFacts, ColumnMode, compiled

__all__ = ["ClusterFacts", "ColumnMode", "compiled"]
