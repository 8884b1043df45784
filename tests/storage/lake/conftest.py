"""What the tests of the lake share: storages on a folder that can be tampered with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dstream.delta import collection_log, vacuum
from dstream.filesystem.folders import Found, StorageFolder
from dstream.filesystem.local import LocalFolder
from dstream.spi.store import Options
from dstream.storage.codec.pickles import Pickles
from dstream.storage.lake import LakeStorage

Hook = Callable[[str, str], None]
"""Is called with what is about to happen, and where.

That is `create`, `replace`, `writing`, `write`, `open`, `exists`, `paths` or `delete`.
"""


class _Sink:
    """A file that says before each write what it is about to do."""

    closed = False

    def __init__(self, file: Any, hook: Hook, path: str) -> None:
        self._file, self._hook, self._path = file, hook, path

    def write(self, data: Any) -> int:
        self._hook("write", self._path)
        return int(self._file.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@dataclass(frozen=True)
class Tampered:
    """A folder that calls a hook before each operation; the hook may raise, or do something else first."""

    folder: StorageFolder
    hook: Hook

    @property
    def url(self) -> str:
        return self.folder.url

    @property
    def title(self) -> str:
        return self.folder.title

    @property
    def storage(self) -> str:
        return self.folder.storage

    def is_seen(self) -> bool:
        return self.folder.is_seen()

    def child(self, path: str) -> Tampered:
        return replace(self, folder=self.folder.child(path))

    def folders(self, path: str) -> Sequence[os.stat_result | None]:
        return self.folder.folders(path)

    def exists(self, path: str) -> bool:
        self.hook("exists", path)
        return self.folder.exists(path)

    def missing(self, paths: Sequence[str]) -> list[str]:
        return self.folder.missing(paths)

    def read(self, path: str) -> bytes:
        self.hook("read", path)
        return self.folder.read(path)

    def read_run(self, paths: Iterable[str]) -> Iterator[bytes]:
        return self.folder.read_run(paths)

    def open(self, path: str) -> Any:
        self.hook("open", path)
        return self.folder.open(path)

    def create(self, path: str, data: bytes) -> bool:
        self.hook("create", path)
        return self.folder.create(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self.hook("replace", path)
        self.folder.replace(path, data)

    def write(self, path: str, data: Any) -> None:
        self.hook("writing", path)
        self.hook("write", path)
        self.folder.write(path, data)

    @contextmanager
    def writing(self, path: str) -> Iterator[Any]:
        self.hook("writing", path)
        with self.folder.writing(path) as file:
            yield _Sink(file, self.hook, path)

    def last_created(self, path: str) -> bytes | None:
        return self.folder.last_created(path)

    def paths(self, path: str) -> Iterator[str]:
        self.hook("paths", path)
        return self.folder.paths(path)

    def found(self, path: str = "", after: str = "") -> Iterator[Found]:
        return self.folder.found(path, after)

    def delete(self, path: str) -> None:
        self.hook("delete", path)
        self.folder.delete(path)


@dataclass
class Lake:
    """A folder, and handles to what is in it; each `map` and `list` is a new one, as in another process."""

    path: Path

    def storage(self, hook: Hook | None = None) -> LakeStorage:
        folder: StorageFolder = LocalFolder(str(self.path))
        return LakeStorage(str(self.path), Tampered(folder, hook) if hook else folder, Pickles("trusted"))

    def map(self, hook: Hook | None = None, name: str = "m", **options: Any) -> Any:
        return self.storage(hook).create("map", name, Options(**options))

    def list(self, hook: Hook | None = None, name: str = "l", **options: Any) -> Any:
        return self.storage(hook).create("list", name, Options(**options))

    @staticmethod
    def put(store: Any, **entries: Any) -> Any:
        return store.update(list(entries), lambda old: list(entries.values()))

    @staticmethod
    def content(store: Any) -> dict[Any, Any]:
        return dict(entry for split in store.splits(3) for entry in split.read())

    @staticmethod
    def items(store: Any) -> list[Any]:
        return [item for split in store.splits(3) for item in split.read()]

    @staticmethod
    def files(store: Any) -> set[str]:
        """Return the data files in the folder of a store, live or not."""
        return {path.name for path in Path(store.log.folder.url).glob("*.parquet")}


class Interruption:
    """A hook that runs an action once, before the first operation of some kind on paths with some part."""

    def __init__(self, operation: str, part: str, action: Callable[[], object]) -> None:
        self._wanted, self._action = (operation, part), action
        self.armed = False
        self.seen: list[str] = []

    def __call__(self, operation: str, path: str) -> None:
        self.seen.append(operation)
        if self.armed and operation == self._wanted[0] and self._wanted[1] in path:
            self.armed = False
            self._action()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in a folder that is not there yet."""
    return Lake(tmp_path / "lake")


@pytest.fixture
def interruption() -> type[Interruption]:
    """Make a hook that acts once: `interruption(operation, part_of_path, action)`."""
    return Interruption


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at each call, at files of any age."""
    monkeypatch.setattr(vacuum, "_SHORTEST", -10.0)
    monkeypatch.setattr(vacuum, "_PAUSE", 0.0)
    monkeypatch.setattr(collection_log, "_LOOK_EVERY", 0.0)
