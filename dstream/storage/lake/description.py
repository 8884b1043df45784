"""How a collection describes itself: in the metadata of its Delta table and in the registry of names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import pyarrow as pa

from dstream.errors import IllegalStateError
from dstream.spi.store import Kind, Options
from dstream.storage.checking import NOT_UNDERSTOOD, identity
from dstream.storage.codec.codec import Codec
from dstream.storage.codec.described_codec import described_codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.lake.lake_tables import Layout
from dstream.storage.shape import Shape, check_name
from dstream.values.delta_format import delta_field

__all__ = ["Description", "Place"]

Place: TypeAlias = tuple[Kind, str, str]
"""The kind, the name and the identity of a collection."""

_SETTINGS = {
    # The log must stay whole: a handle that missed versions would take the first gap for the end.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.checkpointInterval": "500",
}


@dataclass(frozen=True, slots=True)
class Description:
    """What a collection is, from its creation to its end.

    Attributes:
        identity: a UUID; a collection of the same name that is made later has another one.
        kind: `"map"`, `"list"` or `"cache"`.
        name: its name.
        shape: its options but the types.
        types: what its codec was when it was made, as JSON; the log knows it better.
        has_mark: it was made since there are checksums: there is a file in its folder since before it had a name, and
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
        """What errors call it."""
        return f"{self.kind} {self.name!r}"

    @property
    def place(self) -> Place:
        """By what its handles and its log are found in a process."""
        return self.kind, self.name, self.identity

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partition columns of its table."""
        return ("_v", "_i") if self.kind == "list" else ("_b", "_v")

    def to_json(self) -> dict[str, Any]:
        """Return this description in terms of JSON."""
        return {
            "id": self.identity,
            "kind": self.kind,
            "name": self.name,
            "options": self.shape.to_json(),
            "types": self.types,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Description:
        """Return the description that `to_json` wrote down.

        Raises:
            ValueError: it is none; so say other errors of `NOT_UNDERSTOOD`.
        """
        kind, name = data["kind"], data["name"]
        if kind not in get_args(Kind):
            raise ValueError("there is no such kind of collection")
        check_name(name)
        shape = Shape.from_json(data["options"], kind)
        return Description(identity(data["id"]), kind, name, shape, data["types"], "path" in data)

    def codec(self, metadata: Mapping[str, Any] | None, options: Options, pickles: Pickles) -> Codec:
        """Return the codec that the log names, or the one of the creation.

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
        return json.loads(configuration["dstream.types"])

    def layout(self, codec: Codec) -> Layout:
        """Return the columns of its table."""
        return Layout(codec, has_keys=self.kind != "list", journal=bool(self.shape.journal))

    def metadata(self, codec: Codec) -> dict[str, Any]:
        """Return the `metaData` action that says what is stored from now on."""
        numbers = [pa.field(name, pa.int32() if name != "_v" else pa.int64()) for name in self.partitions]
        fields = [delta_field(field.name, field.type) for field in [*self.layout(codec).schema, *numbers]]
        return {
            "id": self.identity,
            "name": self.name,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(self.partitions),
            "configuration": {
                "dstream.kind": self.kind,
                "dstream.options": json.dumps(self.shape.to_json()),
                "dstream.types": json.dumps(codec.to_json()),
                **_SETTINGS,
            },
            "createdTime": 0,
        }
