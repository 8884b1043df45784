"""`ObjectFolder`: a folder of an object store such as S3, through the package `obstore`.

Credentials and endpoints are read from the environment (`AWS_...`, `GOOGLE_...`, `AZURE_...`), for files as for
storages: `dstream.filesystem.urls`. An object is durable when its put returns.
"""

from __future__ import annotations

import functools
import io
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from dstream.base.environment import pip_install
from dstream.base.records import record
from dstream.base.threads import contextmanager
from dstream.base.urls import credentials_in, shown_url
from dstream.errors import SetupError
from dstream.filesystem.folders import Found, SizedFile
from dstream.filesystem.urls import obstore_options

__all__ = ["ObjectFolder"]


_READ_WHOLE = 16 << 20
_KEEP_IN_MEMORY = 16 << 20
_REQUESTS = 32
RETRIES: Any = None
"""The number of retries of a request; None for obstore's own choice, ten times within three minutes (0.12)."""


@record
class ObjectFolder:
    """A folder of an object store.

    Attributes:
        root: its URL, such as `s3://bucket/path`.
        prefix: the path of this folder below the root.
    """

    root: str
    prefix: str = ""

    @staticmethod
    def opened(url: str) -> ObjectFolder:
        """Return the folder of a URL.

        Raises:
            SetupError: the package `obstore` is not installed.
            ValueError: the URL names a user, or has a ? or # in it, which obstore would pass over in silence.
        """
        _check(url)
        _store(url)
        return ObjectFolder(url)

    @property
    def url(self) -> str:
        return f"{self.root}/{self.prefix}".rstrip("/")

    @property
    def title(self) -> str:
        return f"the storage {self.root}"

    @property
    def storage(self) -> str:
        return self.root

    def is_seen(self) -> bool:
        """Return True: a URL leads every machine to the same objects."""
        return True

    def child(self, path: str) -> ObjectFolder:
        return ObjectFolder(self.root, self._at(path))

    def folders(self, path: str) -> Sequence[os.stat_result | None]:
        """Return nothing: an object store has neither folders nor links."""
        return ()

    def exists(self, path: str) -> bool:
        # obstore is optional, and `opened` has looked for it, so each method imports it where it is used.
        import obstore

        try:
            obstore.head(_store(self.root), self._at(path))
        except FileNotFoundError:
            return False
        return True

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return the paths without a file, with many concurrent requests."""
        with ThreadPoolExecutor(_REQUESTS) as pool:
            return [path for path, is_there in zip(paths, pool.map(self.exists, paths), strict=True) if not is_there]

    def read(self, path: str) -> bytes:
        import obstore

        return bytes(obstore.get(_store(self.root), self._at(path)).bytes())

    def read_part(self, path: str, start: int, length: int) -> bytes:
        import obstore

        return bytes(obstore.get_range(_store(self.root), self._at(path), start=start, length=length))

    def read_run(self, paths: Iterable[str]) -> Iterator[bytes]:
        """Yield the contents of files, up to the first one that is missing, with many requests at a time."""
        from more_itertools import chunked  # imported on use: local folders send no concurrent requests

        with ThreadPoolExecutor(_REQUESTS) as pool:
            for some in chunked(paths, _REQUESTS):
                for data in pool.map(self._read_if_there, some):
                    if data is None:
                        return
                    yield data

    def _read_if_there(self, path: str) -> bytes | None:
        try:
            return self.read(path)
        except FileNotFoundError:
            return None

    def open(self, path: str) -> Any:
        import obstore

        # One request for most files: the answer contains the size before any byte of the content is fetched.
        answer = obstore.get(_store(self.root), self._at(path))
        if answer.meta["size"] <= _READ_WHOLE:
            return io.BytesIO(bytes(answer.bytes()))
        return _Ranges(self.root, self._at(path), answer.meta["size"])

    def create(self, path: str, data: bytes) -> bool:
        """Put a file unless it exists; the store decides atomically."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        try:
            obstore.put(_store(self.root), self._at(path), data, mode="create", use_multipart=False)
        except (AlreadyExistsError, FileExistsError):
            return False
        return True

    def replace(self, path: str, data: bytes) -> None:
        import obstore

        obstore.put(_store(self.root), self._at(path), data)

    def write(self, path: str, data: bytes) -> None:
        self.replace(path, data)

    @contextmanager
    def writing(self, path: str) -> Iterator[Any]:
        import obstore

        # An error in the block skips the put, so that an object is never partial.
        with tempfile.SpooledTemporaryFile(max_size=_KEEP_IN_MEMORY) as file:
            yield file
            file.seek(0)
            obstore.put(_store(self.root), self._at(path), file)

    def last_created(self, path: str) -> bytes | None:
        """Return None: a second request for each commit would cost more than a listing now and then."""
        return None

    def paths(self, path: str) -> Iterator[str]:
        return (file.path for file in self.found(path))

    def found(self, path: str = "", after: str = "") -> Iterator[Found]:
        import obstore

        below = self._at(path) or None
        start = len(self.prefix) + 1 if self.prefix else 0
        offset = self._at(after) if after else None
        for page in obstore.list(_store(self.root), below, offset=offset):
            for entry in page:
                yield Found(entry["path"][start:], entry["last_modified"].timestamp())

    def delete(self, path: str) -> None:
        import obstore

        with suppress(FileNotFoundError):
            obstore.delete(_store(self.root), self._at(path))

    def delete_folder(self, path: str) -> None:
        """Do nothing: an object store has no folders, only names with slashes."""

    def _at(self, path: str) -> str:
        return f"{self.prefix}/{path}".strip("/")


class _Ranges(SizedFile):
    """A large object, of which each read fetches its own range.

    The file of `obstore.open_reader` is not usable: pyarrow evaluates its method `closed` as True (0.12).
    """

    def __init__(self, root: str, path: str, size: int) -> None:
        super().__init__(size)
        self._root, self._path = root, path

    def readinto(self, buffer: Any) -> int:
        import obstore

        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        data = obstore.get_range(_store(self._root), self._path, start=self._position, end=end)
        count = len(data)
        buffer[:count] = memoryview(data)
        self._position += count
        return count


def _check(url: str) -> None:
    user = credentials_in(url)
    is_container = user is not None and ":" not in user and url.startswith("abfs")
    if (user is not None and not is_container) or "?" in url or "#" in url:
        raise ValueError(
            f"{shown_url(url)} is no URL of a storage: it names a bucket and a path, such as s3://bucket/path, and "
            "neither a user nor parameters; credentials come from the environment, such as AWS_ACCESS_KEY_ID"
        )


def _store(url: str) -> Any:
    """Return the client for a URL. It is one per process, and not shared with the parent of a fork."""
    return _store_of(url, os.getpid())


@functools.lru_cache(maxsize=32)
def _store_of(url: str, process: int) -> Any:
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise SetupError(f"{url} needs the package obstore: {pip_install('object-store')}") from error
    return from_url(url, retry_config=RETRIES, **obstore_options(url.partition("://")[0]))
