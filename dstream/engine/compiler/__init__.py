"""From core operations to a graph of tasks. `compiling` has the walk; each other module, some operations and decisions.

The compiler is pure: it reads no source, runs no function of the user's, and knows no Spark.
"""

from dstream.engine.compiler import compile_by_key as compile_by_key
from dstream.engine.compiler import compile_by_place as compile_by_place
from dstream.engine.compiler import compile_calls as compile_calls  # each registers its operations
from dstream.engine.compiler import compile_ends as compile_ends
from dstream.engine.compiler import compile_epochs as compile_epochs
from dstream.engine.compiler import compile_forks as compile_forks
from dstream.engine.compiler import compile_gatherers as compile_gatherers
from dstream.engine.compiler import compile_graphs as compile_graphs
from dstream.engine.compiler import compile_hash_joins as compile_hash_joins
from dstream.engine.compiler import compile_inputs as compile_inputs
from dstream.engine.compiler import compile_joins as compile_joins
from dstream.engine.compiler import compile_stages as compile_stages
from dstream.engine.compiler import compile_zips as compile_zips
from dstream.engine.compiler.compiling import ColumnMode, Facts, compiled

__all__ = ["ColumnMode", "Facts", "compiled"]
