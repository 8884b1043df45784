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
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from dstream.errors import IllegalStateError
from dstream.spi.store import Kind
from dstream.storage.lake.description import Description
from dstream.storage.lake.files import Folder
from dstream.storage.lake.log import Log
from dstream.storage.lake.named_folder import NamedFolder

__all__ = ["Registry"]

_LONGEST = 150
_GENERATION = re.compile(r"names/[^/]+/[^/]+/\d+\.json")


class Registry:
    """The names of a storage."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._names = NamedFolder(folder, folder.title)
        self._logs: dict[str, Log] = {}

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
            if self._names.create(path, json.dumps(made.to_json()).encode()):
                return made
            newest = self._read(path)  # another process has made it, whatever a listing says of it
        return newest

    def names(self) -> list[tuple[Kind, str]]:
        """Return the kinds and names of all collections that are not destroyed, sorted."""
        newest: dict[str, str] = {}
        for path in self._files("names"):
            folder = path.rpartition("/")[0]
            newest[folder] = max(newest.get(folder, ""), path)
        found = [self._read(path) for path in newest.values()]
        return sorted((entry.kind, entry.name) for entry in found if not self._is_destroyed(entry))

    def predecessors(self, description: Description) -> Iterator[Log]:
        """Give the logs of the destroyed collections that had the name of a collection before it."""
        for entry in self._generations(description.kind, description.name):
            if entry.identity != description.identity and self._is_destroyed(entry):
                yield self.log(entry)

    def log(self, description: Description) -> Log:
        """Return the log of a collection, the same one each time."""
        log = self._logs.get(description.identity)
        if log is None:
            folder = NamedFolder(self._folder.child(f"data/{description.identity}"), description.title)
            log = self._logs.setdefault(description.identity, Log(folder, description.title, description.partitions))
        return log

    def forget(self) -> None:
        """Release what is known about the collections."""
        self._logs.clear()

    def _generations(self, kind: Kind, name: str) -> Iterator[Description]:
        for path in self._generation_paths(_folder(kind, name)):
            yield self._read(path)

    def _generation_paths(self, folder: str) -> list[str]:
        return sorted(self._files(folder))

    def _files(self, path: str) -> list[str]:
        # Others leave files in folders, such as .DS_Store, or .nfs000... on network drives.
        return [file.path for file in self._names.found(path) if _GENERATION.fullmatch(file.path)]

    def _read(self, path: str) -> Description:
        data = self._names.read(path)
        try:
            return Description.from_json(json.loads(data))
        except (ValueError, LookupError, TypeError) as error:
            raise IllegalStateError(
                f"{self._names.title} is damaged: {self._names.url}/{path} does not describe a collection"
            ) from error

    def _is_destroyed(self, description: Description) -> bool:
        log = self.log(description)
        with log.lock:
            return log.is_destroyed()


def _folder(kind: Kind, name: str) -> str:
    return f"names/{kind}/{_quoted(name)}"


def _number(path: str) -> int:
    return int(path.rpartition("/")[2].removesuffix(".json"))


def _quoted(name: str) -> str:
    """Return a name as a folder; different names give different folders, also where case does not count."""
    quoted = quote(name, safe=" ").replace("~", "%7E").replace(".", "%2E")
    if quoted == quoted.lower() and len(quoted) <= _LONGEST:
        return quoted
    return f"{quoted[:_LONGEST]}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"
