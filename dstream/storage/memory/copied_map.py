"""`CopiedMap`: the entries of a map in memory, on their way to workers, which cannot look into this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.storage.codec.codec import Codec
from dstream.storage.encoded import decoded

__all__ = ["CopiedMap"]


@dataclass(frozen=True, slots=True)
class CopiedMap:
    """The entries as they were when they left; they can only be read."""

    name: str
    codec: Codec
    entries: Mapping[bytes, bytes]

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """Return the value of each key, None where there is none."""
        return decoded(self.codec, [self.entries.get(self.codec.encode_key(key)) for key in keys])

    def size(self) -> int:
        """Return the number of entries."""
        return len(self.entries)
