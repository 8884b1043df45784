"""Files of many formats, and how an error names each."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing

import fastavro
import numpy as np
import pyarrow as pa
from pyarrow import feather, orc, parquet

__all__ = ["FORMATS"]

TABLE = pa.table({"n": [1, 2, 3]})
CONTENT = b"n\n1\n2\n"


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    """Return what is written into a file."""
    write(out := io.BytesIO())
    return out.getvalue()


def database() -> bytes:
    """Return the bytes of a database of SQLite."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (n)")
        return connection.serialize()


def avro(out: io.BytesIO) -> None:
    """Write a file of Avro."""
    fastavro.writer(out, {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}, [{"n": 1}])


def archive(out: io.BytesIO) -> None:
    """Write a zip archive."""
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("a.csv", CONTENT)


def tape(out: io.BytesIO) -> None:
    """Write a tar archive."""
    with tarfile.open(fileobj=out, mode="w") as file:
        file.addfile(tarfile.TarInfo("a.csv"))


def stream_of_arrow(out: io.BytesIO) -> None:
    """Write a stream of Arrow."""
    with pa.ipc.new_stream(out, TABLE.schema) as stream:
        stream.write(TABLE)


FORMATS = {
    "gzip": (gzip.compress(CONTENT), "is gzip.*ends in .gz"),
    "bzip2": (bz2.compress(CONTENT), "is bzip2.*ends in .bz2"),
    "bzip2 of nothing": (bz2.compress(b""), "is bzip2.*ends in .bz2"),
    "xz": (lzma.compress(CONTENT), "is xz.*ends in .xz"),
    "zstd": (pa.compress(CONTENT, "zstd", asbytes=True), "is Zstandard.*ends in .zst"),
    "zip": (written(archive), "is a zip archive .*unpack it"),
    "parquet": (written(lambda out: parquet.write_table(TABLE, out)), "is a Parquet file.*parquet_rows"),
    "avro": (written(avro), "is an Avro file.*avro_records"),
    "arrow": (written(lambda out: feather.write_feather(TABLE, out)), "is an Arrow file.*pyarrow.ipc"),
    "stream of arrow": (written(stream_of_arrow), "is a stream of Arrow.*pyarrow.ipc"),
    "orc": (written(lambda out: orc.write_table(TABLE, out)), "is an ORC file.*pyarrow.orc"),
    "sqlite": (database(), "is a SQLite database.*sql_rows"),
    "tar": (written(tape), "is a tar archive.*tarfile"),
    "gnu tar": (b"a.csv".ljust(257, b"\0") + b"ustar  \0" + bytes(247), "is a tar archive.*tarfile"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4", "is a 7z archive.*unpack it"),
    "rar": (b"Rar!\x1a\7\1\0", "is a RAR archive.*unpack it"),
    "lz4": (pa.compress(CONTENT, "lz4", asbytes=True), "is LZ4.*decompress it"),
    "compress": (b"\x1f\x9d\x90n\x14", "is a file of compress.*decompress it"),
    "xls": (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(24), "is an OLE file .*reader of .xls"),
    "hdf5": (b"\x89HDF\r\n\x1a\n\0", "is an HDF5 file.*h5py"),
    "npy": (written(lambda out: np.save(out, np.arange(3))), "is an array of NumPy.*numpy.load"),
    "utf-16": ("n\n1\n2\n".encode("utf-16"), "begins with the byte order mark of UTF-16.*encoding='utf-16'"),
    "utf-32": ("n\n1\n2\n".encode("utf-32"), "begins with the byte order mark of UTF-32.*encoding='utf-32'"),
    "utf-16-le": ("name\n1\n".encode("utf-16-le"), "looks like UTF-16 without.*encoding='utf-16-le'"),
    "utf-16-be": ("name\n1\n".encode("utf-16-be"), "looks like UTF-16 without.*encoding='utf-16-be'"),
    "utf-32-le": ("n\n1\n2\n".encode("utf-32-le"), "looks like UTF-32 without.*encoding='utf-32-le'"),
    "utf-32-be": ("n\n1\n2\n".encode("utf-32-be"), "looks like UTF-32 without.*encoding='utf-32-be'"),
}
"""Their first bytes at least, and the words of the error of a source of text."""
