"""The gatherers: what happens between neighbouring items, as in `java.util.stream.Gatherers`.

`stream.gather(window_sliding(3))` uses one; `Gatherer.of` makes one of your own.
"""

from dstream.gatherers.concurrent import map_concurrent
from dstream.gatherers.folding import fold, scan
from dstream.gatherers.retry import Retry
from dstream.gatherers.windows import window_fixed, window_sliding
from dstream.spi import Downstream, Gatherer

__all__ = ["Downstream", "Gatherer", "Retry", "fold", "map_concurrent", "scan", "window_fixed", "window_sliding"]


def __dir__() -> list[str]:
    return sorted(__all__)
