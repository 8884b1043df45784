"""`to_files(roll_at=)` in jobs without an end: files of several epochs become one, and no item is lost or doubled."""

from __future__ import annotations

import json
import os
import pickle
import time
import uuid
from pathlib import Path

import pytest

import dstream.connectors.files.writers
from dstream.errors import IllegalStateError, SinkError
from reducers import to_files
from sources import avro_records, csv_rows, json_lines, parquet_rows, text_files
from tests.storage.sinks.sink_contract import LOCAL_CHANGES, Died, let_die

HOUR = 3600.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where files go; it is not there yet."""
    return tmp_path / "out"


class Driver:
    """Does what the driver of a job without an end does with a sink."""

    def __init__(self, sink):
        self.target = sink.open(None)

    def stage(self, epoch, *parts):
        """Run the tasks of an epoch, one for each part; give the job and the receipts."""
        job = self.target.begin_epoch("job", epoch)
        writer = pickle.loads(pickle.dumps(job.writer))
        return job, [receipt for part in parts for receipt in writer.write(iter(part))]

    def commit(self, epoch, *parts):
        """Run an epoch, and publish it."""
        job, receipts = self.stage(epoch, *parts)
        job.commit(receipts)

    def show(self, is_over=True):
        """Look for what is held back."""
        self.target.show_held("job", is_over=is_over)


def seen(folder):
    """Return the texts of the files that readers see, in order."""
    return [path.read_text() for path in sorted(folder.rglob("part-*"))]


def hidden(folder):
    """Return the names of the files that tasks have staged."""
    return {path.name for path in (folder / ".dstream").iterdir()} - {"jobs"}


def test_epochs_are_seen_together_as_one_file(folder):
    """Nothing before it is time; then all of them, in order, and nothing is left in between."""
    driver = Driver(to_files(folder, roll_at=(None, HOUR)))
    for epoch in (1, 2, 3):
        driver.commit(epoch, [f"{epoch}a"], [f"{epoch}b"])
        driver.show(is_over=False)
    assert (seen(folder), len(hidden(folder))) == ([], 6)
    driver.show()

    assert seen(folder) == ["1a\n1b\n2a\n2b\n3a\n3b\n"]
    assert json.loads((folder / "_SUCCESS").read_text())["files"] == ["part-000001-00000.txt"]
    assert hidden(folder) == set()


def test_without_a_size_each_epoch_is_seen_at_once(folder):
    """Who says nothing of sizes does not wait."""
    driver = Driver(to_files(folder))
    driver.commit(1, "a")
    driver.show()

    assert seen(folder) == ["a\n"]


def test_a_job_with_an_end_holds_nothing_back(local_context, folder):
    """It has one epoch, and no other one comes."""
    local_context.stream("ab").collect(to_files(folder, roll_at=(None, HOUR), job="nightly"))

    assert seen(folder) == ["a\nb\n"]


def test_files_have_their_size(folder):
    """The commit that reaches it shows all; no file has more bytes."""
    driver = Driver(to_files(folder, roll_at=(10, None)))
    driver.commit(1, ["aaa"])
    assert seen(folder) == []
    driver.commit(2, ["bbb"], ["ccc"])

    assert seen(folder) == ["aaa\nbbb\n", "ccc\n"]


def test_files_are_seen_when_it_is_time(folder, monkeypatch):
    """Between epochs, counted from the first one that is held back; or with an epoch that comes then."""
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    driver = Driver(to_files(folder, roll_at=(None, 60)))
    driver.show(is_over=False)
    now[0] += 30
    driver.commit(1, "a")
    for waited, expected in [(59, []), (60, ["a\n"])]:
        now[0] = 1030.0 + waited
        driver.show(is_over=False)
        assert seen(folder) == expected
    driver.commit(2, "b")
    now[0] += 60
    driver.commit(3, "c")

    assert seen(folder) == ["a\n", "b\nc\n"]


def test_a_clock_that_goes_back_lets_nobody_wait(folder, monkeypatch):
    """What is held since a time to come is due."""
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    Driver(to_files(folder, roll_at=(None, 60))).commit(1, "a")
    now[0] = 10.0
    Driver(to_files(folder, roll_at=(None, 60))).show(is_over=False)

    assert seen(folder) == ["a\n"]


ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": ""}, {"a": 3, "b": 'q"\n,'}, {"a": 4, "b": "\ufeffy"}]
TEXTS = ["\ufeffmarked", "\u00e9", "", "\ufeffmarked"]
FORMATS = {
    "text": ({}, TEXTS, text_files),
    "utf-16": ({"encoding": "utf-16"}, TEXTS, lambda path: text_files(path, encoding="utf-16")),
    "utf-8-sig": ({"encoding": "utf-8-sig"}, TEXTS, lambda path: text_files(path, encoding="utf-8-sig")),
    "iso2022_jp": ({"encoding": "iso2022_jp"}, ["\u3042", "a"], lambda path: text_files(path, encoding="iso2022_jp")),
    "json": ({"format": "json"}, ROWS, json_lines),
    "csv": ({"format": "csv"}, ROWS, csv_rows),
    "csv, marked": ({"format": "csv", "columns": ["\ufeffa\n", "b"]}, [(1, 2), (3, 4)], csv_rows),
    "csv, utf-16": ({"format": "csv", "encoding": "utf-16"}, ROWS, lambda path: csv_rows(path, encoding="utf-16")),
    "parquet": ({"format": "parquet"}, ROWS, parquet_rows),
    "avro": ({"format": "avro"}, ROWS, avro_records),
}


@pytest.mark.parametrize("compression", [None, "gz", "bz2", "xz", "zst"])
@pytest.mark.parametrize("format", FORMATS)
def test_each_format_comes_back(local_context, tmp_path, format, compression):
    """A file of three epochs holds what a file of one does, also where headers and marks begin files."""
    arguments, items, source = FORMATS[format]
    if (format, compression) in [("parquet", "bz2"), ("parquet", "xz"), ("avro", "zst")]:
        return  # They are refused at the call.
    together, joined = tmp_path / "together", tmp_path / "joined"
    sink = {"roll_at": (None, HOUR), "compression": compression, **arguments}
    local_context.stream(items * 2).collect(to_files(together, **sink))
    driver = Driver(to_files(joined, **sink))
    driver.commit(1, items[:1])
    driver.commit(2, items[1:])
    driver.commit(3, items)
    driver.show()

    [path] = joined.glob("part*")
    read = local_context.read(source(str(path))).to_list()
    assert read == local_context.read(source(str(together))).to_list()
    assert len(read) == 2 * len(items)


def test_rows_of_many_epochs_become_one_row_group(folder):
    """A row group for each epoch would be dear to read."""
    import pyarrow.parquet

    driver = Driver(to_files(folder, format="parquet", roll_at=(None, HOUR)))
    for epoch in range(1, 9):
        driver.commit(epoch, [{"n": epoch}])
    driver.show()

    [path] = folder.glob("part*")
    found = pyarrow.parquet.ParquetFile(path)
    assert (found.num_row_groups, found.read().to_pylist()) == (1, [{"n": n} for n in range(1, 9)])


def test_files_with_other_columns_stay_apart(local_context, folder):
    """An epoch may have nothing but None in a column, or other columns: each is readable, and the job goes on."""
    driver = Driver(to_files(folder, format="parquet", roll_at=(None, HOUR)))
    for epoch, row in enumerate([{"n": 1}, {"n": 2}, {"n": None}, {"m": 3}, {"m": 4}], 1):
        driver.commit(epoch, [row])
    driver.show()

    found = [local_context.read(parquet_rows(path)).to_list() for path in sorted(folder.glob("part*"))]
    assert found == [[{"n": 1}, {"n": 2}], [{"n": None}], [{"m": 3}, {"m": 4}]]


def test_each_folder_has_its_files(folder):
    """Values of `partition_by` stay apart, and each folder has the order of its items."""
    driver = Driver(to_files(folder, format="json", partition_by="k", roll_at=(None, HOUR)))
    driver.commit(1, [{"k": "a", "n": 1}, {"k": "b", "n": 2}])
    driver.commit(2, [{"k": "b", "n": 3}, {"k": "a", "n": 4}])
    driver.show()

    assert {path.parent.name: path.read_text() for path in folder.rglob("part*")} == {
        "k=a": '{"k": "a", "n": 1}\n{"k": "a", "n": 4}\n',
        "k=b": '{"k": "b", "n": 2}\n{"k": "b", "n": 3}\n',
    }


def test_many_small_epochs_are_joined_on_the_way(folder, monkeypatch):
    """So that what is written down with each commit stays small."""
    monkeypatch.setattr(dstream.connectors.files.writers, "MOST_HELD", 4)
    driver = Driver(to_files(folder, roll_at=(None, HOUR)))
    for epoch in range(1, 20):
        driver.commit(epoch, [str(epoch)])
        assert (seen(folder), len(hidden(folder)) <= 4) == ([], True)
    driver.show()

    assert seen(folder) == ["".join(f"{n}\n" for n in range(1, 20))]


# ------------------------------------------------------------------------------------------------ where processes die


CHANGES = [*LOCAL_CHANGES, (dstream.filesystem.output_folders.LocalOutput, "new_file")]
"""A file that is opened to be written is a change, too."""


def driven(folder, kept, size):
    """Drive a job as its log says, from where an earlier driver died: `kept` has the receipts of each epoch."""
    driver = Driver(to_files(folder, roll_at=(size, None)))
    for epoch, receipts in list(kept.items())[-1:]:
        job = driver.target.begin_epoch("job", epoch)
        if not job.is_done:
            job.commit(receipts)
    for epoch in range(len(kept) + 1, 4):
        job, receipts = driver.stage(epoch, [f"{epoch}a"], [f"{epoch}b"])
        kept[epoch] = json.loads(json.dumps(receipts))
        job.commit(receipts)
    driver.show()


@pytest.mark.parametrize(("most_held", "size"), [(2, 20), (500, 8)])
def test_no_item_is_lost_or_doubled_wherever_a_driver_dies(tmp_path, monkeypatch, most_held, size):
    """At each change of the file system in turn, and at two of them: the next driver goes on from the log."""
    monkeypatch.setattr(dstream.connectors.files.writers, "MOST_HELD", most_held)
    items = [f"{epoch}{part}" for epoch in (1, 2, 3) for part in "ab"]
    stops_at, has_died = 0, True
    while has_died:
        folder, kept, deaths = tmp_path / str(stops_at), {}, []
        for at in (stops_at, stops_at // 2, 10_000):
            with monkeypatch.context() as patch:
                let_die(patch, at, CHANGES)
                try:
                    driven(folder, kept, size)
                except Died:
                    deaths.append(at)
        assert "".join(seen(folder)).split() == items, stops_at
        listed = json.loads((folder / "_SUCCESS").read_text())["files"]
        assert listed == sorted(path.name for path in folder.glob("part*"))
        has_died, stops_at = stops_at in deaths, stops_at + 1

    assert stops_at > 20


def test_a_driver_that_was_replaced_changes_nothing(folder):
    """It commits, shows and aborts what another one has committed since."""
    sink = to_files(folder, roll_at=(None, HOUR))
    old = Driver(sink)
    job, receipts = old.stage(1, "a")
    new = Driver(sink)
    new.target.begin_epoch("job", 1).commit(receipts)
    new.commit(2, "b")
    job.commit(receipts)
    job.abort()
    old.show()
    new.commit(3, "c")
    old.show()

    assert seen(folder) == ["a\nb\n", "c\n"]


def test_what_is_held_back_outlives_a_week(folder):
    """A job may be suspended for long; what nobody holds back is removed after a week."""
    sink = to_files(folder, roll_at=(None, HOUR))
    Driver(sink).commit(1, "a")
    lost = folder / ".dstream" / f"{uuid.uuid4().hex}-{uuid.uuid4().hex}"
    lost.write_text("left by a task that died")
    for path in (folder / ".dstream").iterdir():
        os.utime(path, (0, 0))
    to_files(folder).open(None).begin("other").commit([])
    assert not lost.exists()
    Driver(sink).show()

    assert seen(folder) == ["a\n"]


def test_what_is_held_back_and_is_gone_is_an_error(folder):
    """Somebody has emptied the hidden folder: nothing is shown in part."""
    driver = Driver(to_files(folder, roll_at=(None, HOUR)))
    driver.commit(1, "a")
    driver.commit(2, "b")
    [first, _] = hidden(folder)
    (folder / ".dstream" / first).unlink()

    with pytest.raises(IllegalStateError, match="what a task wrote is no more"):
        driver.show()
    assert seen(folder) == []


def test_a_disk_that_is_full_while_files_are_joined_leaves_all(folder, monkeypatch):
    """The error is told, nothing is seen, and the next attempt shows everything."""
    driver = Driver(to_files(folder, roll_at=(None, HOUR)))
    driver.commit(1, "a")
    driver.commit(2, "b")
    with monkeypatch.context() as patch:
        patch.setattr(
            "dstream.filesystem.output_folders._LocalFile.write",
            lambda self, data: (_ for _ in ()).throw(SinkError("full")),
        )
        with pytest.raises(SinkError, match="full"):
            driver.show()
    assert (seen(folder), len(hidden(folder))) == ([], 2)
    driver.show()

    assert seen(folder) == ["a\nb\n"]
