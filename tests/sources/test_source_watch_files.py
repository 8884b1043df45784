"""`watch_files`: whole lines of files that grow, move, shrink and go."""

from __future__ import annotations

import datetime
import gzip
import os
from collections import deque
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.connectors.files.text import end_of_lines
from dstream.errors import SourceError, UnsupportedError
from dstream.spi import StreamSource
from sources import watch_files


def append(path, text):
    """Append as a program that logs does."""
    with path.open("ab") as file:
        file.write(text.encode())


def test_lines_are_given_once_they_end(tmp_path, follow):
    """Of files that are there, and of those that come later, each in its order."""
    append(tmp_path / "a.log", "one\r\ntw")
    job = follow(watch_files(tmp_path))
    assert isinstance(job.source, StreamSource)
    assert job.news() == ["one"]
    append(tmp_path / "a.log", "o é\n\nthree")
    append(tmp_path / "b.log", "x\n")
    assert sorted(job.news()) == ["", "two é", "x"]
    assert job.news() == []
    append(tmp_path / "a.log", "\n")

    assert job.news() == ["three"]


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_with_other_names_is_read_once(tmp_path, follow, link):
    """Under any name that is meant, though another one, such as that of a link to the newest log, is not."""
    append(tmp_path / "b.log", "one\n")
    for name in ("a", "a.log", "c", "c.log", "d"):
        link(tmp_path / "b.log", tmp_path / name)
    job = follow(watch_files(tmp_path, "*.log"))
    assert job.news() == ["one"]
    append(tmp_path / "b.log", "two\n")

    assert job.news() == ["two"]


def test_a_range_has_a_bound(tmp_path, follow):
    """So many lines of each file."""
    append(tmp_path / "a.log", "1\n2\n3\n4")
    job = follow(watch_files(tmp_path))

    assert [job.news(most) for most in (2, 0, 5, 1)] == [["1", "2"], [], ["3"], []]


def test_about_how_many_lines_are_left_is_known_by_the_bytes(tmp_path):
    """Of a file with more than an epoch takes; a line that has not ended, and what nobody bounds, is no backlog."""
    append(tmp_path / "a.log", "12345\n" * 1_000)
    append(tmp_path / "b.log", "1\n2\n" + "long" * 100)
    source = watch_files(tmp_path)

    assert [source.reach({}, most).expected for most in (100, 1_000, 5_000, None)] == [900, 0, 0, 0]
    assert source.reach({}, 100).left is None


@pytest.mark.parametrize("block", [1, 3, 7, 64])
def test_a_bound_is_found_in_blocks_of_any_size(tmp_path, monkeypatch, block):
    """As when one line after another is read."""
    monkeypatch.setattr("dstream.connectors.files.text._BLOCK", block)
    data = b"one\n\n\ntwo and a half\nthree\n\nno end"
    (tmp_path / "a").write_bytes(data)
    lines = data.splitlines(keepends=True)
    for first in range(len(lines)):
        for most in range(8):
            start = len(b"".join(lines[:first]))
            expected = b"".join(line for line in lines[first : first + most] if line.endswith(b"\n"))
            assert end_of_lines(str(tmp_path / "a"), start, most)[0] == start + len(expected)


def test_current_begins_behind_what_is_there(tmp_path, follow):
    """A line that has not ended by then is given as a whole; a later file from its start."""
    append(tmp_path / "a.log", "old\nbeg")
    job = follow(watch_files(tmp_path, start="current"))
    append(tmp_path / "a.log", "un\n")
    append(tmp_path / "b.log", "new\n")

    assert sorted(job.news()) == ["begun", "new"]


def test_a_time_leaves_out_older_files(tmp_path, follow):
    """What was modified since then is read from its start."""
    for name, modified in ("old", 1_000), ("new", 2_000):
        append(tmp_path / name, f"{name}\n")
        os.utime(tmp_path / name, (modified, modified))
    since = datetime.datetime.fromtimestamp(1_500, datetime.UTC)
    job = follow(watch_files(tmp_path, start=since))
    assert job.news() == ["new"]
    append(tmp_path / "old", "more\n")

    assert job.news() == ["more"]


def test_a_rotated_file_goes_on(tmp_path, follow):
    """Under its new name, which the glob does not match; the new file is another one."""
    log = tmp_path / "a.log"
    append(log, "1\n2\n")
    job = follow(watch_files(tmp_path, "*.log"))
    assert job.news(1) == ["1"]
    log.rename(tmp_path / "a.log.1")
    append(tmp_path / "a.log.1", "3\n")
    append(log, "new\n")

    assert sorted(job.news()) == ["2", "3", "new"]


@pytest.mark.parametrize("text", ["a\n", "another beginning, longer than before\n"])
def test_a_truncated_file_is_read_from_its_start(tmp_path, follow, text):
    """Whether it is shorter by then or longer; its first bytes tell."""
    log = tmp_path / "a.log"
    append(log, "1\n2\n3\n")
    job = follow(watch_files(tmp_path))
    assert job.news() == ["1", "2", "3"]
    log.write_text(text)
    assert job.news() == [text.strip()]
    log.write_text("")
    assert job.news() == []
    append(log, "x\n")

    assert job.news() == ["x"]


def test_a_deleted_file_ends(tmp_path, follow):
    """And nothing is left of it among the offsets."""
    append(tmp_path / "a.log", "1\n")
    append(tmp_path / "b.log", "2\n")
    job = follow(watch_files(tmp_path))
    job.news()
    (tmp_path / "a.log").unlink()

    assert (job.news(), len(job.offsets)) == ([], 1)


@pytest.mark.parametrize("what", ["deleted", "truncated"])
def test_lines_that_go_before_they_are_read_are_an_error(tmp_path, follow, what):
    """A range that was promised gives all of its lines or none."""
    log = tmp_path / "a.log"
    append(log, "1\n2\n")
    [split] = follow(watch_files(tmp_path)).ranges()
    log.unlink() if what == "deleted" else log.write_text("3\n")

    with pytest.raises(SourceError, match=rf"watch_files\(.*\): a file was {what}.* so they are lost"):
        list(split.read())


def test_a_folder_that_goes_is_an_error(tmp_path, follow):
    """At the beginning, and later."""
    folder = tmp_path / "logs"
    source = watch_files(folder)
    with pytest.raises(SourceError, match=r"the folder .*/logs is not there"):
        source.begin()
    folder.mkdir()
    job = follow(source)
    folder.rmdir()

    with pytest.raises(SourceError, match=r"the folder .*/logs is not there"):
        job.ranges()


def test_values_of_json(tmp_path, follow):
    """One on each line, blank lines are none; one that is no JSON names file and line."""
    append(tmp_path / "a.log", '{"n": 1}\n\n[2]\n')
    job = follow(watch_files(tmp_path, format="json"))
    assert job.news() == [{"n": 1}, [2]]
    append(tmp_path / "a.log", "1\nno\n")
    [split] = job.ranges()

    with pytest.raises(SourceError, match=r"a.log, line 2 behind byte 14 is not JSON .*: no"):
        list(split.read())


def in_columns(path):
    """Return the splits' items by columns and one by one, and how many blocks are columns."""
    source = watch_files(path.parent, format="json")
    (partition,) = source.begin()
    split = source.split(partition, None, source.reach({partition: None})[partition])
    items, columns = list[object](), 0
    for block in split.arrow_rows() or ():
        columns += not isinstance(block, Iterator)
        items += block if isinstance(block, Iterator) else block.items(slice(0, block.size))
    return items, list(split.read()), columns


def test_values_of_json_are_columns_in_long_ranges(tmp_path):
    """But for blocks with lines of another layout; a range of few bytes has none."""
    plain = "".join(f'{{"ts": {n}, "key": "k{n}é"}}\n' for n in range(40_000))
    append(tmp_path / "a.json", plain + '\n{"other": [1]}\r\n' + plain)
    items, expected, columns = in_columns(tmp_path / "a.json")
    assert items == expected
    assert columns > 1
    (tmp_path / "a.json").write_text(plain[:999].rpartition("\n")[0] + "\n")

    assert in_columns(tmp_path / "a.json")[0] == []


@pytest.mark.parametrize(("bad", "message"), [(b"{1}", "is not JSON"), (b'"\xe9"', "is not utf-8")])
def test_a_bad_line_among_columns_is_an_error_with_its_number(tmp_path, bad, message):
    """As it is where values are read one by one."""
    lines = "".join(f'{{"ts": {n}}}\n' for n in range(40_000)).encode()
    (tmp_path / "a.json").write_bytes(lines + bad + b"\n" + lines)
    source = watch_files(tmp_path, format="json")
    (partition,) = source.begin()
    split = source.split(partition, None, source.reach({partition: None})[partition])

    with pytest.raises(SourceError, match=f"line 40,001.*{message}") as one_by_one:
        deque(split.read(), maxlen=0)
    with pytest.raises(SourceError) as of_columns:
        deque((deque(each, maxlen=0) for each in split.arrow_rows() if isinstance(each, Iterator)), maxlen=0)

    assert str(of_columns.value) == str(one_by_one.value)


def test_bytes_that_are_no_text_are_an_error(tmp_path, follow):
    """With their line in the whole file."""
    append(tmp_path / "a.log", "1\n")
    job = follow(watch_files(tmp_path))
    job.news()
    (tmp_path / "a.log").write_bytes(b"1\n2\n\xff\n")
    [split] = job.ranges()

    with pytest.raises(SourceError, match=r"a.log, line 3, byte 4: b'\\xff' is not utf-8"):
        list(split.read())


def test_hidden_files_and_folders_are_left_out(tmp_path, follow):
    """As are those that the glob does not match."""
    (tmp_path / "below.log").mkdir()
    for name in ".a.log", "_b.log", "c.txt", "D.LOG":
        append(tmp_path / name, "no\n")

    assert follow(watch_files(tmp_path, "*.log")).news() == []


CHUNKS = st.lists(st.tuples(st.sampled_from("ab"), st.text("x\né", max_size=6), st.booleans()), max_size=12)


@given(CHUNKS, st.one_of(st.none(), st.integers(1, 3)))
@settings(max_examples=25)
def test_whatever_is_appended_is_given_once(tmp_path_factory, follow, chunks, most):
    """Whenever somebody looks, the lines of each file are those of the file, in order."""
    folder = tmp_path_factory.mktemp("watched")
    job, seen = follow(watch_files(folder)), []
    for name, text, is_looked_at in chunks:
        append(folder / name, text)
        seen += job.news(most) if is_looked_at else []
    while news := job.news(most):
        seen += news
    written = [line for path in folder.iterdir() for line in path.read_text().split("\n")[:-1]]

    assert sorted(seen) == sorted(written)


WRONG = {
    "url": (lambda: watch_files("s3://bucket/logs"), "and no URL"),
    "glob": (lambda: watch_files("a", "*/b"), "names of files in the folder itself"),
    "format": (lambda: watch_files("a", format="csv"), "format must be 'text' or 'json'"),
    "encoding": (lambda: watch_files("a", encoding="utf-16"), "cannot|cut off at a newline byte, which utf-16 is not"),
    "start": (lambda: watch_files("a", start="newest"), "start must be 'oldest', 'current' or a datetime"),
    "naive": (lambda: watch_files("a", start=datetime.datetime(2026, 1, 1)), "must be a datetime with a time zone"),
    "offset": (lambda: watch_files("a").split("1", [0, 1, 2, "x"], None), "is no offset of a file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused_at_the_call(name):
    """Before anything is looked at."""
    make, words = WRONG[name]
    with pytest.raises((TypeError, ValueError, UnsupportedError, SourceError), match=words):
        make()


def test_a_file_that_cannot_be_read_is_an_error(tmp_path, follow, monkeypatch):
    """At the beginning, and later; one that is deleted meanwhile is none."""
    append(tmp_path / "a.log", "1\n")
    job = follow(watch_files(tmp_path))
    for error, words in (PermissionError("no"), r"cannot read .*a\.log: no"), (FileNotFoundError("gone"), None):
        monkeypatch.setattr("dstream.connectors.files.text.end_of_lines", raising(error))
        for ask in watch_files(tmp_path, start="current").begin, job.ranges:
            if words is None:
                assert not ask()
            else:
                with pytest.raises(SourceError, match=words):
                    ask()


def raising(error):
    """Return a function that raises."""

    def function(*arguments):
        raise error

    return function


def test_a_file_that_is_compressed_is_refused(tmp_path):
    """Its bytes are no lines, and where those of its content would begin again is not known."""
    append(tmp_path / "a.log", "1\n")
    (tmp_path / "a.log.1.gz").write_bytes(gzip.compress(b"1\n"))

    with pytest.raises(SourceError, match=r"a\.log\.1\.gz is compressed by its name.* leave it out by glob="):
        watch_files(tmp_path).begin()
    assert len(watch_files(tmp_path, "*.log").begin()) == 1
