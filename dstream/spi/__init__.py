"""The contracts between the parts of dstream, and towards third parties.

`collector` says how items become a result, `source` where they come from, `reducer` where a result
goes, `engine` who runs a plan.
"""

from dstream.spi.collector import Characteristics, Collector, Keyed, identity
from dstream.spi.engine import Engine, Runtime
from dstream.spi.reducer import Reducer
from dstream.spi.source import Source, Split

__all__ = [
    "Characteristics",
    "Collector",
    "Engine",
    "Keyed",
    "Reducer",
    "Runtime",
    "Source",
    "Split",
    "identity",
]
