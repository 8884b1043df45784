"""Collections that live in a storage and are found there by name: `IStreamMap`, `IStreamList` and their kin.

A handle holds no data: any number of them, in any process, work on the one collection. Look into `map`, `list`,
`cache`, `set`, `counter` and `queue` for each, into
`collection_sources` for how streams read them, and into `expiring` for how entries of a cache end.
"""

from dstream.distributed.cache import IStreamCache
from dstream.distributed.counter import IStreamCounter
from dstream.distributed.expiring import Expiring, stored_options
from dstream.distributed.list import IStreamList
from dstream.distributed.map import IStreamMap
from dstream.distributed.processing import LiveEntry
from dstream.distributed.queue import IStreamQueue
from dstream.distributed.set import IStreamSet

__all__ = [
    "Expiring",
    "IStreamCache",
    "IStreamCounter",
    "IStreamList",
    "IStreamMap",
    "IStreamQueue",
    "IStreamSet",
    "LiveEntry",
    "stored_options",
]
