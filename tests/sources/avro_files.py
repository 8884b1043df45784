"""Files of Avro that no writer makes, byte by byte, and how they are read."""

from __future__ import annotations

import json
from typing import Any

from sources import avro_records

SYNC = b"S" * 16


def long(number: int) -> bytes:
    """Encode a number as Avro does."""
    rest, found = number << 1 ^ number >> 63, bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])


def avro(schema: Any, *blocks: tuple[int, bytes], codec: str = "null") -> bytes:
    """Give a file with these blocks, each of a count and of bytes as they are in the file."""
    meta = {
        b"avro.schema": schema if isinstance(schema, bytes) else json.dumps(schema).encode(),
        b"avro.codec": codec.encode(),
    }
    head = b"".join(long(len(part)) + part for entry in meta.items() for part in entry)
    rest = b"".join(long(count) + long(len(data)) + data + SYNC for count, data in blocks)
    return b"Obj\x01" + long(len(meta)) + head + long(0) + SYNC + rest


def past(path: str, **options: Any) -> list[Any]:
    """Read a file, with the number, the error and the text of each bad record in its place."""
    [split] = avro_records(path, **options).splits(1)
    return list(split.read_past(lambda misread: [(misread.record().line, str(misread.problem), misread.record().text)]))
