"""`to_files` behind URLs: the contract of sinks in a file system of fsspec, and on S3, as moto plays it."""

from __future__ import annotations

import json
import re
import threading
import uuid
from importlib import import_module

import deltalake
import fsspec
import obstore.fsspec
import pytest

from dstream.errors import SinkError
from reducers import replacing, to_files
from sources import csv_rows, parquet_rows, text_files
from tests.storage.sinks.sink_contract import SinkCase, SinkContract, dying

MEMORY = fsspec.filesystem("memory")
CHANGES = [(MEMORY, name) for name in ("pipe_file", "cp_file", "rm_file")]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Settle a note at once: there is no other commit."""
    monkeypatch.setattr("dstream.filesystem.output_folders.SETTLED", 0.01)


@pytest.fixture
def url():
    """A folder in memory; it is not there yet."""
    return f"memory://{uuid.uuid4().hex}/out"


@pytest.fixture
def s3_url(s3_url):
    """A folder in a bucket of its own, which fsspec reaches through obstore."""
    obstore.fsspec.register("s3")
    yield s3_url
    import_module("fsspec.registry")._registry.pop("s3")  # Other tests see fsspec as it is installed.


def names(url):
    """Return what is in a folder, with all that is below."""
    fs, inside = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    return {name.partition(inside.strip("/") + "/")[2] for name in fs.find(inside)}


def case_of(sink, context, url):
    """Return a case of two epochs, which looks at the published files and at everything."""

    def content():
        seen = sorted(name for name in names(url) if name[0] not in "._")
        return [line for name in seen for line in fsspec.open(f"{url}/{name}").open().read().decode().splitlines()]

    return SinkCase(sink, lambda: context, [1, 2, 3], [44, 55], content, lambda: names(url))


class TestRemoteFiles(SinkContract):
    """In memory, and on S3; files that take the place of others."""

    @pytest.fixture(params=["memory", "memory replacing", "s3"])
    def case(self, request, local_context):
        """The sink, and how to look into its folder."""
        url = request.getfixturevalue("s3_url" if request.param == "s3" else "url")
        sink = to_files(url)
        return case_of(replacing(sink) if "replacing" in request.param else sink, local_context, url)


@pytest.mark.parametrize("place", ["url", "s3_url"])
def test_files_come_back(local_context, request, place):
    """By the URL of the folder; in folders by value, too."""
    url = request.getfixturevalue(place)
    rows = [{"n": n, "even": n % 2 == 0} for n in range(5)]
    local_context.stream(rows).collect(to_files(url, format="parquet", compression="zst"))
    assert local_context.read(parquet_rows(url)).to_list() == rows
    paths = local_context.stream(rows).collect(replacing(to_files(url, format="csv", partition_by="even")))

    assert {path.removeprefix(f"{url}/").partition("/")[0] for path in paths} == {"even=true", "even=false"}
    assert [row["n"] for row in local_context.read(csv_rows(f"{url}/even=true")).to_list()] == ["0", "2", "4"]
    listed = json.loads(fsspec.open(f"{url}/_SUCCESS").open().read())["files"]
    assert names(url) == {"_SUCCESS", *listed}


def test_a_table_of_delta_on_s3(local_context, s3_url):
    """Others read all of a run from its log: rows that were added, once for a job, and replaced; no note is left."""
    rows = [{"n": n, "p": "a b"} for n in range(3)]
    for _ in range(2):
        local_context.stream(rows).collect(to_files(s3_url, format="delta", partition_by="p", job="nightly"))
    assert sorted(delta_rows(s3_url)) == [(n, "a b") for n in range(3)]
    again = replacing(to_files(s3_url, format="delta", partition_by="p"))
    paths = local_context.stream([{"n": 9, "p": "é"}]).collect(again)

    assert delta_rows(s3_url) == [(9, "é")]
    assert local_context.read(parquet_rows(paths)).to_list() == [{"n": 9}]  # Its folder and the log have the other.
    assert {name for name in names(s3_url) if name.startswith(".dstream/committing")} == set()


def delta_rows(url):
    """Return what delta-rs reads, which takes the place of the store and its keys from the environment."""
    return [tuple(row.values()) for row in deltalake.DeltaTable(url).to_pyarrow_table().to_pylist()]


@pytest.mark.parametrize("place", ["url", "s3_url"])
def test_the_urls_of_files_can_be_read(local_context, request, place):
    """Those that `collect` gives; so can a folder and a glob, and each names the files by their URLs."""
    url = request.getfixturevalue(place)
    paths = local_context.stream("ab").collect(to_files(url, compression="zst"))
    assert [path.startswith(f"{url}/part-") for path in paths] == [True]

    for path in paths, url, f"{url}/*.zst":
        found = local_context.read(text_files(path, with_path=True)).to_list()
        assert [(name.replace(":///", "://"), item) for name, item in found] == [(paths[0], "a"), (paths[0], "b")]


def test_a_second_run_adds_and_a_named_job_does_once(local_context, url):
    """As in folders of this machine."""
    for _ in range(2):
        local_context.stream([1]).collect(to_files(url, job="nightly"))
        local_context.stream([2]).collect(to_files(url))

    assert local_context.read(text_files(url)).to_list() == ["1", "2", "2"]


def test_files_of_others_are_refused(local_context, url):
    """Before anything runs."""
    MEMORY.pipe_file(f"{url}/mine.txt", b"")

    with pytest.raises(SinkError, match=r"holds 'mine\.txt', which no to_files\(\) has written"):
        local_context.stream([1]).map(lambda n: n // 0).collect(to_files(url))


@pytest.mark.parametrize("stops_at", range(8))
def test_a_commit_that_dies_is_finished_by_the_next(local_context, url, monkeypatch, stops_at):
    """Wherever it stopped after its journal was there; before, nothing has happened. Somebody removes its note."""
    local_context.stream([0]).collect(to_files(url))
    case = case_of(replacing(to_files(url, job="nightly")), local_context, url)
    job = case.target().begin("nightly")
    receipts = [receipt for n in (1, 2) for receipt in case.written(job, [n])]
    dying(monkeypatch, stops_at, CHANGES, lambda: job.commit(receipts))
    if MEMORY.exists(f"{url}/.dstream/committing"):
        MEMORY.rm_file(f"{url}/.dstream/committing")
    for _ in range(2):
        case.target().begin("nightly").commit(receipts)

    assert case.content() == ["1", "2"]
    assert {name for name in names(url) if name.startswith(".dstream")} == {_record(url)}


def _record(url):
    return next(name for name in names(url) if name.startswith(".dstream/jobs/"))


def test_who_commits_waits_for_its_turn(local_context, url, monkeypatch):
    """And not for ever; the error says what to remove if the other process died."""
    case = case_of(to_files(url), local_context, url)
    job = case.target().begin("job")
    receipts = case.written(job, [1])
    monkeypatch.setattr("dstream.filesystem.output_folders.LONGEST_WAIT", 0.0)
    MEMORY.pipe_file(f"{url}/.dstream/committing", b"another one")
    with pytest.raises(SinkError, match=r"If it died there, remove memory://.*/out/\.dstream/committing"):
        job.commit(receipts)
    MEMORY.rm_file(f"{url}/.dstream/committing")
    job.commit(receipts)

    assert case.content() == ["1"]


def test_who_is_overwritten_waits(local_context, url, monkeypatch):
    """Of two who saw no note, the one that wrote last has its turn; the other one publishes nothing meanwhile."""
    case = case_of(to_files(url), local_context, url)
    job = case.target().begin("job")
    receipts = case.written(job, [1])
    note, contents = f"{url}/.dstream/committing", []

    def sleep(seconds):
        contents.append(case.content())
        if len(contents) == 1:
            MEMORY.pipe_file(note, b"another one")
        elif len(contents) == 3:
            MEMORY.rm_file(note)

    monkeypatch.setattr("dstream.filesystem.output_folders.time.sleep", sleep)
    job.commit(receipts)

    assert (contents, case.content(), MEMORY.exists(note)) == ([[]] * 4, ["1"], False)


def test_a_commit_that_fails_is_finished_by_the_next(local_context, url, monkeypatch):
    """Its journal decides: what a store refuses once is done later, by whoever commits then."""
    case = case_of(to_files(url), local_context, url)
    job = case.target().begin(None)
    receipts = [receipt for n in (1, 2) for receipt in case.written(job, [n])]
    with monkeypatch.context() as patch:
        patch.setattr(MEMORY, "cp_file", lambda *args: 1 // 0)
        with pytest.raises(SinkError, match=r"cannot write memory://.*ZeroDivisionError"):
            job.commit(receipts)
    job.abort()
    case.commit("other", 1, [3])

    assert case.content() == ["1", "2", "3"]


def test_names_hold_a_part_of_the_run(local_context, url):
    """So that two commits never overwrite a file of each other."""
    [first] = local_context.stream([1]).collect(to_files(url))
    [second] = local_context.stream([1]).collect(to_files(url))

    assert re.fullmatch(r".*/part-000001-00000-[0-9a-f]{8}\.txt", first)
    assert first[-12:] != second[-12:]


def test_commits_at_the_same_time_take_turns(local_context, url, monkeypatch):
    """All files are listed, and none is written over."""
    monkeypatch.setattr("dstream.filesystem.output_folders.SETTLED", 0.1)
    case = case_of(to_files(url), local_context, url)
    jobs = [case.target().begin(None) for _ in range(4)]
    receipts = [case.written(job, [number]) for number, job in enumerate(jobs)]
    threads = [threading.Thread(target=job.commit, args=(each,)) for job, each in zip(jobs, receipts, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(case.content()) == ["0", "1", "2", "3"]
    assert len(json.loads(MEMORY.cat_file(f"{url}/_SUCCESS"))["files"]) == 4


def test_what_a_store_refuses_is_an_error_of_the_sink(local_context, url, monkeypatch):
    """With the URL, and without its secrets."""
    monkeypatch.setattr(MEMORY, "open", lambda *args, **kwargs: 1 // 0)

    with pytest.raises(SinkError, match=r"cannot write memory://.*\.dstream/.*: ZeroDivisionError"):
        local_context.stream([1]).collect(to_files(url))


@pytest.mark.parametrize("place", ["url", "s3_url"])
def test_epochs_of_a_job_without_an_end_become_one_file(local_context, place, request):
    """Objects are read, joined and put anew; those that were joined are removed."""
    folder = request.getfixturevalue(place)
    target = to_files(folder, format="csv", columns=["n"], compression="gz", roll_at=(None, 3600)).open(local_context)
    for epoch in (1, 2, 3):
        job = target.begin_epoch("job", epoch)
        job.commit(list(job.writer.write(iter([(epoch,)]))))
    fs, inside = fsspec.core.url_to_fs(folder)
    assert [name for name in fs.find(inside) if "/.dstream/" not in name] == []
    target.show_held("job", is_over=True)

    assert local_context.read(csv_rows(folder)).to_list() == [{"n": "1"}, {"n": "2"}, {"n": "3"}]
    assert [name for name in fs.find(f"{inside}/.dstream") if "/jobs/" not in name] == []
