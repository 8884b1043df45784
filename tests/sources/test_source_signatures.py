"""A file of another format than the one that is read is known by its first bytes, and the error says how to read it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, orc, parquet

from dstream.errors import SourceError
from sources import avro_records, csv_rows, json_lines, parquet_rows, text_files

TABLE = pa.table({"n": [1, 2, 3]})
CONTENT = b"n\n1\n2\n"


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    """Return what is written into a file."""
    write(out := io.BytesIO())
    return out.getvalue()


def database() -> bytes:
    """Return the bytes of a database of SQLite."""
    connection = sqlite3.connect(":memory:")
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
each_format = pytest.mark.parametrize("format", FORMATS)


@each_format
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("make", [text_files, csv_rows, json_lines])
def test_a_source_of_text_names_the_format(tmp_path, read, format, make, encoding):
    """Also where every byte is a character of the encoding, and bad lines are left out."""
    data, words = FORMATS[format]
    (tmp_path / "data.csv").write_bytes(data)

    with pytest.raises(SourceError, match=f"data.csv {words}"):
        read(make(tmp_path / "data.csv", encoding=encoding, on_bad="skip"))


@each_format
@pytest.mark.parametrize("make", [parquet_rows, avro_records])
def test_a_source_of_a_binary_format_names_another_one(tmp_path, read, format, make):
    """Its own is read, and text is none of them; compressed files of Parquet are decompressed by nobody."""
    data, words = FORMATS[format]
    (tmp_path / "data").write_bytes(data)
    if format in ("parquet", "avro") and format in make.__name__:
        assert len(read(make(tmp_path / "data"))) in (1, 3)
        return

    words = "" if format.startswith("utf") else words.partition(".*")[0]
    with pytest.raises(SourceError, match=f"data.*{words}"):
        read(make(tmp_path / "data"))


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst", ".ZSTD"])
@each_format
def test_a_name_of_a_compressed_file_is_compared_with_the_content(tmp_path, read, format, ending):
    """A file that is compressed otherwise, or is of another format, is misnamed."""
    data, words = FORMATS[format]
    (tmp_path / f"a{ending}").write_bytes(data)
    if ending.lower()[:4] in words:
        assert read(text_files(tmp_path)) in (["n", "1", "2"], [])
        return

    what = "cannot read" if format.startswith("utf") else f"a{ending} {words.partition('.*')[0]}.*its name ends in "
    with pytest.raises(SourceError, match=what):
        read(text_files(tmp_path))


@each_format
def test_what_a_compressed_file_holds_is_looked_at(tmp_path, read, format):
    """Another format within it, or the same once more."""
    data, words = FORMATS[format]
    (tmp_path / "a.gz").write_bytes(gzip.compress(data))
    words = words if format.startswith("utf") else words.partition(".*")[0].replace("is ", "holds ", 1)

    with pytest.raises(SourceError, match=f"a.gz {words}"):
        read(text_files(tmp_path))


@each_format
def test_a_task_that_reads_another_part_of_the_file_names_the_format(tmp_path, tiny_splits, format):
    """Where its bytes are not in the encoding."""
    data, words = FORMATS[format]
    (tmp_path / "a").write_bytes(data[:600] + b"\n\xff" * 20)
    last = text_files(tmp_path).splits(10)[-1]

    with pytest.raises(SourceError, match=f"a {words}"):
        list(last.read())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", ["имя,год", "όνομα έτος", "שם שנה", "اسم سنة", "नाम वर्ष", "ชื่อ ปี", "Ābols ķ", "năm tuổi", "Σίγμα “1”"]
)
def test_utf_16_of_other_letters_is_known(tmp_path, read, text, encoding):
    """In Cyrillic and the like, bytes of UTF-16 are characters of UTF-8, too."""
    (tmp_path / "a.txt").write_text(f"{text}\n" * 90, encoding)

    for other in ("utf-8", "latin-1"):
        with pytest.raises(SourceError, match=f"a.txt looks like UTF-16 without.*encoding='{encoding}'"):
            read(text_files(tmp_path, encoding=other))
    assert read(text_files(tmp_path, encoding=encoding)) == [text] * 90


@pytest.mark.parametrize(
    "text",
    [
        *["PAR1,PAR2", "ORC", "PK", "BZh91", "Obj", "SQLite format 3", "ARROW1", "(µ/", "þ", "7z", "Rar!"],
        *[
            "a\0b",
            "a\0b\1c" * 9,
            "name\0value\0" * 9,
            "\0" * 600 + "a",
            "ab\0\0" * 9,
            "\x93NUMPY",
            "x" * 257 + "ustar  ",
        ],
    ],
)
def test_a_text_that_begins_alike_is_a_text(tmp_path, read, text):
    """Letters alone make no format."""
    (tmp_path / "a.txt").write_text(text, encoding="latin-1")

    assert read(text_files(tmp_path, encoding="latin-1")) == [text]


@pytest.mark.parametrize(
    ("data", "encoding", "advice"),
    [
        (b"\x8aimon", "utf-8", "for example encoding='cp1252'"),
        (b"caf\xe9", "utf-8", "for example encoding='cp1252'"),
        (b"caf\xe9", "ascii", "for example encoding='cp1252'"),
        ("é".encode(), "ascii", "for example encoding='utf-8'"),
        ("Ý".encode(), "cp1252", "for example encoding='utf-8'"),
        (b"\x81ber", "utf-8", "encoding='cp850' is that of DOS"),
        ("éàü".encode() + b"\n\xe9", "utf-8", "bytes of another encoding are in this file"),
    ],
)
def test_the_encoding_that_is_advised_takes_the_bytes(tmp_path, read, data, encoding, advice):
    """Latin-1 would take all, and make control characters of the letters of Windows."""
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(SourceError, match=advice):
        read(text_files(tmp_path, encoding=encoding))


@pytest.mark.parametrize("data", [b"\1\0\0\2\xff\xfe\xe9", b"a\0b\ncaf\xe9"])
def test_no_encoding_is_advised_where_the_first_bytes_hold_nuls(tmp_path, read, data):
    """Another one would take what is no text."""
    (tmp_path / "a.bin").write_bytes(data)

    with pytest.raises(SourceError, match="Its first bytes hold NULs") as caught:
        read(text_files(tmp_path))
    assert "encoding=" not in str(caught.value)
