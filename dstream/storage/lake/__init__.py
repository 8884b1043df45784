"""The default storage: one Delta table per collection, in a directory or an object store, without a server.

Every table is readable by any reader of Delta; only dstream may write to it. Start with `LakeStorage`.

- `catalog`: `LakeCatalog`, the collections by name, with their descriptions.
- `collection`: the log and the commits of a collection.
- `maps`: `LakeMap`, the entries of a map or a cache, with its journal.
- `lists`: `LakeList`, the items of a list.
- `single_keys`: changes of single keys in one commit, and their lookup.
- `pages`: lookups of single keys in files, by pages of rows.
- `tables`: rows and columns of a collection in Parquet files.
- `splits`: splits of maps and lists at one commit.
- `staging`: results of jobs, staged by tasks.
- `merge`: results of jobs, merged into a collection.
- `caches`: caches of a process.
- `records`: `LakeRecords`, records as files.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dstream.base.threads import renewed_after_fork
from dstream.base.urls import shown_url
from dstream.delta.actions import is_temporary
from dstream.delta.vacuum import STAGED_FOR, vacuum
from dstream.errors import CollectionDestroyedError, SetupError
from dstream.filesystem.folders import Found, StorageFolder
from dstream.filesystem.local import LocalFolder
from dstream.spi.store import Kind, ListStore, MapStore, Options, PickleMode, Settings
from dstream.storage.base.named_folders import FolderStateFiles, NamedFolder, Trust
from dstream.storage.base.options import Shape, check_name
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.pickles import Pickles, for_state
from dstream.storage.lake.catalog import CollectionKey, Description, LakeCatalog
from dstream.storage.lake.lists import LakeList
from dstream.storage.lake.maps import LakeMap
from dstream.storage.lake.records import KEPT, RECORDS, LakeRecords, files_by_name, numbers_in, record_path

__all__ = ["LakeStorage", "open_lake", "vacuum_records"]


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
    """A handle to the collections below one folder. All callers that get one collection share a handle to it."""

    def __init__(self, url: str, folder: StorageFolder, pickles: Pickles, is_judging: bool = False) -> None:
        self._url = url
        self._folder = folder
        self._trust = trust = Trust(folder, pickles, is_judging)
        self._catalog = LakeCatalog(folder, trust)
        self._records = LakeRecords(folder, trust)
        self._pickles = pickles
        self.renew()
        renewed_after_fork(self)

    def renew(self) -> None:
        """Create a new lock, for a forked process."""
        self._lock = threading.RLock()

    @property
    def url(self) -> str:
        """The URL of the connection, without secrets."""
        return shown_url(self._url)

    @property
    def records(self) -> LakeRecords:
        """The records next to the collections."""
        return self._records

    def load_pickle(self, data: bytes) -> Any:
        """Load a pickle of a record; by default, where others could write, plain types and the state of steps."""
        return for_state(self._records.pickles()).load(data)

    def state_files(self, job: str) -> FolderStateFiles:
        """Return the state of a job in files of this storage."""
        return FolderStateFiles.of(self._trust, job)

    def create(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore:
        """Return the store of that name, created if it does not exist."""
        check_name(name)
        codec = Codec.of(kind, name, options, self._pickles)
        shape = Shape.of(kind, name, options)
        wanted = Description("", kind, name, shape, codec.to_json())
        with self._lock:
            while True:
                made = self._catalog.make(wanted)
                with suppress(CollectionDestroyedError):  # by another process, since it was found
                    return self._handle(made, options)

    def open(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore | None:
        """Return the store of that name, or None."""
        check_name(name)
        with self._lock:
            while (found := self._catalog.find(kind, name)) is not None:
                with suppress(CollectionDestroyedError):
                    return self._handle(found, options)
            return None

    def _handle(self, description: Description, options: Options) -> LakeMap | LakeList:
        handles: dict[CollectionKey, LakeMap | LakeList] = self._catalog.handles
        handle = handles.get(description.place) or self._made(description)
        try:
            handle.settle(options)
        except CollectionDestroyedError:
            self._catalog.forget_destroyed(description)
            raise
        handles[description.place] = handle
        return handle

    def _made(self, description: Description) -> LakeMap | LakeList:
        make = LakeList if description.kind == "list" else LakeMap
        return make(self._catalog, description)

    def names(self) -> list[tuple[Kind, str]]:
        """Return the kinds and names of all stores, sorted."""
        with self._lock:
            return self._catalog.names()

    def vacuum(self, older_than: float) -> int:
        """Remove files that no reader can need, also those of destroyed collections; logs and records remain."""
        # A vacuum is slow, so it runs without the lock, which each lookup of a collection needs.
        with self._lock:
            logs = self._catalog.logs()
        return sum(vacuum(log, older_than) for log in logs) + vacuum_records(self._folder, older_than)

    def close(self) -> None:
        """Forget the handles with their caches."""
        with self._lock:
            self._catalog.forget()


_REMOTE = ("s3://", "s3a://", "gs://", "az://", "abfs://", "abfss://")


def open_lake(url: str, settings: Settings) -> LakeStorage:
    """Open the storage in a folder or an object store; nothing is made before the first collection is.

    Args:
        url: a path, or a URL such as `file:///...`, `s3://bucket/path`, `gs://...`, `az://...`.
        settings: which pickled values are loaded; unset, all of them if only this user can write (see `trust`),
            otherwise pickles of plain and allowed types. It also contains the durability of acknowledged changes.

    Raises:
        SetupError: an object store needs the package `obstore`; the path is a file.
    """
    if url.startswith(_REMOTE):
        from dstream.filesystem.object_folder import ObjectFolder  # imported on use: most storages are local

        folder: StorageFolder = ObjectFolder.opened(url.rstrip("/"))
        # It is not known which users may write into a bucket, so its pickles are not trusted.
        mode: PickleMode = settings.pickle or "restricted"
    else:
        path = _path(url)
        _check_folder(path)
        folder = LocalFolder(str(path), durable=settings.durability == "power")
        mode = settings.pickle or "trusted"
    is_judging = settings.pickle is None and mode == "trusted"
    return LakeStorage(url, folder, Pickles(mode, settings.allowed), is_judging=is_judging)


def _check_folder(path: Path) -> None:
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise SetupError(f"storage is a folder, and {path} cannot be one: a part of the path is a file") from error
    except OSError as error:
        reason = "this user may not" if isinstance(error, PermissionError) else f"one cannot ({error.strerror})"
        raise SetupError(
            f"{reason} look into the storage {path}: allow or mend it, or name another place with connect(storage=...)"
        ) from error
    if not is_folder:
        raise SetupError(f"storage is a folder, and {path} is a file")


def _path(url: str) -> Path:
    if not url.startswith("file:"):
        return Path(url).expanduser().absolute()
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ValueError(f"{shown_url(url)} names a host; a path on this machine begins with file:///")
    return Path(unquote(parts.path)).absolute()
