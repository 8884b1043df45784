"""From core operations to a graph of tasks. `compiling` has the walk; each other module, some operations and decisions.

The compiler is pure: it reads no source, runs no function of the user's, and knows no Spark.
"""

from dstream.engine.compiler import calls as calls  # each registers its operations
from dstream.engine.compiler import ends as ends
from dstream.engine.compiler import gatherers as gatherers
from dstream.engine.compiler import keys as keys
from dstream.engine.compiler import pairs as pairs
from dstream.engine.compiler import places as places
from dstream.engine.compiler import sources as sources
from dstream.engine.compiler.compiling import Facts, compiled

__all__ = ["Facts", "compiled"]
