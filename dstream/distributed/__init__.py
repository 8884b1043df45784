"""`IStreamMap`, `IStreamList`, `IStreamCache`: collections that live in a storage and are found there by name.

A handle holds no data: any number of them, in any process, work on the one collection. Look into `map`, `list`
and `cache` for each, into `sources` for how streams read them, and into `expiring` for how entries of a cache end.
"""

from dstream.distributed.cache import IStreamCache
from dstream.distributed.expiring import Expiring, stored_options
from dstream.distributed.list import IStreamList
from dstream.distributed.map import IStreamMap
from dstream.distributed.processing import LiveEntry

__all__ = ["Expiring", "IStreamCache", "IStreamList", "IStreamMap", "LiveEntry", "stored_options"]
