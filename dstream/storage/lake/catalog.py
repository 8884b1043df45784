"""`LakeCatalog`: the names of collections, and the description of each in the metadata of its table.

Every collection ever created has a file `names/<kind>/<name>/<generation>.json`, created once and never changed. The
highest generation counts. The destruction of a collection is stored in its log, so it ends for all handles at the same
moment; the name is free then, for the next generation.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, get_args
from urllib.parse import quote

import pyarrow as pa

from dstream.base.records import record
from dstream.base.validation import NOT_UNDERSTOOD, checked_text, identity
from dstream.delta.actions import LOG
from dstream.delta.checkpoints import delta_field
from dstream.delta.collection_log import CollectionLog
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.filesystem.checksums import is_sealed, seal
from dstream.filesystem.folders import StorageFolder
from dstream.spi.store import Kind, Options
from dstream.storage.base.named_folders import NamedFolder, Trust
from dstream.storage.base.options import Shape, check_format, check_name
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import described_codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.lake.tables import Layout

__all__ = ["CollectionKey", "Description", "LakeCatalog"]


CollectionKey: TypeAlias = tuple[Kind, str, str]
"""The kind, the name and the identity of a collection."""

FORMAT = 2
"""The version of the format of descriptions, logs and rows."""

_SETTINGS = {
    # The log must be complete: a handle that missed versions would mistake a gap for the end.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.checkpointInterval": "500",
}


@record
class Description:
    """The description of a collection, the same from its creation to its end.

    Attributes:
        identity: a UUID; a later collection of the same name has another one.
        kind: `"map"`, `"list"` or `"cache"`.
        name: its name.
        shape: its options but the types.
        types: its initial codec, as JSON; the log contains the current one.
        has_mark: it was created since checksums exist: its folder has had a marker file since before it had a name, and
            all log entries of this library have a checksum.
    """

    identity: str
    kind: Kind
    name: str
    shape: Shape
    types: Any
    has_mark: bool = True

    @property
    def title(self) -> str:
        """The name in errors."""
        return f"{self.kind} {self.name!r}"

    @property
    def place(self) -> CollectionKey:
        """The key of its handles and its log in a process."""
        return self.kind, self.name, self.identity

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partition columns of its table."""
        return ("_v", "_i") if self.kind == "list" else ("_b", "_v")

    def to_json(self) -> dict[str, Any]:
        """Return this description in terms of JSON."""
        return {
            "id": self.identity,
            "format": FORMAT,
            "kind": self.kind,
            "name": self.name,
            "options": self.shape.to_json(),
            "types": self.types,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Description:
        """Return the description that `to_json` wrote down.

        Raises:
            ValueError: it is not a description, as the other errors of `NOT_UNDERSTOOD`.
        """
        kind, name = data["kind"], data["name"]
        if kind not in get_args(Kind):
            raise ValueError("there is no such kind of collection")
        check_name(name)
        shape = Shape.from_json(data["options"], kind)
        return Description(identity(data["id"]), kind, name, shape, data["types"], "path" in data)

    def codec(self, metadata: Mapping[str, Any] | None, options: Options, pickles: Pickles) -> Codec:
        """Return the codec in the log, or the initial codec.

        Raises:
            ValueError: `options` contradict it.
            IllegalStateError: the log does not describe such a collection.
        """
        try:
            types = self.types if metadata is None else self._types_in(metadata["configuration"])
        except NOT_UNDERSTOOD as error:
            raise IllegalStateError(f"{self.title} is damaged: its log describes no {self.kind}: {error}") from error
        return described_codec(types, self.kind, self.name, options, pickles)

    def _types_in(self, configuration: Mapping[str, str]) -> Any:
        if configuration["dstream.kind"] != self.kind:
            raise ValueError(f"it is that of a {configuration['dstream.kind']}")
        check_format(self.title, configuration.get("dstream.format"), str(FORMAT))
        return json.loads(configuration["dstream.types"])

    def layout(self, codec: Codec) -> Layout:
        """Return the columns of its table."""
        return Layout(codec, has_keys=self.kind != "list", journal=bool(self.shape.journal))

    def metadata(self, codec: Codec) -> dict[str, Any]:
        """Return the `metaData` action with the types of values from now on."""
        numbers = [pa.field(name, pa.int32() if name != "_v" else pa.int64()) for name in self.partitions]
        fields = [delta_field(field.name, field.type) for field in [*self.layout(codec).schema, *numbers]]
        return {
            "id": self.identity,
            "name": self.name,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(self.partitions),
            "configuration": {
                "dstream.format": str(FORMAT),
                "dstream.kind": self.kind,
                "dstream.options": json.dumps(self.shape.to_json()),
                "dstream.types": json.dumps(codec.to_json()),
                **_SETTINGS,
            },
            "createdTime": 0,
        }


_LONGEST = 150
_HEAD = b'{"crc32":"'
_MARK = f"{LOG}/_made"
"""The file that is created in the folder of a collection before its name; without it the collection was removed."""
_GENERATION = re.compile(r"names/[^/]+/[^/]+/\d+\.json")


class LakeCatalog:
    """The names of a storage.

    Attributes:
        handles: to the collections that are used in this process, for the storage. One that was destroyed is removed.
    """

    def __init__(self, folder: StorageFolder, trust: Trust) -> None:
        self._folder = folder
        self._trust = trust
        self._names = NamedFolder(folder, folder.title)
        self.handles: dict[CollectionKey, Any] = {}
        self._logs: dict[CollectionKey, CollectionLog] = {}
        self._destroyed: set[CollectionKey] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it for tasks, without the data about collections."""
        return LakeCatalog, (self._folder, self._trust)

    def find(self, kind: Kind, name: str) -> Description | None:
        """Return the collection of a name, None if it does not exist or was destroyed."""
        found = list(self._generations(kind, name))
        if not found or self._is_destroyed(found[-1]):
            return None
        return found[-1]

    def make(self, description: Description) -> Description:
        """Return the collection of a name; if it does not exist, create `description` under a new identity."""
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
            # The mark is written first: a process that dies in between leaves a mark without a name, which is no
            # damage.
            self._names.replace(mark, data)
            if self._names.create(path, data):
                return made
            # Another process was first, and its collection has another mark.
            self._names.delete(mark)
            newest = self._read(path)  # another process has made it, whether a listing contains it or not
        return newest

    def names(self) -> list[tuple[Kind, str]]:
        """Return the kinds and names of all collections that are not destroyed, sorted."""
        found = [self._read(paths[-1]) for paths in self._all_generations() if paths]
        return sorted((entry.kind, entry.name) for entry in found if not self._is_known_to_be_destroyed(entry))

    def _is_known_to_be_destroyed(self, description: Description) -> bool:
        """Return whether a collection was destroyed; one whose log is damaged exists, and fails when opened."""
        try:
            return self._is_destroyed(description)
        except (IllegalStateError, UnsupportedError):
            return False

    def _all_generations(self) -> list[list[str]]:
        folders: dict[str, list[str]] = {}
        for file in self._names.found("names"):
            folders.setdefault(file.path.rpartition("/")[0], []).append(file.path)
        return [_complete(self._names, folder, files) for folder, files in folders.items()]

    def logs(self) -> list[CollectionLog]:
        """Return the logs of all collections that were ever made, also of those that were destroyed."""
        found = []
        for paths in self._all_generations():
            for path in paths:
                description = self._read(path)
                found.append(self.log(description))
                self._is_known_to_be_destroyed(description)  # Then its log is not cached.
        return found

    def predecessors(self, description: Description) -> Iterator[CollectionLog]:
        """Yield the logs of the destroyed collections that had the name of a collection before it."""
        for entry in self._generations(description.kind, description.name):
            log = self.log(entry)
            if entry.identity != description.identity and self._is_destroyed(entry):
                yield log

    def log(self, description: Description) -> CollectionLog:
        """Return the log of a collection, the same one each time until it is destroyed."""
        place = description.place
        log = self._logs.get(place)
        if log is None:
            folder = NamedFolder(self._folder.child(_data(description)), description.title)
            buckets, all_sealed = description.shape.buckets or 1, description.has_mark
            log = CollectionLog(folder, description.title, description.partitions, buckets, all_sealed)
            if place not in self._destroyed:
                # Of two threads that have made one, both get the first: all handles share the lock of the log.
                log = self._logs.setdefault(place, log)
        return log

    def forget_destroyed(self, description: Description) -> None:
        """Release all that is known about a collection that was destroyed, except that it was."""
        place = description.place
        self._destroyed.add(place)
        self._logs.pop(place, None)
        self.handles.pop(place, None)

    def pickles(self, description: Description) -> Pickles:
        """Return which pickles of a collection are loaded, by the users that can now write into its folders."""
        try:
            return self._trust.in_folders(_folder(description.kind, description.name), f"{_data(description)}/{LOG}")
        except OSError as error:
            raise IllegalStateError(f"{description.title} is not read: {error}") from error

    def forget(self) -> None:
        """Release the data about the collections."""
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
            if is_sealed(_HEAD, data):
                # A newer format may have other fields, so its number is compared before they are read.
                check_format(f"the collection {path} of {self._names.title}", content.get("format"), FORMAT)
            description = Description.from_json(content)
            is_its_own = _folder(description.kind, description.name) == path.rpartition("/")[0]
        except NOT_UNDERSTOOD as error:
            raise _damaged(self._names, path, "does not describe a collection") from error
        if is_sealed(_HEAD, data) is False or not is_its_own or content.get("path", path) != path:
            raise _damaged(self._names, path, "is not what was written there")
        check_format(description.title, content.get("format"), FORMAT)
        return description

    def _is_destroyed(self, description: Description) -> bool:
        """Return whether a collection was destroyed; one that has neither a log nor the mark of a new one is lost."""
        if description.place in self._destroyed:
            return True
        log = self.log(description)
        with log.lock:
            is_destroyed = log.is_destroyed()
        if is_destroyed:
            self.forget_destroyed(description)
            return True
        # Without this check a collection whose folder was removed would count as empty.
        if log.version < 0 and description.has_mark and not log.folder.exists(_MARK):
            raise IllegalStateError(
                f"{description.title} is damaged: there is nothing in {log.folder.url}; restore it from a backup"
            )
        return False


def _complete(names: StorageFolder, folder: str, files: Iterable[str]) -> list[str]:
    """Return the generations of a name among files, in order; one that was certainly made must be among them."""
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
        return checked_text(json.loads(data)["path"])
    except NOT_UNDERSTOOD:  # something else than dstream has sealed it
        return ""


def _damaged(names: StorageFolder, path: str, what: str) -> IllegalStateError:
    return IllegalStateError(f"{names.title} is damaged: {names.url}/{path} {what}; restore the file from a backup")


def _folder(kind: Kind, name: str) -> str:
    return f"names/{kind}/{_quoted(name)}"


def _data(description: Description) -> str:
    return f"data/{description.identity}"


def _json(content: dict[str, Any]) -> bytes:
    """Return the bytes that follow the checksum."""
    return b'",' + json.dumps(content).encode().removeprefix(b"{")


def _number(path: str) -> int:
    return int(path.rpartition("/")[2].removesuffix(".json"))


def _quoted(name: str) -> str:
    """Return a name as a folder; different names have different folders, also on case-insensitive file systems."""
    # `quote` leaves the tilde, which separates the digest below, and the dot, which would make `..` of a name.
    quoted = quote(name, safe=" ").replace("~", "%7E").replace(".", "%2E")
    if quoted == quoted.lower() and len(quoted) <= _LONGEST:
        return quoted
    return f"{quoted[:_LONGEST]}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"
