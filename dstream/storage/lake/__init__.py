"""The default storage: one Delta table per collection, in a directory or an object store, without a server.

Start with `collection`, the log and the commits; then `maps` and `lists`. `catalog` and `registry` find collections by
name, `jobs` and `merge` write the results of jobs. Every table is readable by whatever reads Delta; only dstream may
write to it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dstream.base.urls import shown_url
from dstream.errors import SetupError
from dstream.filesystem.folders import StorageFolder
from dstream.filesystem.local import LocalFolder
from dstream.filesystem.object_store import ObjectFolder
from dstream.spi.store import PickleMode, Settings
from dstream.storage.codec.pickles import Pickles
from dstream.storage.lake.catalog import LakeStorage

__all__ = ["LakeStorage", "open_lake"]

_REMOTE = ("s3://", "s3a://", "gs://", "az://", "abfs://", "abfss://")


def open_lake(url: str, settings: Settings) -> LakeStorage:
    """Open the storage in a folder or an object store; nothing is made before the first collection is.

    Args:
        url: a path, or a URL such as `file:///...`, `s3://bucket/path`, `gs://...`, `az://...`.
        settings: which pickled values are loaded; unset, all of them where only this user can write, as `trust`
            says, otherwise those of plain and allowed types. How durable an acknowledged change is.

    Raises:
        SetupError: an object store needs the package `obstore`; a path is that of a file.
    """
    if url.startswith(_REMOTE):
        folder: StorageFolder = ObjectFolder.opened(url.rstrip("/"))
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
