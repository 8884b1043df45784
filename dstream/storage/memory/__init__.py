"""The storage of one process: what the contract of `dstream.spi.store` means, in dicts and lists.

`memory_maps` holds entries, `memory_lists` items, `state` what both have in common. They hold encoded bytes, as every
other storage does, so that values are copies and the same things are refused everywhere.
"""

from __future__ import annotations

from dstream.storage.memory.memory_storage import MemoryStorage, open_memory

__all__ = ["MemoryStorage", "open_memory"]
