"""Each flag of the table of sources, proved by what a source of that name does."""

from __future__ import annotations

import inspect
import socket
import threading
from contextlib import closing
from typing import Any

import pytest

import dstream as ds
import sources
from dstream.spi import OpenedLater
from reducers import to_ilist
from sources import socket_lines
from tests.house.test_connectors import OF_PROCESSORS, SOURCES
from tests.jobs.unbounded.streams import eventually, pipeline_of
from tests.sources.flagged_sources import HELD, are_held

FLAGS = ("bounded", "replayable", "checkpointed", "distributed")
ROWS = {name: dict(zip(FLAGS, cells, strict=False)) for name, cells in SOURCES.items() if name not in OF_PROCESSORS}
ENDLESS = sorted(name for name, row in ROWS.items() if row["bounded"] == "no")
BOUNDED = sorted(ROWS.keys() - {*ENDLESS, "socket_lines"})


@pytest.fixture
def context(tmp_path):
    """A context on the lake."""
    with ds.connect(engine="local", storage=tmp_path / "lake") as context:
        yield context


@pytest.fixture
def held(request, name, context, tmp_path):
    """The source of a name, with something to read."""
    folder = tmp_path / "held"
    folder.mkdir()
    more = [request.getfixturevalue("broker")] if name == "kafka" else []
    return HELD[name](folder, context, *more)


def opened(source: Any, context: ds.Context) -> Any:
    """Return the source as a run has it."""
    return source.opened(context) if isinstance(source, OpenedLater) else source


def ranges(source: Any) -> list[Any]:
    """Return what a new job reads of a source without an end, as splits, when each partition has an item."""
    offsets, splits = dict(source.begin()), list[Any]()

    def have_come() -> bool:
        reached = source.reach(offsets)
        splits[:] = [source.split(name, offsets.get(name), stop) for name, stop in reached.items()]
        return all(any(True for _ in split.read()) for split in splits)

    eventually(have_come)
    return splits


def test_every_source_of_the_table_is_proved():
    """A new one without a proof fails here."""
    assert {*HELD, "socket_lines"} == {*SOURCES} - OF_PROCESSORS
    assert {row["replayable"] for row in ROWS.values()} == {"yes", "no"}


@pytest.mark.parametrize("name", BOUNDED)
def test_bounded_and_replayable(name, held, context):
    """It ends, and gives the same when it is read again: a run after the first one reads all."""
    assert (ROWS[name]["replayable"], ROWS[name]["checkpointed"]) == ("yes", "no")
    first, again = (context.read(held.source).to_list() for _ in range(2))

    assert are_held(held, first)
    assert first == again


@pytest.mark.parametrize("name", ENDLESS)
def test_unbounded_and_replayable(name, held, context):
    """A range that is read again gives the same items."""
    assert ROWS[name]["replayable"] == "yes"
    splits = ranges(opened(held.source, context))
    first, again = ([item for split in splits for item in split.read()] for _ in range(2))

    assert held.first is None or are_held(held, first)
    assert first == again


@pytest.mark.parametrize("name", sorted({*ENDLESS, "socket_lines"} - {"stream_of", "stream_source_from"}))
def test_a_new_job_begins_where_start_says(name):
    """Every source that can be read again has `start=`; items and functions of the user's own begin where they do."""
    assert "start" in inspect.signature(getattr(sources, name)).parameters


def test_socket_lines_are_not_replayable():
    """What was read is gone: another run connects again, and gets what comes then."""
    row = ROWS["socket_lines"]
    assert [row[flag] for flag in FLAGS] == ["yes", "no", "no", "no"]
    with closing(socket.create_server(("127.0.0.1", 0))) as server, ds.connect(engine="local") as context:
        source = socket_lines("127.0.0.1", server.getsockname()[1])
        assert len(list(source.splits(4))) == 1

        def serve() -> None:
            for text in (b"a\n", b"b\n"):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(text)

        serving = threading.Thread(target=serve)
        serving.start()
        assert [context.read(source).to_list() for _ in range(2)] == [["a"], ["b"]]
        serving.join()


@pytest.mark.parametrize("name", ENDLESS)
def test_checkpointed(name, held, context, tmp_path):
    """A job that goes on with another driver reads what it has not read, and nothing twice."""
    assert ROWS[name]["checkpointed"] == "yes"
    plan, config = pipeline_of(held.source, to_ilist("out")), ds.JobConfig(max_items=5)
    context.new_job(plan, name="job", config=config)
    eventually(lambda: are_held(held, context.get_list("out").copy()))
    context.close()
    with ds.connect(engine="local", storage=tmp_path / "lake") as other:
        before = len(out := other.get_list("out"))
        held.more(other)
        other.new_job(plan, name="job", config=config)
        eventually(lambda: len(out) > before)
        items = out.copy()

    assert are_held(held, items, held.then)


@pytest.mark.parametrize("name", sorted({*HELD}))
def test_distributed(name, held, context, tiny_splits):
    """Several tasks have something to read, or one."""
    flag = ROWS[name]["distributed"]
    several = parts(name, held.source, context)
    if held.alone is not None:
        assert flag.startswith("with ")
        assert parts(name, held.alone, context) == 1
        assert several > 1
    else:
        assert (several > 1) == (flag == "yes")


def parts(name: str, source: Any, context: ds.Context) -> int:
    """Return how many tasks have something to read."""
    found = opened(source, context)
    if name in ENDLESS:
        return len(ranges(found))
    return sum(any(True for _ in split.read()) for split in found.splits(4))
