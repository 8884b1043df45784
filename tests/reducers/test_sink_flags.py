"""Each flag of the table of sinks, proved by what a sink of that name does."""

from __future__ import annotations

import inspect
import logging
import socketserver
import threading
from collections import Counter

import pytest

import dstream as ds
import reducers
from dstream.testing.engines import MASTER, SETTINGS
from tests.house import test_connectors
from tests.jobs.unbounded.streams import eventually
from tests.reducers.flagged_sinks import ITEMS, KEPT, Given
from tests.reducers.noted_sinks import NotedSink, tasks_that_wrote
from tests.storage.sinks.sink_contract import SinkCase

SINKS = {name: row for name, row in test_connectors.SINKS.items() if name not in test_connectors.OF_PROCESSORS}
EXACT = sorted(name for name, (_, guarantee, _) in SINKS.items() if guarantee == "exactly once")
WEAK = sorted(SINKS.keys() - set(EXACT))
AGAIN = sorted(name for name in KEPT if "job" in inspect.signature(getattr(reducers, name)).parameters)
ONCE = Counter(ITEMS)


@pytest.fixture
def lines():
    """What comes to a server, and what is logged."""
    return []


@pytest.fixture
def server(lines):
    """The address of a server that takes lines."""

    class Taking(socketserver.StreamRequestHandler):
        def handle(self):
            lines.extend(line.decode().strip() for line in self.rfile)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Taking) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield serving.server_address
        serving.shutdown()
        thread.join()


@pytest.fixture
def logged(lines):
    """Append to the lines of the log."""

    class Taking(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    logger, taking = logging.getLogger("dstream.to_logger"), Taking()
    logger.addHandler(taking)
    logger.setLevel(logging.INFO)
    yield
    logger.removeHandler(taking)
    logger.setLevel(logging.NOTSET)


@pytest.fixture
def given(request, tmp_path, lines, server, logged):
    """What targets need."""
    with ds.connect(engine="local", storage="memory:") as context:
        yield Given(context, tmp_path, lines, server, lambda: request.getfixturevalue("broker"))


@pytest.fixture
def kept(name, given):
    """The sink of a name, and its target."""
    return KEPT[name](given)


def case_of(kept, given):
    """Return what the drivers of one job do with a sink."""
    return SinkCase(kept.make(), lambda: given.context, [], [], kept.content, set)


def items(kept, given, most=4):
    """Give the items to a task, which fails behind so many."""
    for text in ITEMS[:most]:
        yield kept.item(text)
        given.passed.append(text)
    if most < len(ITEMS):
        raise ZeroDivisionError


def written_after_failures(kept, given):
    """Run an epoch whose tasks fail, one whose driver is gone before it keeps the receipts, and one to its end."""
    case = case_of(kept, given)
    failing = case.target().begin("job")
    with pytest.raises(ZeroDivisionError):
        case.written(failing, items(kept, given, 2))
    failing.abort()
    case.written(case.target().begin("job"), items(kept, given))
    job = case.target().begin("job")
    receipts = case.written(job, items(kept, given))
    job.commit(receipts)
    return case, receipts


@pytest.fixture
def on_spark(request, tmp_path, spark_context, lines, server, logged):
    """What targets need on Spark, on the session of the test run and a lake of its own."""
    with ds.connect(MASTER, config=SETTINGS, storage=tmp_path / "lake") as context:
        yield Given(context, tmp_path, lines, server, lambda: request.getfixturevalue("broker"))


def test_every_sink_of_the_table_is_proved():
    """A new one without a proof fails here."""
    assert KEPT.keys() == SINKS.keys()


@pytest.mark.parametrize("name", EXACT)
def test_exactly_once(name, kept, given):
    """After failures each item is there once, and stays so when the commit is asked for again."""
    case, receipts = written_after_failures(kept, given)
    assert Counter(kept.content()) == ONCE
    case.target().begin("job").commit(receipts)

    assert case.target().begin("job").is_done
    assert Counter(kept.content()) == ONCE


@pytest.mark.parametrize("name", sorted({*EXACT} - {"to_kafka"}))
def test_exactly_once_also_where_it_is_not_seen(name, kept, given):
    """A commit that is repeated does not bring back what somebody has removed meanwhile."""
    case, receipts = written_after_failures(kept, given)
    kept.clear()
    case.target().begin("job").commit(receipts)

    assert kept.content() == []


@pytest.mark.parametrize("name", WEAK)
def test_at_least_once(name, kept, given):
    """After failures each item is there, and no sink of the table hides that it is there twice."""
    case, receipts = written_after_failures(kept, given)
    case.target().begin("job").commit(receipts)

    eventually(lambda: Counter(kept.content()) >= ONCE + ONCE)


@pytest.mark.parametrize("name", AGAIN)
def test_on_re_run(name, kept, given):
    """A job of a name writes once however often it runs; without a name a run writes again."""
    assert "once with `job=`" in SINKS[name][2]
    stream = given.context.stream(ITEMS, 2).map(kept.item)
    for _ in range(2):
        stream.collect(kept.make(job="nightly"))
    assert Counter(kept.content()) == ONCE
    stream.collect(kept.make())

    assert Counter(kept.content()) == (ONCE + ONCE if kept.is_visible else ONCE)


@pytest.mark.parametrize("name", sorted(KEPT.keys() - set(AGAIN)))
def test_on_re_run_without_a_name(name, kept, given):
    """All items are written again; `replacing` leaves the same."""
    for _ in range(2):
        case = case_of(kept, given)
        job = case.target().begin(None)
        job.commit(case.written(job, items(kept, given)))
    expected = ONCE + ONCE if kept.is_visible else ONCE

    eventually(lambda: Counter(kept.content()) == expected)


@pytest.mark.parametrize("name", sorted(KEPT))
def test_distributed(name, on_spark, tmp_path):
    """Several tasks hand items over; or none does: they only make what the caller writes then."""
    (notes := tmp_path / "notes").mkdir()
    kept = KEPT[name](on_spark)
    on_spark.context.stream("abcdefgh", 2).map(kept.item).collect(NotedSink(kept.make(), notes))

    assert {"yes": {"0", "1"}, "no": set()}[SINKS[name][0]] == tasks_that_wrote(notes)
