"""Collections that are stored in a storage and found by name: `IStreamMap`, `IStreamList` and others.

A handle has no data: any number of them, in any process, work on one collection. `map`, `list`, `cache`, `set`,
`counter` and `queue` contain the handles; the last three are loaded on first use. `map_queries` and `map_updates` are
the two halves of `map`, `indexes` and `field_index` its indexes, `base` the operations that all collections share,
`sources` the sources of streams that read them.
"""

from __future__ import annotations

from dstream.collections.cache import Expiring, IStreamCache, stored_options
from dstream.collections.list import IStreamList
from dstream.collections.map import IStreamMap
from dstream.spi.store import LiveEntry

__all__ = ["Expiring", "IStreamCache", "IStreamList", "IStreamMap", "LiveEntry", "stored_options"]
