"""The compiler: from core operations to a physical plan.

It is pure: it reads no source, runs no function of the user's, and does not use Spark. Each module registers its
handlers in the registry of `walk`.

- `walk`: the walk over a plan, with the registry of handlers.
- `inputs`: sources, caches, element-wise operations, forks and zips.
- `evaluation`: functions of steps, collectors and entries, read as expressions, or called by item.
- `keyed`: operations by key on one stream.
- `joins`: operations on two streams by key.
- `sort_limit`: operations by position.
- `gatherers`: windows, running values and concurrent calls.
- `stateful_steps`: steps whose state outlives an epoch.
- `processors`: graphs of processors.
- `ends`: terminal operations, grouped results and writes.
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
