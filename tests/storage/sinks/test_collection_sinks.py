"""The sinks of maps, lists and caches in each storage hold the contract of sinks; other processes commit for them."""

from __future__ import annotations

import ast
import contextlib
import operator
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import dstream as ds
from dstream.errors import IllegalStateError
from reducers import replacing, to_icache, to_ilist, to_imap, to_iset
from tests.storage.sinks.sink_contract import SinkCase, SinkContract

SINKS = {
    "merging": to_imap("target", str, abs, operator.add, on_existing="merge"),
    "cache": to_icache("target", str, abs),
    "list": to_ilist("target"),
    "set": to_iset("target"),
    "replacing": replacing(to_ilist("target")),
}


@pytest.fixture(params=["memory", "lake", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each storage in turn, empty."""
    if request.param == "redis":
        server = request.getfixturevalue("redis_server")
        with contextlib.closing(server.client()) as client:
            client.flushall()
        return str(server.url)
    return f"memory:{uuid.uuid4()}" if request.param == "memory" else str(tmp_path / "lake")


@pytest.fixture
def connect(url: str) -> Iterator[object]:
    """Make contexts on the storage."""
    with contextlib.ExitStack() as stack:

        def connected() -> ds.Context:
            return stack.enter_context(ds.connect(engine="local", storage=url, pickle="trusted"))

        yield connected


def hidden(request: pytest.FixtureRequest, url: str) -> set[str]:
    """Give the data files of a lake, or the keys of a server."""
    if not url.startswith("redis:"):
        return {str(path) for path in Path(url).glob("[!_]*/**/*.parquet") if "_delta_log" not in path.parts}
    with contextlib.closing(request.getfixturevalue("redis_server").client()) as client:
        return {key.decode() for key in client.keys("*") if b":s:" in key and not key.endswith(b":done")}


class TestCollectionSinks(SinkContract):
    """Every sink of this project, in every storage."""

    @pytest.fixture(params=SINKS)
    def case(self, request, connect, url):
        """The sink, and how to look at its collection."""
        sink, name = SINKS[request.param], request.param
        connect().get_cache("target", ttl=3600)

        def content():
            found = connect()
            if name in ("list", "replacing"):
                return list(found.get_list("target"))
            if name == "set":
                return sorted(found.get_set("target"))
            return sorted((found.get_cache if name == "cache" else found.get_map)("target").items())

        return SinkCase(sink, connect, [1, 2, 3], [44, 55], content, lambda: hidden(request, url))


def _commit(url, sink, receipts):
    """Commit in a process of its own, twice, and say what is there."""
    for _ in range(2):
        with ds.connect(engine="local", storage=url, pickle="trusted") as context:
            target = sink.open(context)
            target.begin("nightly", 7).commit(receipts)
            found = target.result()
            content = sorted(found.items()) if hasattr(found, "items") else list(found)
    return content


@pytest.mark.parametrize("url", ["lake", "redis"], indirect=True)
@pytest.mark.parametrize(("name", "content"), [("merging", [("1", 11), ("2", 2)]), ("list", [1, 2])])
def test_a_process_of_its_own_commits(url, connect, name, content, elsewhere):
    """Receipts and the sink travel; what a driver merged with is merged with again there if it has changed."""
    sink, case = SINKS[name], SinkCase(SINKS[name], connect, [], [], list, set)
    receipts = case.written(sink.open(connect()).begin("nightly", 7), [1, 2])
    if name == "merging":
        connect().get_map("target")["1"] = 10

    assert elsewhere(_commit, url, sink, receipts).returned() == content
    assert sink.open(connect()).begin("nightly", 7).is_done


@pytest.mark.parametrize("name", ["merging", "list"])
def test_what_is_no_receipt_is_refused(url, connect, name):
    """Receipts may have been kept anywhere, so they are input: none leads out of the collection."""
    target = SINKS[name].open(connect())
    case = SinkCase(SINKS[name], connect, [], [], list, set)
    receipts = repr(case.written(target.begin("job"), [1, 2]))
    forged = re.sub(r"s:[0-9a-f:]+|[0-9a-f-]+\.parquet", "../../meta", receipts)

    for each in [{"at": "nowhere"}], [None], *([] if forged == receipts else [ast.literal_eval(forged)]):
        with pytest.raises(IllegalStateError, match=r"'target': nothing was changed, since .* is no receipt"):
            target.begin("job").commit(each)


@pytest.mark.parametrize("url", ["redis"], indirect=True)
def test_attempts_that_lost_are_removed_by_who_commits(request, url, connect):
    """On a server each takes memory until it is removed."""
    sink, case = SINKS["list"], SinkCase(SINKS["list"], connect, [], [], list, set)
    job = sink.open(connect()).begin("job")
    case.written(job, ["losing"])
    sink.open(connect()).begin("job").commit(case.written(job, ["winning"]))

    assert hidden(request, url) == set()


@pytest.mark.parametrize("url", ["lake"], indirect=True)
def test_an_abort_leaves_the_journal_whole(connect):
    """It needs files that others have committed and folded since."""
    journaled = connect().get_map("target", journal=True, buckets=1)
    case = SinkCase(to_imap("target", str, abs), connect, [], [], list, set)
    gone = journaled.store.begin("job")
    receipts = case.written(gone, [1])
    connect().get_map("target").store.begin("job").commit(receipts)
    connect().get_map("target")["2"] = 2
    connect().get_map("target").compact()
    gone.abort()

    assert [event.key for event in connect().get_map("target").journal()] == ["1", "2"]


def test_receipts_of_a_collection_that_was_destroyed_are_refused(url, connect):
    """Another collection of its name does not take them."""
    job = connect().get_list("target").store.begin("job")
    receipts = list(job.writer.write(iter([1])))
    connect().get_list("target").destroy()
    if url.startswith("memory:"):  # there receipts hold the items
        return
    with pytest.raises(IllegalStateError, match=r"run the job again|could be committed"):
        connect().get_list("target").store.begin("job").commit(receipts)
