"""`MemoryStateFiles`: the state of a job in this process, which ends with it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from dstream.errors import UnsupportedError
from dstream.spi.state_files import StateFile
from dstream.storage.codec.pickles import Pickles
from dstream.storage.state_pickles import for_state

__all__ = ["MemoryStateFiles"]


@dataclass(slots=True, eq=False)
class MemoryStateFiles:
    """The files of one job, shared by all who ask for them in this process.

    Attributes:
        title: what errors call it.
        pickles: which pickles are loaded.
    """

    title: str
    pickles: Pickles
    _data: dict[str, tuple[bytes, float]] = field(default_factory=dict)

    def write(self, name: str, data: bytes) -> None:
        """Keep the bytes."""
        self._data[name] = data, time.time()

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return a part of a file."""
        found = self._data.get(name)
        if found is None:
            raise FileNotFoundError(name)
        return found[0][offset : offset + length]

    def remove(self, name: str) -> None:
        """Forget a file."""
        self._data.pop(name, None)

    def found(self) -> Iterator[StateFile]:
        """List all files."""
        return iter([StateFile(name, written_at) for name, (_, written_at) in list(self._data.items())])

    def dump(self, value: Any) -> bytes:
        """Pickle a value."""
        return for_state(self.pickles).dump(value)

    def load(self, data: bytes) -> Any:
        """Load a pickle."""
        return for_state(self.pickles).load(data)

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            f"{self.title} stands in the memory of this process, and other processes cannot reach it: keep it in a "
            "folder or an object store, with connect(storage=...) or JobConfig(files_at=...)"
        )
