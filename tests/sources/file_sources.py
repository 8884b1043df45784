"""The table of file sources: files of each that are whole, torn, hostile, or hold what Python has not."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

import sources
from tests.sources.avro_files import avro, long

__all__ = ["AVRO_CODECS", "ENDINGS", "FILE_SOURCES", "OTHER_SOURCES", "FileSource", "Numbered", "raw_deflate"]


class Numbered(NamedTuple):
    """An item of one number."""

    n: int


@dataclass(frozen=True)
class FileSource:
    """A source of files, and what it reads.

    Attributes:
        make: makes the source of a path.
        good: a file of three items.
        items: these.
        torn: files that end too early, or hold something behind their end, and the words of the error.
        packed: of each compression a function that makes the name and the bytes of a file whose second record has some
            bytes.
        bomb: the words of the error of a large record; None if it is read a part at a time.
        bad: a file whose second record holds a value that Python has not, and the words of the error; None if records
            are not looked into.
        deep: a file with a record that is nested deeply, and the words of the error; None where nothing is nested.
        empty: the items of a file of no bytes, or the words of the error.
        formats: names of those that it reads, or takes as they are.
        records: arguments of the source by which records become something.
        has_links: it takes a glob with `**`.
        skips: it has `on_bad=`.
    """

    make: Callable[..., Any]
    good: bytes
    items: list[Any]
    torn: dict[bytes, str]
    packed: dict[str, Callable[[int], tuple[str, bytes]]]
    bomb: str | None
    bad: tuple[bytes, str] | None
    deep: tuple[bytes, str] | None
    empty: list[Any] | str
    formats: str = "none"
    records: dict[str, Any] = field(default_factory=dict)
    has_links: bool = True
    skips: bool = True


def raw_deflate(data: bytes) -> bytes:
    """Compress without the header of zlib and its checksum."""
    return zlib.compress(data)[2:-4]


def snappy(data: bytes) -> bytes:
    """Compress as Avro does, with a checksum behind it."""
    compressed: bytes = pa.Codec("snappy").compress(data, asbytes=True)
    return compressed + zlib.crc32(data).to_bytes(4, "big")


ENDINGS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": functools.partial(lzma.compress, preset=0),  # Others have a large window, which counts as memory.
    ".zst": zstandard.compress,
    ".zstd": zstandard.compress,
}
"""What compresses a whole file, by the end of its name."""
AVRO_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": raw_deflate,
    "bzip2": bz2.compress,
    "xz": functools.partial(lzma.compress, preset=0),
    "zstandard": zstandard.compress,
    "snappy": snappy,
    "lz4": lambda data: len(data).to_bytes(4, "little") + pa.Codec("lz4_raw").compress(data, asbytes=True),
}
INT: dict[str, Any] = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
DAY: dict[str, Any] = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "n", "type": {"type": "int", "logicalType": "date"}}],
}
TREE: dict[str, Any] = {"type": "record", "name": "T", "fields": [{"name": "n", "type": ["null", "T"]}]}


def parquet(column: Any, **options: Any) -> bytes:
    """Return a file of one column."""
    pq.write_table(pa.table({"n": column}), out := io.BytesIO(), **options)
    return out.getvalue()


def nested(levels: int) -> Any:
    """Return a column of structs within one another."""
    column: Any = pa.array([1])
    for _ in range(levels):
        column = pa.StructArray.from_arrays([column], ["n"])
    return column


def _lines(first: str, start: str, end: str) -> dict[str, Callable[[int], tuple[str, bytes]]]:
    """Return how a file of three lines is compressed, of which the second has some bytes."""

    def packed(ending: str) -> Callable[[int], tuple[str, bytes]]:
        rest = f"{end}\n{first}\n".encode()
        return lambda size: (
            f"a{ending}",
            ENDINGS[ending](f"{first}\n{start}".encode() + b"1" * size + rest),
        )

    return {ending: packed(ending) for ending in ENDINGS}


def _block(codec: str) -> Callable[[int], tuple[str, bytes]]:
    def written(size: int) -> tuple[str, bytes]:
        small, large = (AVRO_CODECS[codec](long(each) + bytes(each)) for each in (1, size))
        return "a", avro("bytes", (1, small), (1, large), (1, small), codec=codec)

    return written


def _dictionary(codec: str) -> Callable[[int], tuple[str, bytes]]:
    def written(size: int) -> tuple[str, bytes]:
        column = pa.DictionaryArray.from_arrays([1, *[0] * 80, 1], ["1" * (size // 80), "1"])
        return "a", parquet(column, compression=codec, store_schema=False)

    return written


def _watched(path: Any, **options: Any) -> Any:
    return sources.watch_files(path, format="json", **options)


_GOOD = avro(INT, (3, b"\2\4\6"))
_DEEP = "[" * 200_000
_CSV = f'n\n1\n"{"x" * 30}'

FILE_SOURCES: dict[str, FileSource] = {
    "text_files": FileSource(
        sources.text_files,
        good=b"1\n2\n3\n",
        items=["1", "2", "3"],
        torn={"1\né".encode()[:-1]: "line 2.* is not utf-8"},
        packed=_lines("1", "", ""),
        bomb=r"line 2 has more than max_record=300,000 bytes",
        bad=(b"1\n\xff\n3\n", "line 2, byte 2: .* is not utf-8"),
        deep=None,
        empty=[],
    ),
    "csv_rows": FileSource(
        sources.csv_rows,
        good=b"n\n1\n2\n3\n",
        items=[{"n": "1"}, {"n": "2"}, {"n": "3"}],
        torn={b'n\n1\n"2\n': "line 3.* a quote is never closed"},
        packed=_lines("1", "", ""),
        bomb=r"line 2 has more than max_record=300,000 bytes",
        bad=(b"n\n1\n2.5\n3\n", "line 3: column n: expected an int such as 12, got '2.5'"),
        deep=None,
        empty=[],
        records={"kind": Numbered},
    ),
    "json_lines": FileSource(
        sources.json_lines,
        good=b"1\n2\n3\n",
        items=[1, 2, 3],
        torn={b'1\n{"n": 2': "line 2 is not JSON"},
        packed=_lines("1", '"', '"'),
        bomb=r"line 2 has more than max_record=300,000 bytes",
        bad=(b'{"n": 1}\n{"n": "x"}\n{"n": 3}\n', "line 2: field n: expected int, got str 'x'"),
        deep=(f"1\n{_DEEP}\n3\n".encode(), "line 2 is nested too deeply"),
        empty=[],
        records={"kind": Numbered},
    ),
    "parquet_rows": FileSource(
        sources.parquet_rows,
        good=parquet([1, 2, 3]),
        items=[{"n": 1}, {"n": 2}, {"n": 3}],
        torn={parquet([1])[:-1]: "footer", parquet([1]) + b"\0": "footer"},
        packed={codec: _dictionary(codec) for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd")},
        bomb=None,
        bad=(parquet(pa.array([0, 1 << 22, 1], pa.date32())), r"row 2: column n: .* 13453-08-13"),
        deep=(parquet(nested(110), store_schema=False), "too deeply nested"),
        empty="cannot read .*Parquet",
        formats="a Parquet file",
    ),
    "avro_records": FileSource(
        sources.avro_records,
        good=_GOOD,
        items=[{"n": 1}, {"n": 2}, {"n": 3}],
        torn={_GOOD[:-1]: "behind record 3", _GOOD + b"\2": "behind record 3", avro(INT, (1, b"\2\4")): "left over"},
        packed={codec: _block(codec) for codec in AVRO_CODECS},
        bomb=r"record 2 is in a block of more than max_record=300,000 bytes",
        bad=(avro(DAY, (3, b"\2" + long(1 << 22) + b"\4")), "record 2: field n: 4194304 is no value of Python"),
        deep=(avro(TREE, (3, b"\0" + b"\2" * 5_000 + b"\0\0")), "record 2 is nested deeper than 200 levels"),
        empty="cannot read .*torn: .* record 0",
        formats="an Avro file",
    ),
    "files": FileSource(
        sources.files,
        good=b"1\n2\n3\n",
        items=[b"1\n2\n3\n"],
        torn={},
        packed=_lines("1", "", ""),
        bomb=None,
        bad=None,
        deep=None,
        empty=[b""],
        formats="all",
        skips=False,
    ),
    "watch_files": FileSource(
        _watched,
        good=b"1\n2\n3\n",
        items=[1, 2, 3],
        torn={},
        packed={},
        bomb=None,
        bad=(b"1\n\xff\n3\n", "line 2.* is not utf-8"),
        deep=(f"1\n{_DEEP}\n3\n".encode(), "line 2 .* is nested too deeply"),
        empty=[],
        has_links=False,
        skips=False,
    ),
}
OTHER_SOURCES = frozenset(
    {
        *("from_processor", "icache", "icache_journal", "ilist", "imap", "imap_journal", "item_stream", "items"),
        *("kafka", "long_stream", "socket_lines", "source_from", "sql_changes", "sql_rows", "stream_from_processor"),
        *("stream_of", "stream_source_from"),
    }
)
"""Sources of anything but files."""
