"""Collections that live in a storage and are found there by name: `IStreamMap`, `IStreamList` and their kin.

A handle holds no data: any number of them, in any process, work on the one collection. Look into `map`, `list`,
`cache`, `set`, `counter` and `queue` for each; few programs use the last three, which are loaded when they are asked
for. `collection_sources` says how streams read collections, `expiring` how entries of a cache end.
"""

from dstream.distributed.cache import IStreamCache
from dstream.distributed.expiring import Expiring, stored_options
from dstream.distributed.list import IStreamList
from dstream.distributed.map import IStreamMap
from dstream.spi.live_entry import LiveEntry

__all__ = ["Expiring", "IStreamCache", "IStreamList", "IStreamMap", "LiveEntry", "stored_options"]
