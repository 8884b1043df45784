"""`to_files(format="delta")`: the contract of sinks, and what other readers of Delta see of the table."""

from __future__ import annotations

import dataclasses
import json
import threading
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated

import deltalake
import fsspec
import pyarrow as pa
import pytest

from dstream.errors import SinkError, SourceError, UnsupportedError
from reducers import replacing, to_files
from sources import parquet_rows
from tests.storage.sinks.sink_contract import SinkCase, SinkContract


@pytest.fixture
def folder(tmp_path):
    """Where the table goes; it is not there yet."""
    return tmp_path / "table"


def rows_in(folder, version=None):
    """Return the rows of the table, as delta-rs reads them."""
    try:
        table = deltalake.DeltaTable(str(folder), version=version)
    except deltalake.exceptions.TableNotFoundError:
        return []
    return pa.table(table.to_pyarrow_table()).to_pylist()


def case_of(sink, context, folder):
    """Return a case of two epochs, which looks through the log and at everything."""
    first, second = [{"n": n} for n in (1, 2, 3)], [{"n": n} for n in (44, 55)]
    content = lambda: sorted(rows_in(folder), key=lambda row: row["n"])  # noqa: E731
    return SinkCase(sink, lambda: context, first, second, content, lambda: {str(path) for path in folder.rglob("*")})


class TestDeltaFiles(SinkContract):
    """A table that grows, and one that is replaced."""

    @pytest.fixture(params=["growing", "replacing"])
    def case(self, request, local_context, folder):
        """The sink, and how to look into its table."""
        sink = to_files(folder, format="delta")
        return case_of(replacing(sink) if request.param == "replacing" else sink, local_context, folder)


@dataclass
class Line:
    article: str
    price: Decimal


@dataclass
class Order:
    id: int
    customer: str | None
    share: float
    paid: bool
    raw: bytes
    day: date
    at: Annotated[datetime, UTC]
    noted: datetime | None
    lines: list[Line]
    first: Line | None


ORDERS = [
    Order(
        2**63 - 1,
        None,
        0.1,
        True,
        b"\0\xff",
        date(2024, 2, 29),
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(1999, 12, 31, 23, 59, 59, 999999),
        [Line("ä,\n", Decimal("1.50"))],
        None,
    ),
    Order(
        -(2**63),
        "",
        -1.5,
        False,
        b"",
        date(1, 1, 1),
        datetime(1970, 1, 1, tzinfo=UTC),
        None,
        [],
        Line("b", Decimal(-2)),
    ),
]


def test_rows_come_back_with_their_types(engine, folder):
    """None, long ints, Decimals, moments with and without a zone, lists and classes."""
    engine.stream(ORDERS, partitions=2).collect(to_files(folder, format="delta"))

    assert sorted(rows_in(folder), key=lambda row: row["id"], reverse=True) == list(map(dataclasses.asdict, ORDERS))


def test_collect_gives_the_paths_and_a_second_run_adds(engine, folder):
    """In one version each; `replacing` is a version, too, and the earlier ones can still be read."""
    rows = [{"n": n} for n in range(6)]
    first = engine.stream(rows, partitions=3).collect(to_files(folder, format="delta", name="numbers"))
    second = engine.stream(rows[:1], partitions=1).collect(to_files(folder, format="delta"))
    table = deltalake.DeltaTable(str(folder))
    assert sorted(table.file_uris()) == sorted([*first, *second])
    assert sum(table.get_add_actions()["num_records"].to_pylist()) == 7
    [third] = engine.stream(rows[2:3], partitions=1).collect(replacing(to_files(folder, format="delta")))

    assert (rows_in(folder), len(rows_in(folder, version=0)), len(rows_in(folder, version=1))) == ([{"n": 2}], 6, 7)
    assert deltalake.DeltaTable(str(folder)).file_uris() == [third]


def test_folders_by_value_stand_in_the_log(local_context, folder):
    """Whatever signs a value has; the types are those of the columns."""
    at = datetime.fromisoformat("2024-01-01T01:00:00+01:00")
    keys = [("a/b %?ü", 1, True, date(2024, 1, 2), at), (None, None, None, None, None)]
    names = ("text", "number", "flag", "day", "at")
    rows = [dict(zip(names, key, strict=True)) | {"n": n} for n, key in enumerate(keys)]
    local_context.stream(rows, partitions=2).collect(to_files(folder, format="delta", partition_by=names))

    assert sorted(rows_in(folder), key=lambda row: row["n"]) == rows
    assert deltalake.DeltaTable(str(folder)).metadata().partition_columns == list(names)


def test_folders_by_moments_of_the_first_years_have_four_digits(local_context, folder):
    """In the log, as the protocol of Delta writes them."""
    rows = [{"n": 1, "at": datetime(999, 1, 2, 3)}]
    local_context.stream(rows).collect(to_files(folder, format="delta", partition_by="at"))

    entry = (folder / "_delta_log" / f"{0:020}.json").read_text()
    assert '"partitionValues":{"at":"0999-01-02 03:00:00.000000"}' in entry.replace(": {", ":{").replace('": "', '":"')


def test_a_column_that_one_file_has_not_shown_is_none_there(local_context, folder):
    """Whichever partition or commit has it; a table cannot begin without its type."""
    with pytest.raises(SinkError, match="'a' has nothing but None so far, and a Delta table needs its type"):
        local_context.stream([{"n": 1, "a": None}]).collect(to_files(folder, format="delta"))
    local_context.stream([{"n": 1, "a": None}, {"n": 2, "a": "x"}], partitions=2).collect(
        to_files(folder, format="delta")
    )
    local_context.stream([{"n": 3, "a": None}]).collect(to_files(folder, format="delta"))

    assert sorted((row["n"], row["a"]) for row in rows_in(folder)) == [(1, None), (2, "x"), (3, None)]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"n": 2**63}, "it has more than 64 bits"),
        ({"n": time(1)}, "field 'n': time cannot be stored in Delta; map"),
        ({"n": timedelta(1)}, "field 'n': timedelta cannot be stored in Delta; map"),
        ({"n": []}, r"field 'n': list\[\?\] cannot be stored in Delta; map"),
        ({"a b": 1}, "Delta has no blanks"),
        ({"n": [{"a=b": 1}]}, "Delta has no blanks"),
        ({"n": None}, "a file of Delta needs a column"),
    ],
)
def test_what_delta_has_not_is_refused(local_context, folder, row, says):
    """In the task, with words; no table is begun."""
    with pytest.raises(TypeError, match=says):
        local_context.stream([row]).collect(to_files(folder, format="delta"))
    assert rows_in(folder) == []


def test_a_folder_by_the_empty_text_is_refused(local_context, folder):
    """Readers of Delta take it for None."""
    with pytest.raises(SinkError, match="'a' is the empty text in partition_by, which Delta takes for None"):
        local_context.stream([{"n": 1, "a": ""}]).collect(to_files(folder, format="delta", partition_by="a"))
    with pytest.raises(TypeError, match="names columns, and 'b' is a function"):
        to_files(folder, format="delta", partition_by={"b": len})


def test_a_class_makes_a_table_without_rows(local_context, folder):
    """It has the columns."""
    assert local_context.stream([]).collect(to_files(folder, format="delta", columns=Line)) == []

    assert [field.name for field in deltalake.DeltaTable(str(folder)).schema().fields] == ["article", "price"]


@pytest.mark.parametrize(
    ("row", "options", "says"),
    [
        ({"n": 1.0}, {}, "the column 'n' of the Delta table is long, and the items have double there"),
        ({"m": 1}, {}, "has the columns n, and the items have m"),
        ({"n": 1, "m": 1}, {"partition_by": "m"}, "has folders by no columns, and these files by m"),
    ],
)
def test_another_schema_is_refused(local_context, folder, row, options, says):
    """Nothing changes, and nothing is left."""
    local_context.stream([{"n": 1}]).collect(to_files(folder, format="delta"))
    before = {path for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(SinkError, match=says):
        local_context.stream([row]).collect(to_files(folder, format="delta", **options))

    assert {path for path in folder.rglob("*") if path.is_file()} == before


def test_folders_that_are_something_else_are_refused(local_context, folder):
    """Files without a log, and a table for a format without one."""
    local_context.stream([{"n": 1}]).collect(to_files(folder, format="parquet"))
    with pytest.raises(SinkError, match="is no Delta table: name a folder for the table alone"):
        local_context.stream([{"n": 1}]).collect(to_files(folder, format="delta"))
    other = folder / "other"
    local_context.stream([{"n": 1}]).collect(to_files(other, format="delta"))
    with pytest.raises(SinkError, match="is a Delta table: write format='delta' into it"):
        local_context.stream([{"n": 1}]).collect(to_files(other, format="parquet"))
    with pytest.raises(SinkError, match="holds files already"):
        local_context.stream([{"n": 1}]).collect(to_files(other, format="delta", on_existing="refuse"))


def test_a_plain_table_of_another_program_is_written(local_context, folder):
    """Before and behind its own commits and checkpoints."""
    for n in range(3):
        deltalake.write_deltalake(str(folder), pa.table({"n": [n]}), mode="append")
    deltalake.DeltaTable(str(folder)).create_checkpoint()
    local_context.stream([{"n": 3}]).collect(to_files(folder, format="delta"))
    deltalake.write_deltalake(str(folder), pa.table({"n": [4]}), mode="append")
    assert sorted(row["n"] for row in rows_in(folder)) == [0, 1, 2, 3, 4]
    local_context.stream([{"n": 5}]).collect(replacing(to_files(folder, format="delta")))

    assert rows_in(folder) == [{"n": 5}]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"delta.enableDeletionVectors": "true"}, "needs .*deletionVectors.* of the protocol"),
        ({"delta.enableChangeDataFeed": "true"}, "needs .* of the protocol, which to_files"),
    ],
)
def test_a_table_with_features_is_refused(local_context, folder, settings, says):
    """By what it needs, before anything runs."""
    deltalake.DeltaTable.create(str(folder), pa.schema([("n", pa.int64())]), configuration=settings)
    with pytest.raises(UnsupportedError, match=says):
        local_context.stream([1]).map(lambda n: n // 0).collect(to_files(folder, format="delta"))


def _rewrite(folder, change):
    """Change what the first entry of a table says."""
    path = folder / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        change(action)
    path.write_text("\n".join(map(json.dumps, actions)))


def _configured(name, value):
    def change(action):
        if "metaData" in action:
            action["metaData"]["configuration"][name] = value

    return change


def _with_field(**more):
    def change(action):
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0] |= more
            action["metaData"]["schemaString"] = json.dumps(schema)

    return change


def _with_action(action):
    if "metaData" in action:
        action["domainMetadata"] = {"domain": "a", "configuration": "", "removed": False}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_configured("delta.columnMapping.mode", "name"), "gives columns other names in files"),
        (_configured("delta.appendOnly", "true"), r"delta\.appendOnly\): leave out replacing"),
        (_with_field(nullable=False), "takes no None"),
        (_with_field(metadata={"delta.invariants": "{}"}), "has rules"),
        (_with_action, "says 'domainMetadata'"),
    ],
)
def test_what_a_log_says_and_nobody_understands_is_refused(local_context, folder, change, says):
    """One by one."""
    local_context.stream([{"n": 1}]).collect(to_files(folder, format="delta"))
    _rewrite(folder, change)

    with pytest.raises((SinkError, UnsupportedError), match=says):
        local_context.stream([{"n": 1}]).collect(replacing(to_files(folder, format="delta")))


@pytest.mark.parametrize("content", [b"", b'{"add":', b'{"add":{"path":1}}', b"[]"])
def test_a_torn_log_is_refused(local_context, folder, content):
    """With its name."""
    local_context.stream([{"n": 1}]).collect(to_files(folder, format="delta"))
    (folder / "_delta_log" / f"{1:020}.json").write_bytes(content)

    with pytest.raises(SinkError, match="the log of its Delta table is damaged"):
        local_context.stream([{"n": 1}]).collect(replacing(to_files(folder, format="delta")))


def test_a_long_log_is_summed_up(local_context, folder, monkeypatch):
    """For others as for us; removed files and epochs are in the checkpoint, too."""
    monkeypatch.setattr("dstream.delta.shared_log.SHARED_CHECKPOINT_INTERVAL", 5)
    case = case_of(to_files(folder, format="delta", partition_by="p"), local_context, folder)
    for epoch in range(1, 13):
        case.commit("job", epoch, [{"n": epoch, "p": "a b", "at": datetime(2024, 1, 1)}])
    for version in range(10):
        (folder / "_delta_log" / f"{version:020}.json").unlink()

    assert sorted(row["n"] for row in rows_in(folder)) == list(range(1, 13))
    assert deltalake.DeltaTable(str(folder)).transaction_version("job") == 12
    assert [case.target().begin("job", epoch).is_done for epoch in (12, 13)] == [True, False]
    case.commit("job", 13, [{"n": 13, "p": "a b", "at": datetime(2024, 1, 1)}])
    for path in (folder / "_delta_log").glob("*checkpoint*"):
        path.unlink()
    with pytest.raises(SinkError, match="its first commit is gone"):
        case.target().begin("job", 14)


def test_a_named_job_writes_once(local_context, folder):
    """And gives the paths of its files again; the log has its name and epoch."""
    sink = to_files(folder, format="delta", job="nightly")
    paths = [local_context.stream([{"n": 1}]).collect(sink) for _ in range(2)]

    assert (len(paths[0]), paths[0]) == (1, paths[1])
    assert (rows_in(folder), deltalake.DeltaTable(str(folder)).transaction_version("nightly")) == ([{"n": 1}], 1)


def test_writers_at_the_same_time_all_commit(local_context, folder):
    """Those of ours take turns; who loses a version to another program takes the next one."""
    case = case_of(to_files(folder, format="delta"), local_context, folder)
    case.commit("first", 1, [{"n": 0}])
    jobs = [case.target().begin(None) for _ in range(4)]
    receipts = [case.written(job, [{"n": number}]) for number, job in enumerate(jobs, 1)]
    threads = [threading.Thread(target=job.commit, args=(each,)) for job, each in zip(jobs, receipts, strict=True)]
    for thread in threads:
        thread.start()
    deltalake.write_deltalake(str(folder), pa.table({"n": [9]}), mode="append")
    for thread in threads:
        thread.join()

    assert sorted(row["n"] for row in rows_in(folder)) == [0, 1, 2, 3, 4, 9]


def test_a_lost_version_is_tried_again(local_context, folder, monkeypatch):
    """On what the table is then: another program has put an entry between the look and ours."""
    case = case_of(replacing(to_files(folder, format="delta")), local_context, folder)
    case.commit("first", 1, [{"n": 0}])
    job = case.target().begin(None)
    receipts = case.written(job, [{"n": 1}])
    real, lost = type(job.log.place).create, []

    def create(place, name, content):
        if not lost:
            lost.append(name)
            deltalake.write_deltalake(str(folder), pa.table({"n": [9]}), mode="append")
        return real(place, name, content)

    monkeypatch.setattr(type(job.log.place), "create", create)
    job.commit(receipts)

    assert (rows_in(folder), len(lost)) == ([{"n": 1}], 1)


def test_an_entry_that_was_put_is_never_taken_back(local_context, folder, monkeypatch):
    """The disk failed behind it: the run is aborted, and its files are the table's."""
    case = case_of(to_files(folder, format="delta"), local_context, folder)
    job = case.target().begin("job")
    receipts = case.written(job, case.first)
    real = type(job.log.place).create

    def create(place, name, content):
        real(place, name, content)
        raise SinkError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(type(job.log.place), "create", create)
        with pytest.raises(SinkError, match="the disk is gone"):
            job.commit(receipts)
    job.abort()

    assert (case.content(), case.target().begin("job").is_done) == (case.first, True)


def test_a_table_at_a_url(local_context, monkeypatch):
    """The log stands beside the files; commits take turns by the note."""
    monkeypatch.setattr("dstream.filesystem.output_folders.SETTLED", 0.01)
    url = f"memory://{uuid.uuid4().hex}/out"
    rows = [{"n": n, "p": "a b"} for n in range(3)]
    for _ in range(2):
        local_context.stream(rows).collect(to_files(url, format="delta", partition_by="p", job="nightly"))
    [path] = local_context.stream(rows).collect(replacing(to_files(url, format="delta", partition_by="p")))

    memory = fsspec.filesystem("memory")
    last = [json.loads(line) for line in memory.cat_file(f"{url}/_delta_log/{1:020}.json").splitlines()]
    assert [next(iter(action)) for action in last] == ["commitInfo", "remove", "add"]
    assert (memory.exists(path), len(memory.ls(f"{url}/_delta_log"))) == (True, 2)
    with pytest.raises(SourceError, match="is a table of Delta"):
        local_context.read(parquet_rows(url)).to_list()


def test_files_of_a_table_are_not_read_as_a_folder(local_context, folder):
    """The log says which of them count."""
    local_context.stream([{"n": 1}]).collect(to_files(folder, format="delta"))
    paths = local_context.stream([{"n": 2}]).collect(replacing(to_files(folder, format="delta")))

    with pytest.raises(SourceError, match=r"is a table of Delta, .*: its log says which ones count"):
        local_context.read(parquet_rows(folder)).to_list()
    assert local_context.read(parquet_rows(paths)).to_list() == [{"n": 2}]
