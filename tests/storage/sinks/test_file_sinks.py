"""`to_files` holds the contract of sinks, in each format; what is in the folder at any moment is whole."""

from __future__ import annotations

import ast
import dataclasses
import errno
import json
import os
from pathlib import Path

import fastavro
import pytest

import dstream as ds
from dstream.errors import IllegalStateError, SinkError
from reducers import replacing, to_files
from sources import csv_rows, json_lines, parquet_rows, text_files
from tests.storage.sinks.sink_contract import LOCAL_CHANGES, SinkCase, SinkContract, dying


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where files go; it is not there yet."""
    return tmp_path / "out"


def case_of(sink, context, folder):
    """Return a case of two epochs, which looks at the published files and at everything."""

    def content():
        return [line for file in sorted(folder.glob("[!._]*")) for line in file.read_text().splitlines()]

    def left():
        return {str(path) for path in folder.rglob("*")}

    return SinkCase(sink, lambda: context, [1, 2, 3], [44, 55], content, left)


SINKS = {
    "text": lambda folder: to_files(folder),
    "json": lambda folder: to_files(folder, format="json"),
    "replacing": lambda folder: replacing(to_files(folder)),
    "csv": lambda folder: to_files(folder, format="csv", compression="gz"),
    "parquet": lambda folder: to_files(folder, format="parquet"),
    "avro": lambda folder: to_files(folder, format="avro"),
    "partitions": lambda folder: replacing(to_files(folder, format="csv", partition_by="n", roll_at=(8, None))),
}


class TestFileSinks(SinkContract):
    """Each format, and files that take the place of others, in folders of their own."""

    @pytest.fixture(params=SINKS)
    def case(self, request, local_context, folder):
        """The sink, and how to look into its folder."""
        case = case_of(SINKS[request.param](folder), local_context, folder)
        if request.param in ("text", "json", "replacing"):
            return case
        rows = [[{"n": n} for n in items] for items in (case.first, case.second)]
        content = lambda: [row for path in sorted(folder.rglob("part*")) for row in rows_of(path)]  # noqa: E731
        return dataclasses.replace(case, first=rows[0], second=rows[1], content=content)


def rows_of(path):
    """Return the rows of a file as they were written, whatever its format."""
    if path.suffix == ".avro":
        with path.open("rb") as file:
            return list(fastavro.reader(file))
    source = parquet_rows(path) if path.suffix == ".parquet" else csv_rows(path)
    return [{"n": int(row["n"])} for split in source.splits(1) for row in split.read()]


def test_each_partition_writes_a_file(engine, folder):
    """Names in encounter order, none for an empty partition; what `collect` gives are their paths, also listed."""
    paths = engine.stream(range(5), partitions=8).filter(lambda n: n != 2).collect(to_files(folder))

    assert [Path(path).parent for path in paths] == [folder] * len(paths)
    assert paths == sorted(map(str, folder.glob("part-000001-0000?.txt")))
    assert engine.context.read(text_files(folder)).to_list() == ["0", "1", "3", "4"]
    assert json.loads((folder / "_SUCCESS").read_text())["files"] == [Path(path).name for path in paths]
    assert [path.name for path in (folder / ".dstream").rglob("*")] == ["jobs"]


def test_a_second_run_adds_files(local_context, folder):
    """Behind those of the first; a job that has a name adds them once."""
    numbers = local_context.stream([1, 2])
    first = numbers.collect(to_files(folder))
    second = [numbers.map(lambda n: n * 10).collect(to_files(folder, name="more", job="nightly")) for _ in range(2)]

    assert (len(second[0]), second[0]) == (1, second[1])
    assert [Path(path).name for path in first + second[0]] == ["part-000001-00000.txt", "more-000002-00000.txt"]
    assert json.loads((folder / "_SUCCESS").read_text())["files"] == [Path(path).name for path in first + second[0]]


def test_replacing_removes_the_files_of_earlier_runs(engine, folder):
    """After the list names the new ones; what is hidden stays."""
    engine.stream([1, 2, 3]).collect(to_files(folder))
    (folder / "_notes").touch()
    paths = engine.stream([4], 1).collect(replacing(to_files(folder)))

    assert [Path(path).read_text() for path in paths] == ["4\n"]
    assert sorted(path.name for path in folder.iterdir()) == [
        ".dstream",
        "_SUCCESS",
        "_notes",
        "part-000002-00000.txt",
    ]


def test_no_items_are_a_result_too(engine, folder):
    """No file, and a list of none."""
    assert engine.stream([], partitions=2).collect(to_files(folder)) == []
    assert json.loads((folder / "_SUCCESS").read_text()) == {"files": []}


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst"])
def test_compressed_files_are_read_back(local_context, folder, suffix):
    """Their names say how they are compressed."""
    lines = [f"line {n} é" for n in range(3000)]
    [path] = local_context.stream(lines).collect(to_files(folder, compression=suffix))

    assert path.endswith(f".txt.{suffix}")
    assert os.path.getsize(path) < 15_000
    assert local_context.read(text_files(folder)).to_list() == lines


def test_a_folder_with_files_of_others_is_refused(local_context, folder):
    """Before anything runs, since who reads the folder would read them; hidden ones do not count."""
    folder.mkdir()
    (folder / "_hidden").touch()
    local_context.stream([1]).collect(to_files(folder))
    (folder / "notes.txt").write_text("mine")
    numbers = local_context.stream([1]).map(lambda n: n // 0)

    for sink in to_files(folder), replacing(to_files(folder)):
        with pytest.raises(SinkError, match=r"holds 'notes.txt', which no to_files\(\) has written"):
            numbers.collect(sink)
    assert (folder / "notes.txt").read_text() == "mine"


def test_refuse_takes_an_empty_folder_only(local_context, folder):
    """But the job that wrote it may come again."""
    sink = to_files(folder, on_existing="refuse", job="once")
    first = [local_context.stream([1]).collect(sink) for _ in range(2)]

    assert first[0] == first[1]
    with pytest.raises(SinkError, match=r"holds files already, such as 'part-000001-00000\.txt'"):
        local_context.stream([1]).collect(to_files(folder, on_existing="refuse"))


def test_a_run_that_fails_leaves_nothing(engine, folder):
    """Neither of the step that failed nor of tasks that were done; the exception is the user's."""
    engine.stream(["kept"], 1).collect(to_files(folder))
    with pytest.raises(ZeroDivisionError):
        engine.stream([4, 2, 1, 0], partitions=4).map(lambda n: 1 // n).collect(to_files(folder))

    assert [path.name for path in folder.rglob("*.txt")] == ["part-000001-00000.txt"]
    assert [path.name for path in (folder / ".dstream").rglob("*")] == ["jobs"]


@pytest.mark.parametrize("compression", [None, "gz", "bz2", "xz", "zst"])
def test_a_full_disk_is_an_error_of_the_sink(local_context, folder, monkeypatch, compression):
    """It names the call; nothing of the run is left."""
    paths = local_context.stream(["kept"]).collect(to_files(folder))
    full = lambda path, mode: open("/dev/full" if mode == "xb" else path, mode.replace("x", "w"))  # noqa: E731, SIM115
    monkeypatch.setattr("dstream.filesystem.output_folders.open", full, raising=False)
    with pytest.raises(SinkError, match=r"cannot write .*\.dstream.*: the disk is full") as raised:
        local_context.stream([1, 2]).collect(to_files(folder, compression=compression))

    assert "collect(to_files(" in "\n".join(raised.value.__notes__)
    assert [str(path) for path in folder.rglob("*-*")] == paths


def test_a_folder_that_cannot_be_is_an_error(local_context, tmp_path, monkeypatch):
    """Below a file, or for others to write; nothing runs."""
    (tmp_path / "file").touch()
    numbers = local_context.stream([1]).map(lambda n: n // 0)

    with pytest.raises(SinkError, match=r"cannot write .*/file/out.*: a part of it is a file"):
        numbers.collect(to_files(tmp_path / "file" / "out"))
    with pytest.raises(SinkError, match=r"cannot write .*/file/\.dstream"):
        numbers.collect(to_files(tmp_path / "file"))
    monkeypatch.setattr("os.access", lambda *args: False)
    with pytest.raises(SinkError, match=r"cannot write .*/locked: this process may not write it"):
        numbers.collect(to_files(tmp_path / "locked"))


def test_a_folder_that_goes_meanwhile_is_an_error(engine, folder):
    """Of the step that writes."""
    import shutil

    def remove(item):
        shutil.rmtree(folder)
        return item

    with pytest.raises(SinkError, match="it is gone, or is not on this machine"):
        engine.stream([1], 1).map(remove).collect(to_files(folder))


@pytest.mark.parametrize("stops_at", range(9))
def test_a_commit_that_dies_is_finished_by_the_next(local_context, folder, monkeypatch, stops_at):
    """Wherever it stopped after its journal was there; before, nothing has happened. No item is lost or doubled."""
    sink = replacing(to_files(folder, job="nightly"))
    local_context.stream([0]).collect(to_files(folder))
    case = case_of(sink, local_context, folder)
    job = case.target().begin("nightly")
    receipts = [receipt for n in (1, 2) for receipt in case.written(job, [n])]
    dying(monkeypatch, stops_at, LOCAL_CHANGES, lambda: job.commit(receipts))
    for _ in range(2):
        case.target().begin("nightly").commit(receipts)

    assert case.content() == ["1", "2"]
    assert len(json.loads((folder / "_SUCCESS").read_text())["files"]) == 2
    assert sorted(path.name for path in (folder / ".dstream").iterdir()) == ["jobs"]


@pytest.mark.parametrize("stops_at", range(9))
def test_a_replacement_that_dies_keeps_nobody_out(local_context, folder, monkeypatch, stops_at):
    """Another job finishes it, also where the list says already that the old files are no more."""
    local_context.stream([0]).collect(to_files(folder))
    case = case_of(replacing(to_files(folder)), local_context, folder)
    job = case.target().begin(None)
    receipts = case.written(job, [1])
    dying(monkeypatch, stops_at, LOCAL_CHANGES, lambda: job.commit(receipts))
    local_context.stream([2]).collect(to_files(folder))

    assert case.content() in (["0", "2"], ["1", "2"])
    assert len(json.loads((folder / "_SUCCESS").read_text())["files"]) == 2


def test_a_commit_that_fails_changes_nothing(local_context, folder, monkeypatch):
    """A file that cannot be moved takes back those before it; then the commit may be tried again."""
    case = case_of(to_files(folder), local_context, folder)
    job = case.target().begin(None)
    receipts = [receipt for n in (1, 2) for receipt in case.written(job, [n])]
    real = os.rename
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", lambda old, new: real(old, new) if "00001" not in new[-10:] else os.unlink(""))
        with pytest.raises(SinkError):
            job.commit(receipts)
    assert case.content() == []
    job.commit(receipts)

    assert case.content() == ["1", "2"]


@pytest.mark.parametrize("refused", ["_SUCCESS", ".dstream/jobs"])
@pytest.mark.parametrize("wrapped", [to_files, lambda folder: replacing(to_files(folder))])
def test_a_commit_that_cannot_be_listed_is_taken_back(local_context, folder, monkeypatch, refused, wrapped):
    """The run failed, so nobody sees its files, nor finishes it beside the next attempt."""
    local_context.stream([0]).collect(to_files(folder))
    real, failing = os.replace, iter([True])

    def replace(old, new):
        if str(new).startswith(str(folder / refused)) and next(failing, False):
            raise OSError(errno.ENOSPC, "no space", new)
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(SinkError, match="the disk is full"):
        local_context.stream([1]).collect(wrapped(folder))
    assert local_context.read(text_files(folder)).to_list() == ["0"]
    assert json.loads((folder / "_SUCCESS").read_text())["files"] == ["part-000001-00000.txt"]
    local_context.stream([2]).collect(to_files(folder))

    assert local_context.read(text_files(folder)).to_list() == ["0", "2"]


def test_a_commit_that_cannot_be_taken_back_is_finished_later(local_context, folder, monkeypatch):
    """A disk that fails in the middle, and for good: what the journal names outlives the abort."""
    case = case_of(to_files(folder), local_context, folder)
    job = case.target().begin(None)
    receipts = [receipt for n in (1, 2) for receipt in case.written(job, [n])]
    dying(monkeypatch, 2, LOCAL_CHANGES, lambda: job.commit(receipts))
    job.abort()
    assert case.content() == ["1"]
    case.commit("other", 1, [3])

    assert case.content() == ["1", "2", "3"]


def test_what_a_task_wrote_and_is_gone_is_refused(local_context, folder):
    """Or what is shorter than it was: the receipts of a week ago, a folder on another machine."""
    case = case_of(to_files(folder), local_context, folder)
    job = case.target().begin("job")
    receipts = case.written(job, [1, 2])
    staged = folder / ".dstream" / receipts[0][0]
    staged.write_text("1\n")
    with pytest.raises(IllegalStateError, match="a task wrote 4 bytes, and 2 are there"):
        job.commit(receipts)
    staged.unlink()
    with pytest.raises(IllegalStateError, match="nothing was changed, since what a task wrote is no more"):
        job.commit(receipts)

    assert (case.content(), (folder / "_SUCCESS").exists()) == ([], False)


def test_what_is_no_receipt_leads_nowhere(local_context, folder):
    """Receipts may have been kept anywhere, so they are input."""
    target = to_files(folder).open(local_context)

    for each in ["../../x", 3], ["../" + "0" * 62, 3], "name", None, ["0" * 32 + "-" + "0" * 32, "3"]:
        with pytest.raises(IllegalStateError, match="is no receipt of a file"):
            target.begin("job").commit([each])


@pytest.mark.parametrize("text", ['{"publication": ["a", 1, [], ["../x"]]}', '{"publication": 3}', "{", "[" * 100_000])
def test_a_damaged_journal_is_an_error(local_context, folder, text):
    """And removes nothing that it names."""
    case = case_of(to_files(folder), local_context, folder)
    case.commit("job", 1, [1])
    (folder / ".dstream" / "publishing.json").write_text(text)

    with pytest.raises(SinkError, match=r"publishing\.json"):
        case.commit("job", 2, [2])
    assert case.content() == ["1"]


def _commit(folder, receipts):
    """Commit in a process that has no context, twice."""
    target = to_files(folder).open(None)
    for _ in range(2):
        target.begin("nightly", 3).commit(receipts)
    return target.result()


def test_another_process_commits(local_context, folder, elsewhere):
    """From plain data, after the one that wrote is gone."""
    case = case_of(to_files(folder), local_context, folder)
    receipts = ast.literal_eval(repr(case.written(case.target().begin("nightly", 3), [1, 2])))
    paths = elsewhere(_commit, folder, receipts).returned()

    assert [Path(path).read_text() for path in paths] == ["1\n2\n"]


def test_who_commits_waits_for_its_turn(local_context, folder, monkeypatch):
    """And not for ever: a process that was stopped may have it."""
    import fcntl

    case = case_of(to_files(folder), local_context, folder)
    job = case.target().begin("job")
    receipts = case.written(job, [1])
    monkeypatch.setattr("dstream.filesystem.output_folders.LONGEST_WAIT", 0.0)
    descriptor = os.open(folder / ".dstream", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    holder = f"the process {os.getpid()}" if Path("/proc/locks").exists() else "another process"
    with pytest.raises(SinkError, match=f"{holder} is in the middle of a commit, and does not end; let it go on"):
        job.commit(receipts)
    os.close(descriptor)
    job.commit(receipts)

    assert case.content() == ["1"]


def test_attempts_that_lost_are_removed(local_context, folder):
    """Those of the run whose receipts are committed, and those that a killed run left a week ago."""
    case = case_of(to_files(folder), local_context, folder)
    left, job = case.target().begin("other"), case.target().begin("job")
    [[old, *_]], [[young, *_]] = case.written(left, [1]), case.written(left, [2])
    os.utime(folder / ".dstream" / old, (0, 0))
    case.written(job, ["losing"])
    case.target().begin("job").commit(case.written(job, ["winning"]))

    assert [path.name for path in (folder / ".dstream").iterdir() if path.is_file()] == [young]


def test_dead_letters_go_into_files(local_context, folder):
    """As into every reducer."""
    letters = to_files(folder, to_string=lambda letter: repr(letter.item))
    local_context.stream(["1", "x"]).map(int).on_error(ValueError, into=letters).to_list()

    assert [path.read_text() for path in folder.glob("*.txt")] == ["'x'\n"]


def test_records_come_back_as_they_were(engine, folder):
    """`json_lines` reads what was written: entries become objects."""
    counts = {"a": [1, None], "é\n\u2028": [float("inf"), 2**70]}
    entries = engine.stream(list(counts.items())).map(lambda pair: ds.Entry(*pair))
    entries.collect(to_files(folder, format="json"))

    found = engine.context.read(json_lines(folder)).to_list()
    assert found == [{"key": key, "value": value} for key, value in counts.items()]


@pytest.mark.parametrize("hidden", [".dstream", ".dstream/jobs"])
def test_files_are_not_written_through_a_link(local_context, folder, tmp_path, hidden):
    """Somebody may have prepared the folder, and a link leads anywhere."""
    behind = tmp_path / "elsewhere"
    behind.mkdir()
    (folder / hidden).parent.mkdir(parents=True)
    (folder / hidden).symlink_to(behind)

    with pytest.raises(SinkError, match=f"{hidden}: it is a symbolic link"):
        local_context.stream(["a"]).collect(to_files(folder))
    assert list(behind.iterdir()) == []
