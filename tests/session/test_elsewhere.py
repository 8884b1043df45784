"""Collections of other storages, in sources and in sinks."""

from __future__ import annotations

import pickle
import threading

import pytest

import dstream as ds
from dstream.base.pickling import dumps
from dstream.errors import IllegalStateError, SourceError
from dstream.values import Entry
from reducers import grouping_by_to_imap, replacing, to_icache, to_ilist, to_imap
from sources import icache, ilist, imap, imap_journal
from tests.jobs.planned import Gate, lose_worker, plan_of
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of


@pytest.fixture
def other(tmp_path):
    """A folder with a map, a list and a cache, which another program has made."""
    with ds.connect(engine="local", storage=tmp_path) as context:
        context.get_map("ages", journal=True)["Ada"] = 36
        context.get_list("names").append("Ada")
        context.get_cache("tokens", ttl=3600)["Ada"] = "token"
    return tmp_path


def test_collections_of_another_storage_are_read(engine, other):
    """By tasks, from there; those of the context have other names."""
    sources = imap("ages", storage=other), ilist("names", storage=str(other)), icache("tokens", storage=other)

    assert [engine.context.read(source).to_list() for source in sources] == [
        [Entry("Ada", 36)],
        ["Ada"],
        [Entry("Ada", "token")],
    ]
    with pytest.raises(SourceError, match=r"imap\('ages', storage='.*/nothing'\): there is no map 'ages'"):
        engine.context.read(imap("ages", storage=other / "nothing"))


def test_collections_of_another_storage_are_written(engine, other):
    """At once, and handed back: they belong to that storage, and run on this engine."""
    ages = engine.stream([("Grace", 85), ("Alan", 41)]).collect(to_imap("ages", storage=other))
    names = engine.stream(["x", "y"]).collect(replacing(to_ilist("names", storage=other)))
    engine.stream(["bb"]).collect(to_icache("tokens", len, str.upper, storage=other))
    lengths = engine.stream(["a", "b"]).collect(grouping_by_to_imap("lengths", len, storage=other))

    assert sorted(ages.stream().map(lambda entry: entry.key).to_list()) == ["Ada", "Alan", "Grace"]
    assert (list(names), lengths[1]) == (["x", "y"], ["a", "b"])
    with ds.connect(engine="local", storage=other) as context:
        assert (context.get_map("ages")["Alan"], context.get_cache("tokens")[2]) == (41, "BB")


def test_a_journal_of_another_storage_is_followed(local_context, other):
    """As one of the context."""
    journal = imap_journal("ages", storage=other).opened(local_context)
    [event] = journal.split("events", 0, journal.reach({})["events"]).read()

    assert (event.key, event.new_value) == ("Ada", 36)


def test_it_travels(local_context, other):
    """A source and a sink name the storage; their labels show no password."""
    source = pickle.loads(dumps(imap("ages", storage=other)))
    shown = [repr(make("m", storage="redis://ada:secret@host/0")) for make in (imap, to_imap, to_ilist, imap_journal)]

    assert local_context.read(source).count() == 1
    assert shown[0] == "imap('m', storage='redis://ada:***@host/0')"
    assert "secret" not in "".join(shown)


def test_it_is_closed_with_its_context(other):
    """And opened once; a context that is closed opens none."""
    with ds.connect(engine="local", storage="memory:") as context:
        beside = context.elsewhere(str(other))
        assert context.elsewhere(str(other)) is beside
        ages = beside.get_map("ages")
        assert context.stream([1]).to_list() == ages.stream().map(lambda entry: 1).to_list() == [1]
    for ask in (lambda: ages["Ada"]), (lambda: context.elsewhere(str(other))):
        with pytest.raises(IllegalStateError, match="this context is closed"):
            ask()


@pytest.mark.parametrize("make", [imap, ilist, icache, imap_journal, to_imap, to_ilist, to_icache])
def test_wrong_places_are_refused_at_the_call(make):
    """Also memory, which is another one for each context."""
    for storage, words in (
        ("", "storage must not be empty"),
        ("memory:", "storage must be one that can be opened again"),
    ):
        with pytest.raises(ValueError, match=words):
            make("m", storage=storage)


class Losing:
    """An engine that is lost when it runs something."""

    def __init__(self):
        self.has_run = self.is_closed = False

    def is_lost(self):
        """Say so when it has run something."""
        return self.has_run

    def close(self):
        """Note it."""
        self.is_closed = True


@pytest.mark.parametrize("is_asked_beside", [True, False])
def test_an_engine_that_is_lost_is_renewed_for_other_storages_too(other, monkeypatch, is_asked_beside):
    """Whichever of the contexts a job has lost it in."""
    with ds.connect(engine="local", storage="memory:") as context:
        monkeypatch.setattr(context, "_start", Losing)
        beside = context.elsewhere(str(other))
        lost = beside.running_engine()
        lost.has_run = True
        (beside if is_asked_beside else context).renew_engine()

        assert (lost.is_closed, beside.running_engine() is lost) == (True, False)
        assert beside.running_engine() is context.running_engine()


@pytest.fixture
def gate():
    """A gate that is opened shortly after the test has begun to close its context."""
    made = Gate()
    yield made
    made.is_open.set()


def close_behind(gate, context, is_interrupted=False):
    """Close a context; a job of it that waits at the gate goes on meanwhile."""
    assert gate.was_reached.wait(10)
    opening = threading.Timer(0.3, gate.is_open.set)
    opening.start()
    context._end(is_interrupted=is_interrupted)
    opening.join()


def test_a_job_of_another_storage_can_restart_while_its_context_is_closed(other, gate):
    """The engine is that of the context, and open until the job has ended."""
    context, items = ds.connect(engine="local", storage="memory:"), []

    def lost_once(item):
        items.append(gate(item))
        return item if len(items) > 1 else lose_worker()

    beside = context.elsewhere(str(other))
    pipeline = plan_of(beside.stream([1]).map(lost_once), to_ilist("out"))
    beside.new_job(pipeline, name="one", config=ds.JobConfig(auto_restart=(3, 0.01)))
    close_behind(gate, context)

    with ds.connect(engine="local", storage=other) as again:
        assert (again.job("one").status, list(again.get_list("out"))) == (ds.JobStatus.COMPLETED, [1])


def test_an_unbounded_job_of_another_storage_waits_for_its_next_driver(other, tmp_path_factory, gate):
    """Also while a job of a third storage still ends; it goes on where it was."""
    context, feed = ds.connect(engine="local", storage="memory:"), Feed({"0": [1]})
    third = context.elsewhere(str(tmp_path_factory.mktemp("third")))
    third.new_job(plan_of(third.stream([1]).map(gate), to_ilist("out")))
    job = context.elsewhere(str(other)).new_job(pipeline_of(feed, to_ilist("out")), name="endless")
    eventually(lambda: job.epoch >= 1)
    adding = threading.Timer(0.1, lambda: feed.give(2))  # A new epoch asks for the engine.
    adding.start()
    close_behind(gate, context)
    adding.join()

    with ds.connect(engine="local", storage=other) as again:
        assert again.job("endless").is_lost
        feed.end()
        again.new_job(pipeline_of(feed, to_ilist("out")), name="endless").join(10)
        assert list(again.get_list("out")) == [1, 2]


def test_an_interrupt_cancels_jobs_of_other_storages(other, gate):
    """As those of the context, if they have an end."""
    context = ds.connect(engine="local", storage="memory:")
    beside = context.elsewhere(str(other))
    beside.new_job(plan_of(beside.stream([1]).map(gate), to_ilist("out")), name="one")
    close_behind(gate, context, is_interrupted=True)

    with ds.connect(engine="local", storage=other) as again:
        assert again.job("one").status is ds.JobStatus.CANCELLED
