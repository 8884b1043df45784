"""`Registry`: which collections there are, by kind and name.

Every collection that was ever made has a file `names/<kind>/<name>/<generation>.json`, created once and never
changed. The one of the highest generation counts. That a collection was destroyed stands in its own log, so it
ends for all handles at the same moment; the name is free then, for the next generation.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from dstream.errors import IllegalStateError, UnsupportedError
from dstream.spi.store import Kind
from dstream.storage.checking import NOT_UNDERSTOOD, text
from dstream.storage.codec.pickles import Pickles
from dstream.storage.lake.checksums import is_sealed, seal
from dstream.storage.lake.description import Description, Place
from dstream.storage.lake.files import Folder
from dstream.storage.lake.log import Log
from dstream.storage.lake.named_folder import NamedFolder
from dstream.storage.lake.paths import LOG
from dstream.storage.lake.trust import Trust

__all__ = ["Registry"]

_LONGEST = 150
_HEAD = b'{"crc32":"'
_MARK = f"{LOG}/_made"
"""Is in the folder of a collection before its name is. A name without it names what was removed."""
_GENERATION = re.compile(r"names/[^/]+/[^/]+/\d+\.json")


class Registry:
    """The names of a storage.

    Attributes:
        handles: to the collections that are used in this process, for the storage. One that was destroyed is removed.
    """

    def __init__(self, folder: Folder, trust: Trust) -> None:
        self._folder = folder
        self._trust = trust
        self._names = NamedFolder(folder, folder.title)
        self.handles: dict[Place, Any] = {}
        self._logs: dict[Place, Log] = {}
        self._destroyed: set[Place] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it travel to tasks, without what is known of collections."""
        return Registry, (self._folder, self._trust)

    def find(self, kind: Kind, name: str) -> Description | None:
        """Return the collection of a name, None if there is none or it was destroyed."""
        found = list(self._generations(kind, name))
        if not found or self._is_destroyed(found[-1]):
            return None
        return found[-1]

    def make(self, description: Description) -> Description:
        """Return the collection of a name; it is `description`, under a new identity, if there is none."""
        folder = _folder(description.kind, description.name)
        paths = self._generation_paths(folder)
        number = _number(paths[-1]) if paths else 0
        newest = self._read(paths[-1]) if paths else None
        while newest is None or self._is_destroyed(newest):
            number += 1
            made = replace(description, identity=uuid.uuid4().hex)
            path = f"{folder}/{number:08d}.json"
            data = seal(_HEAD, _json({"path": path, **made.to_json()}))
            mark = f"{_data(made)}/{_MARK}"
            self._names.replace(mark, data)
            if self._names.create(path, data):
                return made
            self._names.delete(mark)
            newest = self._read(path)  # another process has made it, whatever a listing says of it
        return newest

    def names(self) -> list[tuple[Kind, str]]:
        """Return the kinds and names of all collections that are not destroyed, sorted."""
        found = [self._read(paths[-1]) for paths in self._all_generations() if paths]
        return sorted((entry.kind, entry.name) for entry in found if not self._is_known_to_be_destroyed(entry))

    def _is_known_to_be_destroyed(self, description: Description) -> bool:
        """Say whether a collection was destroyed; one whose log is damaged is there, and says so when it is opened."""
        try:
            return self._is_destroyed(description)
        except (IllegalStateError, UnsupportedError):
            return False

    def _all_generations(self) -> list[list[str]]:
        folders: dict[str, list[str]] = {}
        for file in self._names.found("names"):
            folders.setdefault(file.path.rpartition("/")[0], []).append(file.path)
        return [_complete(self._names, folder, files) for folder, files in folders.items()]

    def logs(self) -> list[Log]:
        """Return the logs of all collections that were ever made, also of those that were destroyed."""
        found = []
        for paths in self._all_generations():
            for path in paths:
                description = self._read(path)
                found.append(self.log(description))
                self._is_known_to_be_destroyed(description)  # Then its log is not kept.
        return found

    def predecessors(self, description: Description) -> Iterator[Log]:
        """Give the logs of the destroyed collections that had the name of a collection before it."""
        for entry in self._generations(description.kind, description.name):
            log = self.log(entry)
            if entry.identity != description.identity and self._is_destroyed(entry):
                yield log

    def log(self, description: Description) -> Log:
        """Return the log of a collection, the same one each time until it is destroyed."""
        place = description.place
        log = self._logs.get(place)
        if log is None:
            folder = NamedFolder(self._folder.child(_data(description)), description.title)
            buckets, all_sealed = description.shape.buckets or 1, description.has_mark
            log = Log(folder, description.title, description.partitions, buckets, all_sealed)
            if place not in self._destroyed:
                log = self._logs.setdefault(place, log)
        return log

    def forget_destroyed(self, description: Description) -> None:
        """Release all that is known about a collection that was destroyed, except that it was."""
        place = description.place
        self._destroyed.add(place)
        self._logs.pop(place, None)
        self.handles.pop(place, None)

    def pickles(self, description: Description) -> Pickles:
        """Return which pickles of a collection are loaded, by who can write into its folders as they are now."""
        try:
            return self._trust.in_folders(_folder(description.kind, description.name), f"{_data(description)}/{LOG}")
        except OSError as error:
            raise IllegalStateError(f"{description.title} is not read: {error}") from error

    def forget(self) -> None:
        """Release what is known about the collections."""
        self.handles.clear()
        self._logs.clear()
        self._destroyed.clear()

    def _generations(self, kind: Kind, name: str) -> Iterator[Description]:
        for path in self._generation_paths(_folder(kind, name)):
            yield self._read(path)

    def _generation_paths(self, folder: str) -> list[str]:
        return _complete(self._names, folder, [file.path for file in self._names.found(folder)])

    def _read(self, path: str) -> Description:
        data = self._names.read(path)
        try:
            content = json.loads(data)
            description = Description.from_json(content)
            is_its_own = _folder(description.kind, description.name) == path.rpartition("/")[0]
        except NOT_UNDERSTOOD as error:
            raise _damaged(self._names, path, "does not describe a collection") from error
        if is_sealed(_HEAD, data) is False or not is_its_own or content.get("path", path) != path:
            raise _damaged(self._names, path, "is not what was written there")
        return description

    def _is_destroyed(self, description: Description) -> bool:
        """Say whether a collection was destroyed; one that has neither a log nor the mark of a new one is lost."""
        if description.place in self._destroyed:
            return True
        log = self.log(description)
        with log.lock:
            is_destroyed = log.is_destroyed()
        if is_destroyed:
            self.forget_destroyed(description)
            return True
        if log.version < 0 and description.has_mark and not log.folder.exists(_MARK):
            raise IllegalStateError(
                f"{description.title} is damaged: there is nothing in {log.folder.url}; restore it from a backup"
            )
        return False


def _complete(names: Folder, folder: str, files: Iterable[str]) -> list[str]:
    """Return the generations of a name among files, in order; one that is certain to have been made must be there."""
    # Others leave files in folders, such as .DS_Store, or .nfs000... on network drives.
    paths = {path for path in files if _GENERATION.fullmatch(path)}
    data = names.last_created(folder)
    last = _path_in(data) if data is not None and is_sealed(_HEAD, data) else ""
    if _GENERATION.fullmatch(last) and last.startswith(f"{folder}/") and last not in paths:
        if not names.exists(last):
            raise _damaged(names, last, "is missing")
        paths.add(last)
    return sorted(paths)


def _path_in(data: bytes) -> str:
    try:
        return text(json.loads(data)["path"])
    except NOT_UNDERSTOOD:  # something else than dstream has sealed it
        return ""


def _damaged(names: Folder, path: str, what: str) -> IllegalStateError:
    return IllegalStateError(f"{names.title} is damaged: {names.url}/{path} {what}; restore the file from a backup")


def _folder(kind: Kind, name: str) -> str:
    return f"names/{kind}/{_quoted(name)}"


def _data(description: Description) -> str:
    return f"data/{description.identity}"


def _json(content: dict[str, Any]) -> bytes:
    """Return what follows the checksum."""
    return b'",' + json.dumps(content).encode().removeprefix(b"{")


def _number(path: str) -> int:
    return int(path.rpartition("/")[2].removesuffix(".json"))


def _quoted(name: str) -> str:
    """Return a name as a folder; different names give different folders, also where case does not count."""
    quoted = quote(name, safe=" ").replace("~", "%7E").replace(".", "%2E")
    if quoted == quoted.lower() and len(quoted) <= _LONGEST:
        return quoted
    return f"{quoted[:_LONGEST]}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"
