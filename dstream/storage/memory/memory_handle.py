"""`Handle`: what stores of both kinds do; any number of them share one state."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dstream.spi.store import Kind, Options
from dstream.storage.codec.codec import Codec
from dstream.storage.codec.described_codec import described_codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.memory.memory_records import MemoryRecords
from dstream.storage.memory.memory_state_files import MemoryStateFiles
from dstream.storage.memory.state import State

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Handle", "Registry"]

S = TypeVar("S", bound=State)


@dataclass(slots=True, eq=False)
class Registry:
    """The collections, records and states of jobs of one storage."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    states: dict[tuple[Kind, str], State] = field(default_factory=dict)
    records: MemoryRecords = field(default_factory=MemoryRecords)
    state_files: dict[str, MemoryStateFiles] = field(default_factory=dict)


class Handle(Generic[S]):
    """The part of a store that does not depend on its kind."""

    in_process = True
    location: str | None = None

    def __init__(self, registry: Registry, state: S, asked: Options, pickles: Pickles) -> None:
        self._registry = registry
        self._state = state
        self._asked = asked
        self._pickles = pickles
        self._known: tuple[Any, Codec] | None = None

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self._state.name

    @property
    def identity(self) -> str:
        """What a later one of its name has not."""
        return self._state.identity

    @property
    def options(self) -> Options:
        """How the collection was made, and the types that are known by now."""
        return self._state.shape.options(self._codec())

    def size(self) -> int:
        """Count the entries or items."""
        with self._state.held():
            return self._state.size

    def destroy(self) -> None:
        """Remove the collection and its name."""
        with self._registry.lock, self._state.held():
            self._state.destroyed = True
            del self._registry.states[self._state.kind, self._state.name]

    def schema(self) -> pa.Schema:
        """Return the columns of `read_arrow`."""
        return self._codec().schema()

    def compact(self) -> None:
        """Do nothing: changes leave nothing behind."""
        self.size()

    def vacuum(self, older_than: float) -> int:
        """Remove nothing: splits hold what they read."""
        self.size()
        return 0

    def _codec(self) -> Codec:
        with self._state.held():
            types = self._state.types
        return self._codec_of(types)

    def _codec_of(self, types: Any) -> Codec:
        known = self._known
        if known is None or known[0] is not types:
            codec = described_codec(types, self._state.kind, self._state.name, self._asked, self._pickles)
            self._known = known = (types, codec)
        return known[1]
