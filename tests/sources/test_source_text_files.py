"""`text_files`: lines as Python's own `open` gives them, for every way to cut the files."""

from __future__ import annotations

import itertools
import pathlib
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dstream.connectors.files.lines
import dstream.filesystem.access
from dstream.connectors.files.lines import splits_at_newlines
from dstream.connectors.files.splits import LinePieces, Part
from dstream.connectors.files.text import TextReader, TextSplit
from dstream.filesystem.access import File
from dstream.spi.source import Source
from sources import text_files

SAMPLES = "a b,é\u00e9ßя中あ한\x85\u2028\x0b\x0c\x1c\ufeff\U0001f600"


def python_lines(path, encoding):
    """The definition: Python's universal newlines, without the line ends."""
    with open(path, encoding=encoding) as lines:
        return [line.removesuffix("\n") for line in lines]


def read_cut(path, encoding, cuts, block):
    """Read a file as parts that end at the given offsets."""
    file = File(str(path), str(path), path.stat().st_size)
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < file.size}), file.size]
    parts = [Part(file, start, end) for start, end in itertools.pairwise(bounds)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dstream.connectors.files.lines, "BLOCK", block)
        return [line for part in parts for line in TextSplit((part,), TextReader(encoding), False).read()]


def texts(encoding):
    """Text of which many characters end lines, or look as if they did."""
    letters = [letter for letter in SAMPLES if can_encode(letter, encoding)]
    return st.lists(st.sampled_from(["\n", "\r", "\r\n", "long" * 9, *letters]), max_size=40).map("".join)


def can_encode(letter, encoding):
    """Whether the encoding has the letter."""
    try:
        return letter.encode(encoding).decode(encoding) == letter
    except UnicodeError:
        return False


def test_text_files_meets_the_contract(tmp_path):
    """Files are an ordered, bounded source that workers open."""
    for source in (text_files(tmp_path), text_files(tmp_path, with_path=True)):
        assert isinstance(source, Source)
        assert (source.ordered, source.bounded, source.in_caller) == (True, True, False)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\rc\n\r\n", ["a", "b", "c", ""]),
        (b"a\r", ["a"]),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f\n".encode(), ["a\x0bb\x0cc\x1cd\x85e\u2028f"]),
        ("\ufeffa".encode(), ["a"]),
    ],
)
def test_text_files_gives_the_lines_of_open(tmp_path, read, content, lines):
    r"""Only "\n", "\r\n" and "\r" end a line, and the last one needs no end."""
    (tmp_path / "a.txt").write_bytes(content)

    assert read(text_files(tmp_path)) == lines
    assert python_lines(tmp_path / "a.txt", "utf-8-sig") == lines


@settings(deadline=None)
@given(texts("utf-8"), st.lists(st.integers(0, 200), max_size=6), st.integers(1, 50))
def test_text_files_equals_open_wherever_it_is_cut(text, cuts, block):
    """No line is torn, doubled or lost, for random text, cut points and block sizes."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.txt"
        path.write_bytes(text.encode())

        assert read_cut(path, "utf-8", cuts, block) == python_lines(path, "utf-8-sig")


CUT = ["utf-8-sig", "latin-1", "cp1252", "cp437", "koi8-r", "euc-jp", "euc-kr", "gbk", "gb18030", "shift_jis", "big5"]
WHOLE = ["utf-16", "utf-16-le", "utf-32", "utf-7", "iso2022_jp", "iso2022_kr", "hz", "cp037", "shift_jisx0213"]


@pytest.mark.parametrize("encoding", [*CUT, *WHOLE])
@settings(deadline=None, max_examples=50)
@given(data=st.data(), parallelism=st.integers(1, 9), block=st.integers(1, 50))
def test_text_files_equals_open_in_every_encoding(encoding, data, parallelism, block):
    """With splits of a few bytes where the encoding allows it, and whole files where it does not."""
    text = data.draw(texts(encoding))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name, size in {"splits.SMALLEST_SPLIT": 1, "splits.OPENING": 1, "lines.BLOCK": block}.items():
            patch.setattr(f"dstream.connectors.files.{name}", size)
        path = pathlib.Path(folder) / "a.txt"
        path.write_bytes(text.encode(encoding))
        splits = text_files(path, encoding=encoding).splits(parallelism)

        assert [line for split in splits for line in split.read()] == python_lines(path, encoding)


def test_text_files_cuts_only_where_a_newline_byte_is_a_newline():
    """The rule finds out by itself; whatever is uncertain is read whole."""
    assert [name for name in [*CUT, "utf-8", "UTF8", "ascii", "cp932"] if not splits_at_newlines(name)] == []
    assert [name for name in [*WHOLE, "idna", "unicode_escape"] if splits_at_newlines(name)] == []


def test_text_files_drops_a_byte_order_mark_only_at_the_start(tmp_path, read, tiny_splits):
    """A split that happens to begin with one keeps it, as `open` does."""
    (tmp_path / "a.txt").write_bytes("\ufeffabc\n\ufeffdef\n".encode())

    assert read(text_files(tmp_path, encoding="utf-8-sig"), parallelism=9) == ["abc", "\ufeffdef"]


def test_text_files_cuts_large_files(tmp_path, read):
    """With the real sizes: several splits, blocks and a line that is longer than both."""
    lines = [f"line {n}" for n in range(200_000)] + ["x" * 3_000_000, "end"]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    source = text_files(tmp_path)

    assert len(source.splits(4)) == 4
    assert read(source, parallelism=4) == lines


def test_text_files_reads_one_endless_line_once(tmp_path):
    """A task whose range lies inside a line looks no further than its own end for the next one."""
    (tmp_path / "a.txt").write_bytes(b"x" * 10_000)
    file = File("a", str(tmp_path / "a.txt"), 10_000)

    with open(file.path, "rb") as stream:
        assert LinePieces(stream, Part(file, 100, 200), 10, 1_000).first_line() == 200
        assert stream.tell() == 200


def test_text_files_with_path_gives_pairs(tmp_path, read):
    """The absolute path as a str, and the line; the order is that of the paths."""
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text(f"1{name}\n2{name}\n")
    a, b = str(tmp_path / "a.txt"), str(tmp_path / "b.txt")

    pairs = read(text_files(tmp_path / "*.txt", with_path=True))

    assert pairs == [(a, "1a.txt"), (a, "2a.txt"), (b, "1b.txt"), (b, "2b.txt")]


def test_text_files_reads_no_further_than_asked(tmp_path):
    """The first line of a split costs one block, and files after it stay closed."""
    (tmp_path / "a.txt").write_text("1\n2\n")
    (tmp_path / "b.txt").write_text("3\n")
    [split] = text_files(tmp_path).splits(1)
    (tmp_path / "b.txt").unlink()

    assert next(split.read()) == "1"


def test_text_files_closes_its_file_when_the_iterator_is_dropped(tmp_path, monkeypatch):
    """Nothing stays open behind a reading that stopped early."""
    (tmp_path / "a.txt").write_text("1\n2\n")
    [split] = text_files(tmp_path).splits(1)
    stream = open(tmp_path / "a.txt", "rb")  # noqa: SIM115
    monkeypatch.setattr(dstream.filesystem.access, "_open", lambda file: stream)
    lines = split.read()

    assert next(lines) == "1"
    assert not stream.closed
    del lines
    assert stream.closed


def test_text_files_can_be_read_again(tmp_path):
    """A split gives the same lines each time."""
    (tmp_path / "a.txt").write_text("1\n2\n")
    [split] = text_files(tmp_path).splits(1)

    assert [list(split.read()), list(split.read())] == [["1", "2"], ["1", "2"]]


def test_text_files_sees_a_last_line_that_grew(tmp_path):
    """A line that was being written when the files were found is not torn."""
    path = tmp_path / "a.txt"
    path.write_text("1\nhal")
    [split] = text_files(path).splits(1)
    path.write_text("1\nhalf\nnext\n")

    assert list(split.read()) == ["1", "half"]


@pytest.mark.parametrize("encoding", ["nonsense", "hex", "rot13"])
def test_text_files_refuses_an_unknown_encoding_at_the_call(encoding):
    """As `open` does, but before anything runs."""
    with pytest.raises(LookupError, match=encoding):
        text_files("a.txt", encoding=encoding)
