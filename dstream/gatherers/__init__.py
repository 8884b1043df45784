"""Gatherers: operations on neighbouring items, as in `java.util.stream.Gatherers`.

`stream.gather(window_sliding(3))` uses one; `Gatherer.of` makes one of your own. `neighbours` contains folds, scans and
windows, `concurrency` concurrent calls with a rate limit and retries, which `calls` runs.
"""

from __future__ import annotations

from dstream.gatherers.concurrency import Retry, map_concurrent
from dstream.gatherers.neighbours import fold, scan, window_fixed, window_sliding
from dstream.spi import Downstream, Gatherer

__all__ = ["Downstream", "Gatherer", "Retry", "fold", "map_concurrent", "scan", "window_fixed", "window_sliding"]


def __dir__() -> list[str]:
    return sorted(__all__)
