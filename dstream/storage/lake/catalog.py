"""`LakeStorage`: the catalog of collections in a folder or an object store, and the vacuum of records."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from dstream.base.threads import renewed_after_fork
from dstream.base.urls import shown_url
from dstream.delta.actions import is_temporary
from dstream.delta.vacuum import STAGED_FOR, vacuum
from dstream.errors import CollectionDestroyedError
from dstream.filesystem.folders import Found, StorageFolder
from dstream.spi.store import Kind, ListStore, MapStore, Options
from dstream.storage.base.folders import LakeStateFiles, NamedFolder, Trust
from dstream.storage.base.options import Shape, check_name
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.pickles import Pickles, for_state
from dstream.storage.lake.lists import LakeList
from dstream.storage.lake.maps import LakeMap
from dstream.storage.lake.records import KEPT, RECORDS, LakeRecords, files_by_name, numbers_in, record_path
from dstream.storage.lake.registry import CollectionKey, Description, Registry

__all__ = ["LakeStorage", "vacuum_records"]


def vacuum_records(folder: StorageFolder, older_than: float) -> int:
    """Remove files that newer ones have replaced, and those that were prepared long ago; return how many."""
    records = NamedFolder(folder, folder.title)
    found = list(records.found(RECORDS))
    removed = [*_replaced(found), *_prepared(found, time.time() - max(older_than, STAGED_FOR))]
    for path in removed:
        records.delete(path)
    return len(removed)


def _replaced(found: Iterable[Found]) -> Iterator[str]:
    for name, files in files_by_name(file.path for file in found).items():
        for number in numbers_in(files)[:-KEPT]:
            yield record_path(name, number)


def _prepared(found: Iterable[Found], limit: float) -> Iterator[str]:
    for file in found:
        if is_temporary(file.path.rpartition("/")[2]) and file.written_at <= limit:
            yield file.path


class LakeStorage:
    """A handle to the collections below one folder. All who ask it for one collection share a handle to that."""

    def __init__(self, url: str, folder: StorageFolder, pickles: Pickles, is_judging: bool = False) -> None:
        self._url = url
        self._folder = folder
        self._trust = trust = Trust(folder, pickles, is_judging)
        self._registry = Registry(folder, trust)
        self._records = LakeRecords(folder, trust)
        self._pickles = pickles
        self.renew()
        renewed_after_fork(self)

    def renew(self) -> None:
        """Take a new lock; a forked process begins with it."""
        self._lock = threading.RLock()

    @property
    def url(self) -> str:
        """What was connected to, without secrets."""
        return shown_url(self._url)

    @property
    def records(self) -> LakeRecords:
        """What is kept beside the collections."""
        return self._records

    def load_pickle(self, data: bytes) -> Any:
        """Load a pickle that a record holds; by default, where others could write, plain types and what steps keep."""
        return for_state(self._records.pickles()).load(data)

    def state_files(self, job: str) -> LakeStateFiles:
        """Return the state of a job in files of this storage."""
        return LakeStateFiles.of(self._trust, job)

    def create(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore:
        """Return the store of that name, made if there is none."""
        check_name(name)
        codec = Codec.of(kind, name, options, self._pickles)
        shape = Shape.of(kind, name, options)
        wanted = Description("", kind, name, shape, codec.to_json())
        with self._lock:
            while True:
                made = self._registry.make(wanted)
                with suppress(CollectionDestroyedError):  # by another process, since it was found
                    return self._handle(made, options)

    def open(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore | None:
        """Return the store of that name, or None."""
        check_name(name)
        with self._lock:
            while (found := self._registry.find(kind, name)) is not None:
                with suppress(CollectionDestroyedError):
                    return self._handle(found, options)
            return None

    def _handle(self, description: Description, options: Options) -> LakeMap | LakeList:
        handles: dict[CollectionKey, LakeMap | LakeList] = self._registry.handles
        handle = handles.get(description.place) or self._made(description)
        try:
            handle.settle(options)
        except CollectionDestroyedError:
            self._registry.forget_destroyed(description)
            raise
        handles[description.place] = handle
        return handle

    def _made(self, description: Description) -> LakeMap | LakeList:
        make = LakeList if description.kind == "list" else LakeMap
        return make(self._registry, description)

    def names(self) -> list[tuple[Kind, str]]:
        """Return the kinds and names of all stores, sorted."""
        with self._lock:
            return self._registry.names()

    def vacuum(self, older_than: float) -> int:
        """Remove files that no reader can need, also those of destroyed collections; logs and records stay."""
        with self._lock:
            logs = self._registry.logs()
        return sum(vacuum(log, older_than) for log in logs) + vacuum_records(self._folder, older_than)

    def close(self) -> None:
        """Forget the handles with what they have cached."""
        with self._lock:
            self._registry.forget()
