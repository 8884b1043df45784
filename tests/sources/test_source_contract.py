"""Sources of files meet one contract: each of them against each kind of file that is torn, hostile or odd."""

from __future__ import annotations

import inspect
import os
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sources
from dstream.connectors.files.lines import splits_at_newlines
from dstream.errors import SourceError
from dstream.spi import StreamSource
from reducers import to_ilist
from tests.sources.file_formats import FORMATS
from tests.sources.file_sources import FILE_SOURCES, OTHER_SOURCES, FileSource


def sources_with(has: Callable[[FileSource], object]) -> Any:
    """Return the mark of a test that takes the sources of which something is true."""
    return pytest.mark.parametrize("name", [name for name, source in FILE_SOURCES.items() if has(source)])


each_source = sources_with(lambda source: True)


def items_of(source: Any) -> list[Any]:
    """Read a source as one task; of pairs of a path and the content that content."""
    if isinstance(source, StreamSource):
        begin = source.begin()
        reached = source.reach(begin)
        splits: list[Any] = [source.split(each, begin[each], reached[each]) for each in reached]
    else:
        splits = list(source.splits(1))
    return [item[1] if type(item) is tuple else item for split in splits for item in split.read()]


def past(source: Any) -> list[Any]:
    """Read a source past bad records, with the file and the number of each in its place."""
    [split] = source.splits(1)
    return list(split.read_past(lambda bad: [(Path(bad.record().path).name, bad.record().line)]))


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file into a folder of its own and return the folder."""

    def written(content: bytes, name: str = "a") -> Path:
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_bytes(content)
        return tmp_path / "in"

    return written


def test_every_source_of_files_is_in_the_table():
    """A new one is not tested before it has a row, or is listed among the sources of something else."""
    factories = {name for name in sources.__all__ if name[0].islower()}
    takes_paths = {
        name for name in factories if {"paths", "folder"} & inspect.signature(getattr(sources, name)).parameters.keys()
    }

    assert {*FILE_SOURCES} | OTHER_SOURCES == factories
    assert {*FILE_SOURCES} == takes_paths
    assert {name for name in takes_paths if "on_bad" in inspect.signature(getattr(sources, name)).parameters} == {
        name for name, source in FILE_SOURCES.items() if source.skips
    }


@each_source
def test_a_file_is_read_again_and_again(write, name):
    """What the rest of the contract changes."""
    source = FILE_SOURCES[name].make(write(FILE_SOURCES[name].good))

    assert items_of(source) == items_of(source) == FILE_SOURCES[name].items


@sources_with(lambda source: source.torn)
def test_a_torn_file_is_an_error(write, name):
    """It ends too early, or bytes are left over behind its end."""
    for content, words in FILE_SOURCES[name].torn.items():
        with pytest.raises(SourceError, match=f"{os.sep}a.*{words}"):
            items_of(FILE_SOURCES[name].make(write(content)))


PACKED = [(name, how) for name, source in FILE_SOURCES.items() for how in source.packed]
each_compression = pytest.mark.parametrize(("name", "how"), PACKED, ids=map("-".join, PACKED))


@each_compression
def test_compressed_bytes_that_are_torn_are_an_error(write, name, how):
    """They end too early, or something is behind them."""
    file, content = FILE_SOURCES[name].packed[how](1_000)
    assert len(items_of(FILE_SOURCES[name].make(write(content, file)))) > 0

    for torn in content[:-5], content[: len(content) // 2], content + b"behind":
        with pytest.raises(SourceError, match=f"cannot read .*{os.sep}{re.escape(file)}: "):
            items_of(FILE_SOURCES[name].make(write(torn, file)))


@each_compression
def test_a_bomb_costs_a_bounded_amount(write, monkeypatch, name, how):
    """A record of 8 MB out of a small file: an error that names the file and the limit, or one part after another."""
    for module in ("open_parquet", "parquet"):
        monkeypatch.setattr(f"dstream.connectors.files.{module}.DECODED_BYTES", 1_000_000)
    row = FILE_SOURCES[name]
    file, small = row.packed[how](1)
    last = items_of(row.make(write(small, file)))[-1]
    splits_at_newlines("utf-8")  # What is found out or imported once counts as memory, too.
    content = row.packed[how](8_000_000)[1]
    options: dict[str, Any] = {"max_record": 300_000} if row.bomb else {}
    options |= {"read": lambda path, stream: [len(stream.read(9))]} if name == "files" else {}
    source, before, most = row.make(write(content, file), **options), pa.total_allocated_bytes(), 0
    tracemalloc.start()
    try:
        if row.bomb:
            with pytest.raises(SourceError, match=f"{os.sep}{re.escape(file)}, {row.bomb}"):
                items_of(source)
        else:
            for item in source.splits(1)[0].read():
                most = max(most, pa.total_allocated_bytes() - before)
                del item
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert most < 5_000_000
    if row.bomb:
        assert past(source)[-2:] == [(file, 2), last]


@sources_with(lambda source: source.deep)
def test_deep_nesting_is_an_error(write, name):
    """Of a record if the format has records of its own depth: those around it are read."""
    row = FILE_SOURCES[name]
    assert row.deep is not None
    content, words = row.deep
    source = row.make(write(content))

    with pytest.raises(SourceError, match=f"{os.sep}a.*{words}") as caught:
        items_of(source)
    if row.skips and not str(caught.value).startswith("cannot read"):
        assert [item for item in past(source) if type(item) is tuple] == [("a", 2)]
        assert len(past(source)) == 3


@sources_with(lambda source: source.bad)
def test_a_value_that_python_has_not_is_a_bad_record(write, name, local_context):
    """It is named with its file and its number, and `on_bad=` and `into=` go past it."""
    row = FILE_SOURCES[name]
    assert row.bad is not None
    folder = write(row.bad[0])
    with pytest.raises(SourceError, match=f"{os.sep}a, {row.bad[1]}"):
        items_of(row.make(folder, **row.records))
    if not row.skips:
        return

    bad = f"bad-{name}"
    assert local_context.read(row.make(folder, **row.records, on_bad="skip")).count() == 2
    assert local_context.read(row.make(folder, **row.records, into=to_ilist(bad))).count() == 2
    assert [Path(letter.item.path).name for letter in local_context.get_list(bad)] == ["a"]
    assert past(row.make(folder, **row.records))[1] == ("a", 3 if name == "csv_rows" else 2)


@pytest.mark.parametrize("format", FORMATS)
@sources_with(lambda source: source.formats != "all")
def test_a_file_of_another_format_is_named(write, name, format):
    """Its own is read; advice for an encoding is for text."""
    row, (content, words) = FILE_SOURCES[name], FORMATS[format]
    reads, encodings = row.formats, [{"encoding": each} for each in ("utf-8", "latin-1")]
    content += b"\n" if name == "watch_files" else b""  # It reads a line when that has ended.
    if f"is {reads}" in words:
        assert len(items_of(row.make(write(content)))) in (1, 3)
        return
    words = words if reads == "none" else "" if format.startswith("utf") else words.partition(".*")[0]

    for options in encodings if reads == "none" else [{}]:
        with pytest.raises(SourceError, match=f"{os.sep}a.*{words}"):
            items_of(row.make(write(content), **options, **({"on_bad": "skip"} if row.skips else {})))


@each_source
def test_links_give_no_file_twice(write, name):
    """A hard link, a link to a file, and, below `**`, one to a folder."""
    row = FILE_SOURCES[name]
    folder = write(row.good)
    os.link(folder / "a", folder / "b")
    os.symlink("a", folder / "c")
    os.symlink(".", folder / "within")
    os.symlink("..", folder / "above")

    assert items_of(row.make(folder)) == row.items
    if row.has_links:
        assert items_of(row.make(f"{folder.parent}/**")) == row.items


@each_source
def test_a_file_that_may_not_be_read_is_named(write, monkeypatch, name):
    """The reason is one of the system's, not of a library."""

    def refuse(path: Any, *arguments: Any) -> Any:
        raise PermissionError(13, "Permission denied", path)

    folder = write(FILE_SOURCES[name].good)
    for module in ("filesystem.access", "connectors.files.text"):
        monkeypatch.setattr(f"dstream.{module}.open", refuse, raising=False)

    with pytest.raises(
        SourceError, match=f"cannot read {folder}/a: (this process may not read it|.*Permission denied)"
    ):
        items_of(FILE_SOURCES[name].make(folder))


@each_source
def test_a_file_of_no_bytes(write, name):
    """It has no items, where the format takes that."""
    row = FILE_SOURCES[name]
    folder = write(b"")
    if isinstance(row.empty, list):
        assert items_of(row.make(folder)) == row.empty
    else:
        with pytest.raises(SourceError, match=row.empty):
            items_of(row.make(folder))


@each_source
def test_a_file_that_is_missing_is_named(tmp_path, name):
    """When it is read, not at the call."""
    source = FILE_SOURCES[name].make(tmp_path / "no-such")

    with pytest.raises(SourceError, match=r"no-such.*(there is no such file or directory|is not there)"):
        items_of(source)
