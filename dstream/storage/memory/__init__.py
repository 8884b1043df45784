"""`MemoryStorage`: collections by kind and name in one process; the contract of `dstream.spi.store` in dicts.

`stores` has maps and lists, `state` the common part of both. They contain encoded bytes, as every other storage does,
so that values are copies and the same things are refused everywhere.
"""

from __future__ import annotations

from typing import Any

from dstream.base.threads import RenewedLock
from dstream.spi.store import Kind, ListStore, MapStore, Options, Settings
from dstream.storage.base.options import Shape, check_name
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import described_codec
from dstream.storage.codec.pickles import Pickles, check_are_loaded, for_state
from dstream.storage.memory.state import ListState, MapState, MemoryRecords, MemoryRegistry, MemoryStateFiles, State
from dstream.storage.memory.stores import MemoryList, MemoryMap

__all__ = ["MemoryStorage", "open_memory"]


_shared: dict[str, MemoryRegistry] = {}
_shared_lock = RenewedLock()


def open_memory(url: str, settings: Settings) -> MemoryStorage:
    """Open a storage of this process.

    Args:
        url: `memory:` for a private storage, `memory:name` for a storage that is shared by that name.
        settings: which pickled values are loaded; unset, all of them, since only this process writes.
    """
    name = url.removeprefix("memory:").strip("/")
    with _shared_lock:
        registry = _shared.setdefault(name, MemoryRegistry()) if name else MemoryRegistry()
    return MemoryStorage(url, registry, Pickles(settings.pickle or "trusted", settings.allowed))


class MemoryStorage:
    """A handle to the collections of one storage."""

    def __init__(self, url: str, registry: MemoryRegistry, pickles: Pickles) -> None:
        self._url = url
        self._registry = registry
        self._pickles = pickles

    @property
    def url(self) -> str:
        """The URL of the connection."""
        return self._url

    @property
    def records(self) -> MemoryRecords:
        """The records next to the collections, for all users of the storage."""
        return self._registry.records

    def load_pickle(self, data: bytes) -> Any:
        """Load a pickle by the policy for values, or a pickle of the state of steps."""
        return for_state(self._pickles).load(data)

    def state_files(self, job: str) -> MemoryStateFiles:
        """Return the state of a job, which all users of this storage see."""
        title = f"the state of the job {job}"
        check_are_loaded(self._pickles, title)
        return self._registry.state_files.setdefault(job, MemoryStateFiles(title, self._pickles))

    def create(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore:
        """Return the store of that name, created if it does not exist."""
        check_name(name)
        # Made before the lock, under which no code of the user's classes runs; it is dropped if there is one already.
        made = self._made(kind, name, options)
        with self._registry.lock:
            state = self._registry.states.setdefault((kind, name), made)
        return self._handle(state, options)

    def _made(self, kind: Kind, name: str, options: Options) -> State:
        shape = Shape.of(kind, name, options)
        types = Codec.of(kind, name, options, self._pickles).to_json()
        return ListState(kind, name, shape, types) if kind == "list" else MapState(kind, name, shape, types)

    def open(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore | None:
        """Return the store of that name, or None."""
        check_name(name)
        with self._registry.lock:
            state = self._registry.states.get((kind, name))
        return None if state is None else self._handle(state, options)

    def _handle(self, state: State, options: Options) -> MapStore | ListStore:
        state.shape.check(state.kind, state.name, options)
        self._decide(state, options)
        arguments: Any = (self._registry, state, options, self._pickles)
        return MemoryList(*arguments) if isinstance(state, ListState) else MemoryMap(*arguments)

    def _decide(self, state: State, options: Options) -> None:
        """Decide open types from `options`, so that no other call decides otherwise."""
        while not state.destroyed:
            types = state.types
            settled = described_codec(types, state.kind, state.name, options, self._pickles).to_json()
            with state.lock:
                # Another thread may have decided them since they were read; then its types are looked at instead.
                if state.types is types:
                    state.settle(settled)
                    return

    def names(self) -> list[tuple[Kind, str]]:
        """Return the kinds and names of all stores, sorted."""
        with self._registry.lock:
            return sorted(self._registry.states)

    def vacuum(self, older_than: float) -> int:
        """Remove nothing: splits contain their data, and a destroyed collection leaves no data."""
        return 0

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
