"""`to_file` holds the contract of sinks, in each format; the file is seen whole or as it was before."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import fastavro
import pytest

import dstream as ds
from dstream.errors import SinkError
from dstream.filesystem.output_folders import LocalOutput
from reducers import to_file, to_files, to_ilist
from sources import csv_rows, item_stream, json_lines, parquet_rows, text_files
from tests.jobs.planned import plan_of
from tests.storage.sinks.sink_contract import SinkCase, SinkContract

ROWS = [{"n": n, "s": f"a{n}"} for n in range(7)]


def parts(folder: Path) -> set[str]:
    """Return all files that hold something, also those that no reader sees."""
    return {str(path) for path in folder.rglob("*") if path.is_file() and path.stat().st_size}


def rows_of(path: Path) -> list[dict[str, int]]:
    """Return the rows of a file, whatever its format; none of one that is not there."""
    if not path.exists() or not path.stat().st_size:
        return []
    if path.suffix == ".avro":
        with path.open("rb") as file:
            return list(fastavro.reader(file))
    source = {".parquet": parquet_rows, ".gz": csv_rows, ".jsonl": json_lines}[path.suffix](path)
    return [{"n": int(row["n"])} for split in source.splits(1) for row in split.read()]


class TestOneFile(SinkContract):
    """Each format."""

    @pytest.fixture(params=["f.jsonl", "f.parquet"])
    def case(self, request, local_context, tmp_path):
        """The sink, and how to read its file."""
        path = tmp_path / "out" / request.param
        rows = [[{"n": n} for n in items] for items in ([1, 2, 3], [44, 55])]
        return SinkCase(
            to_file(path), lambda: local_context, *rows, lambda: rows_of(path), lambda: parts(tmp_path / "out")
        )


@pytest.mark.parametrize("name", ["f.jsonl", "f.json.zst", "f.csv", "f.csv.bz2", "f.parquet", "f.avro"])
def test_the_file_has_all_items_in_their_order(engine, tmp_path, name):
    """Of several partitions, some of them empty; nothing stands beside it, and its path is the result."""
    path = tmp_path / name
    found = engine.stream(ROWS, partitions=4).filter(lambda row: row["n"] != 2).collect(to_file(path))

    assert (found, list(tmp_path.iterdir())) == (str(path), [path])
    if name.endswith("avro"):
        assert rows_of(path) == [row for row in ROWS if row["n"] != 2]
        return
    source = csv_rows if ".csv" in name else parquet_rows if name.endswith("parquet") else json_lines
    assert [int(row["n"]) for row in engine.context.read(source(path)).to_list()] == [0, 1, 3, 4, 5, 6]


def test_lines_of_text_go_into_one_file(engine, tmp_path):
    """With the text that `to_string` makes."""
    path = engine.stream(range(5), partitions=3).collect(to_file(tmp_path / "f.txt", to_string=lambda n: f"<{n}>"))

    assert Path(path).read_text() == "<0>\n<1>\n<2>\n<3>\n<4>\n"


@pytest.mark.parametrize("name", ["f.txt", "f.jsonl", "f.csv", "f.parquet", "f.avro", "f.csv.gz"])
def test_no_items_are_a_file_too(local_context, tmp_path, name):
    """It takes the place of the one before."""
    (tmp_path / name).write_text("old")
    local_context.stream(ROWS[:0]).collect(to_file(tmp_path / name))

    assert rows_of(tmp_path / name) == [] if name != "f.txt" else (tmp_path / name).read_bytes() == b""
    if name == "f.csv.gz":
        assert gzip.decompress((tmp_path / name).read_bytes()) == b""


def test_columns_are_written_without_items(local_context, tmp_path):
    """A header says something."""
    local_context.stream(ROWS[:0]).collect(to_file(tmp_path / "f.csv", columns=["n", "s"]))

    assert (tmp_path / "f.csv").read_text() == "n,s\n"


def test_a_run_that_fails_leaves_the_file_as_it_was(engine, tmp_path):
    """And nothing beside it."""
    path = tmp_path / "f.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        engine.stream([1, 0], partitions=2).map(lambda n: {"n": 1 // n}).collect(to_file(path))

    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


def test_a_file_that_may_not_be_overwritten_stays(local_context, tmp_path):
    """The error names it, before anything is read."""
    (tmp_path / "f.txt").write_text("old")
    words = "f.txt is there already"
    with pytest.raises(SinkError, match=words):
        local_context.stream([1]).peek(pytest.fail).collect(to_file(tmp_path / "f.txt", on_existing="refuse"))

    assert (tmp_path / "f.txt").read_text() == "old"


def test_a_driver_that_dies_between_two_steps_leaves_a_whole_file(local_context, tmp_path, monkeypatch):
    """Whoever commits again publishes the same parts; one that died before the rename has changed nothing."""
    path = tmp_path / "f.jsonl"
    case = SinkCase(to_file(path), lambda: local_context, [], [], list, set)
    job = case.target().begin("job")
    receipts = case.written(job, [1, 2])
    for step, is_there in (("move", False), ("flush", True)):
        with monkeypatch.context() as patch:
            patch.setattr(LocalOutput, step, _dies)
            with pytest.raises(KeyboardInterrupt):
                job.commit(receipts)
        assert path.exists() == is_there
    case.target().begin("job").commit(receipts)

    assert (path.read_text(), case.target().begin("job").is_done) == ("1\n2\n", True)


def _dies(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_two_runs_into_one_folder_do_not_touch_each_other(local_context, tmp_path):
    """The one that ends first removes nothing that the other one needs."""
    case = SinkCase(to_file(tmp_path / "a.txt"), lambda: local_context, [], [], list, set)
    first, second = case.target().begin(None), case.target().begin("named")
    first.commit(case.written(first, [1]))
    second.commit(case.written(second, [2]))

    assert (tmp_path / "a.txt").read_text() == "2\n"


def test_a_link_is_followed(local_context, tmp_path):
    """It leads to the file, and goes on to lead there."""
    (tmp_path / "there").mkdir()
    (tmp_path / "f.txt").symlink_to(tmp_path / "there" / "real.txt")
    path = local_context.stream([1]).collect(to_file(tmp_path / "f.txt"))

    assert (path, (tmp_path / "f.txt").is_symlink()) == (str(tmp_path / "there" / "real.txt"), True)


def test_a_file_is_written_at_a_url(local_context, tmp_path):
    """Copied when it is complete."""
    url = f"memory://{tmp_path.name}/out.csv"
    path = local_context.stream(ROWS, partitions=2).collect(to_file(url))

    assert path == url
    assert local_context.read(csv_rows(url)).map(lambda row: row["s"]).to_list() == [row["s"] for row in ROWS]


def test_a_bounded_job_writes_one_file(local_context, tmp_path):
    """Beside another sink."""
    pipeline = plan_of(local_context.stream([1, 2], partitions=2), to_file(tmp_path / "f.txt"), to_ilist("out"))
    local_context.new_job(pipeline).join()

    assert local_context.read(text_files(tmp_path / "f.txt")).to_list() == ["1", "2"]


def test_a_job_without_an_end_is_refused(local_context, tmp_path):
    """A file that is written whole has an end; the error says what to write instead."""
    pipeline = ds.Pipeline()
    pipeline.read_from(item_stream(10, lambda n, _: n)).ingestion_timestamps().write_to(to_file(tmp_path / "f.txt"))

    with pytest.raises(ds.errors.UnsupportedError, match=r"to_file.*write to_files\(folder\), which adds files"):
        local_context.new_job(pipeline)


def test_pipes_and_devices_are_not_replaced(local_context, tmp_path):
    """Neither directly nor by a link: a rename would put a file in their place."""
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "link.txt").symlink_to(tmp_path / "pipe.txt")
    for name in ("pipe.txt", "link.txt"):
        with pytest.raises(SinkError, match=r"pipe\.txt is a pipe or a device"):
            local_context.stream([1]).collect(to_file(tmp_path / name))

    assert (tmp_path / "pipe.txt").is_fifo()
    assert (tmp_path / "link.txt").is_symlink()


def test_folders_are_no_files(local_context, tmp_path):
    """Neither at the path, nor around it if `to_files` writes there."""
    (tmp_path / "f.txt").mkdir()
    with pytest.raises(SinkError, match=r"f\.txt is a folder, into which to_files\(\.\.\.\) writes"):
        local_context.stream([1]).collect(to_file(tmp_path / "f.txt"))
    local_context.stream([1]).collect(to_files(tmp_path / "out"))
    with pytest.raises(SinkError, match="whose readers would read this one, too"):
        local_context.stream([1]).collect(to_file(tmp_path / "out" / "f.txt"))


@pytest.mark.parametrize(
    ("path", "arguments", "error", "words"),
    [
        ("report", {}, ValueError, "'report' says no format: give it one of .txt, .json, .jsonl, .csv"),
        ("f.csv", {"format": "json"}, ValueError, "named as a file of csv is, and format='json'"),
        ("f.csv", {"compression": "gz"}, ValueError, "needs a name that ends in .gz, not 'f.csv'"),
        ("f.csv.gz", {"compression": "xz"}, ValueError, "named as one in gz is, and compression='xz'"),
        ("f.parquet.gz", {}, ValueError, "parquet compresses inside of the file: leave .gz out"),
        ("f.delta", {"format": "delta"}, ValueError, "a table of Delta is a folder: to_files"),
        ("f.txt", {"columns": ["a"]}, TypeError, "columns are those of"),
        ("out/.csv", {"format": "csv"}, ValueError, "name of a file that is not hidden"),
        ("out/", {"format": "csv"}, ValueError, "name of a file that is not hidden"),
        ("f.txt", {"on_existing": "add"}, ValueError, "'overwrite' or 'refuse'"),
        (1, {}, TypeError, "path must be a str, not int"),
    ],
)
def test_what_is_wrong_with_the_arguments_is_said_at_once(path, arguments, error, words):
    """Before anything runs."""
    with pytest.raises(error) as caught:
        to_file(path, **arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["report.csv", "a/b.PARQUET", "x.json.gz", "s3://bucket/x.avro", Path("y.txt")])
def test_a_folder_that_is_called_as_a_file_is_refused(name):
    """Who asked for it means `to_file`, or says by a slash at the end that it is a folder."""
    shown = os.fspath(name)
    with pytest.raises(ValueError, match="would make a folder with the name of a file") as caught:
        to_files(name)
    assert f"to_file({shown!r}) writes one file; to_files({shown + '/'!r}) is a folder" in str(caught.value)


def test_a_slash_says_that_a_folder_is_one(local_context, tmp_path):
    """Its name may be any."""
    [path] = local_context.stream([1]).collect(to_files(f"{tmp_path}/report.csv/"))

    assert Path(path).parent == tmp_path / "report.csv"
