"""Blocks of Avro files, decompressed within a memory bound."""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from dstream.filesystem.access import XZ_MEMORY
from dstream.schema.avro import MOST_DEPTH, is_nested_deeply

__all__ = ["Block", "Header", "blocks", "header"]


_SYNC = 16
_STEP = 1 << 20
_LARGEST_HEADER = 16 << 20
"""Bytes of the keys and values of a header, the schema among them."""
_PART = 64
"""Bytes that each of these counts more, so that a header has no millions of empty ones."""


class Header(NamedTuple):
    """The beginning of a file.

    Attributes:
        schema: the schema of its records, as JSON in bytes.
        codec: the compression of its blocks.
        sync: the bytes after each block.
    """

    schema: bytes
    codec: str
    sync: bytes


@dataclass(frozen=True, slots=True)
class Block:
    """Records of a file that are stored together.

    Attributes:
        count: how many.
        size: of their bytes in the file.
        data: their bytes, decompressed; None if these are more than the limit.
    """

    count: int
    size: int
    data: bytes | None


def header(stream: IO[bytes]) -> Header:
    """Read the header of a file.

    Raises:
        EOFError: it ends too early.
        ValueError: it is no Avro, or its schema is nested too deeply.
    """
    if (magic := stream.read(4)) != b"Obj\x01":
        raise (ValueError if magic else EOFError)(f"a file of Avro begins with b'Obj\\x01', this one with {magic!r}")
    meta: dict[bytes, bytes] = {}
    most = _LARGEST_HEADER
    while count := _long(stream):
        if count < 0:  # The size of these entries follows their number.
            count, _ = -count, _long(stream)
        for _ in range(count):
            key, most = _of_header(stream, most)
            meta[key], most = _of_header(stream, most)
    schema = meta.get(b"avro.schema", b"")
    if _is_nested_deeply(schema):
        raise ValueError(f"its schema is nested deeper than the {MOST_DEPTH} levels that are read")
    return Header(schema, meta.get(b"avro.codec", b"null").decode(), _exactly(stream, _SYNC))


def blocks(stream: IO[bytes], head: Header, most: int) -> Iterator[Block]:
    """Yield the blocks after the header; the sync marker of each is checked when the next one is requested.

    Args:
        stream: the file, after its header.
        head: its header.
        most: the limit of the bytes of a block, compressed or not.

    Raises:
        EOFError: the file ends within a block.
        ValueError: the next bytes are no block, or its codec is not supported.
    """
    decompressed = _CODECS.get(head.codec)
    if decompressed is None:
        raise ValueError(f"the codec {head.codec} is none that is read: {', '.join(_CODECS)}")
    while first := stream.read(1):
        count, size = _long(stream, first), _long(stream)
        # Numbers have a sign in Avro, and a damaged one would read backwards.
        if count < 0 or size < 0:
            raise ValueError(f"a block of {count} records in {size} bytes")
        if size > most + (most >> 3) + 1024:  # What does not compress becomes somewhat longer.
            data = None
            _skip(stream, size)
        else:
            data = decompressed(_exactly(stream, size), most)
        yield Block(count, size, data)
        del data
        # Behind the records: those of a whole block are emitted before the damage that follows it is reported.
        if _exactly(stream, _SYNC) != head.sync:
            raise ValueError("expected sync marker not found")


def _long(stream: IO[bytes], first: bytes = b"") -> int:
    found, shift = 0, 0
    while True:
        [byte] = first or _exactly(stream, 1)
        found, shift, first = found | (byte & 0x7F) << shift, shift + 7, b""
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1)
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _is_nested_deeply(schema: bytes) -> bool:
    try:
        return is_nested_deeply(json.loads(schema))
    except RecursionError:
        return True
    except ValueError:  # It is no JSON, which is an error when it is parsed.
        return False


def _of_header(stream: IO[bytes], most: int) -> tuple[bytes, int]:
    """Read a key or a value, and return it and how many bytes others may have."""
    size = _long(stream)
    if not 0 <= size <= most:
        raise ValueError(
            f"its header has a part of {size:,} bytes, and up to {_LARGEST_HEADER:,} are read, {_PART} for each part"
        )
    return _exactly(stream, size), most - size - _PART


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError(f"{size:,} bytes expected, {len(data):,} are there")
    return data


def _skip(stream: IO[bytes], size: int) -> None:
    while size:
        size -= len(_exactly(stream, min(size, _STEP)))


def _as_it_is(data: bytes, most: int) -> bytes | None:
    return data if len(data) <= most else None


def _deflated(data: bytes, most: int) -> bytes | None:
    decompressor = zlib.decompressobj(-15)  # A window of 32 KiB, without a header.
    found = _of_decompressor(decompressor, data, most)
    # The package avro and fastavro (1.13) leave three bytes of zlib's checksum behind the stream.
    rest = decompressor.unused_data
    if rest and found is not None and not zlib.adler32(found).to_bytes(4, "big").startswith(rest):
        raise _left_over(rest)
    return found


def _bzip2(data: bytes, most: int) -> bytes | None:
    return _of_last_member(bz2.BZ2Decompressor(), data, most)


def _xz(data: bytes, most: int) -> bytes | None:
    # The header of an xz stream sets the size of the decoder's dictionary, which may be gigabytes.
    return _of_last_member(lzma.LZMADecompressor(memlimit=XZ_MEMORY), data, most)


def _of_decompressor(decompressor: Any, data: bytes, most: int) -> bytes | None:
    """Return the bytes, or None if they are more than the limit.

    Raises:
        EOFError: the compressed bytes end too early.
    """
    # One byte more distinguishes a block of exactly the limit from a larger one.
    found: bytes = decompressor.decompress(data, most + 1)
    if len(found) > most:
        return None
    if not decompressor.eof:
        raise EOFError("the compressed bytes of a block end too early")
    return found


def _of_last_member(decompressor: Any, data: bytes, most: int) -> bytes | None:
    found = _of_decompressor(decompressor, data, most)
    if decompressor.unused_data:
        raise _left_over(decompressor.unused_data)
    return found


def _left_over(rest: bytes) -> ValueError:
    return ValueError(f"a block has bytes behind its compressed ones: {len(rest):,} are left over")


def _zstandard(data: bytes, most: int) -> bytes | None:
    import pyarrow

    # As a stream: the size that a frame contains may be wrong.
    with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd") as stream:
        found = bytes(stream.read(most + 1))
    return found if len(found) <= most else None


def _snappy(data: bytes, most: int) -> bytes | None:
    import pyarrow

    size, shift = 0, 0
    for byte in data[:5]:  # The number of decompressed bytes is first.
        size, shift = size | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            break
    if size > most:
        return None
    found: bytes = pyarrow.Codec("snappy").decompress(data[:-4], size, asbytes=True)
    # Avro appends the checksum of the decompressed bytes to each block of Snappy.
    if zlib.crc32(found) != int.from_bytes(data[-4:], "big"):
        raise ValueError("the checksum of a block does not match its bytes")
    return found


def _lz4(data: bytes, most: int) -> bytes | None:
    import pyarrow

    # fastavro writes blocks by the package lz4, which puts the decompressed size in front.
    size = int.from_bytes(data[:4], "little")
    if size > most:
        return None
    return bytes(pyarrow.Codec("lz4_raw").decompress(data[4:], size, asbytes=True))


_CODECS: dict[str, Callable[[bytes, int], bytes | None]] = {
    "null": _as_it_is,
    "deflate": _deflated,
    "bzip2": _bzip2,
    "xz": _xz,
    "snappy": _snappy,
    "zstandard": _zstandard,
    "lz4": _lz4,
}
