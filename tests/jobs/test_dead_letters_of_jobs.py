"""Dead letters of jobs that end: published with the sinks, so once, however often the job runs."""

from __future__ import annotations

import signal
import sys
import time
from concurrent.futures import CancelledError
from uuid import uuid4

import pytest

import dstream as ds
from collectors import counting
from dstream.errors import IllegalStateError
from dstream.jobs.receipts import StagedLetters
from dstream.jobs.records import EpochRecord
from reducers import to_files, to_ilist, to_imap
from sources import items as source_items
from sources import json_lines
from tests.jobs.planned import Gate, Interrupted

AGAIN = ds.JobConfig(auto_restart=(2, 0.0))
ITEMS = (1, 0, 2)
DRIVER = "from tests.jobs.test_dead_letters_of_jobs import main; main()"


def dividing(letters, out, items=ITEMS, divide=lambda n: 6 // n):
    """Return a pipeline that divides 6 by items; what cannot be goes where dead letters go."""
    pipeline = ds.Pipeline()
    divided = pipeline.read_from(source_items(*items)).map(divide)
    divided.on_error(ZeroDivisionError, into=letters).write_to(out)
    return pipeline


def items_of(context, name="letters"):
    """Return the items of dead letters."""
    return [letter.item for letter in context.get_list(name)]


@pytest.mark.on_spark("is_before")
@pytest.mark.parametrize("is_before", [True, False])
def test_letters_of_a_run_that_is_not_decided_are_thrown_away(engine, monkeypatch, capsys, is_before):
    """The record of the receipts cannot be put, or the answer is lost: the job runs again, or goes on."""
    commit, failures = EpochRecord.commit, []

    def fails(self, receipts):
        is_first = not failures
        failures.append(receipts)
        if not is_before:
            commit(self, receipts)
        if is_first:
            raise ConnectionError("lost, as it was told")
        if is_before:
            commit(self, receipts)

    monkeypatch.setattr(EpochRecord, "commit", fails)
    capsys.readouterr()
    name = uuid4().hex
    job = engine.context.new_job(dividing(to_ilist(f"l-{name}"), to_ilist(f"o-{name}")), config=AGAIN)
    job.join(240)

    assert len(failures) == (2 if is_before else 1)
    assert capsys.readouterr().err.count("1 item failed") == (1 if is_before else 0)
    assert (items_of(engine.context, f"l-{name}"), engine.context.get_list(f"o-{name}").copy()) == ([0], [6, 3])


def test_metrics_count_the_letters_of_each_stage(ctx):
    """None where a stage sends none elsewhere; the table has the column if one does."""
    job = ctx.new_job(dividing(to_ilist("letters"), to_ilist("out"), items=[0, 1, 0]))
    job.join(20)
    metrics = job.metrics()

    assert [stage.dead_letters for stage in metrics.stages.values()] == [None, None, 2, None]
    assert dict(metrics)["stages"]["on_error"]["dead_letters"] == 2
    assert "dead letters" in repr(metrics)
    assert 'stage="on_error"} 2' in metrics.to_openmetrics()


def test_letters_are_not_seen_before_the_job_is_decided(ctx):
    """The sink waits before it publishes: by then the letters of a job before were seen already."""
    gate = Gate()
    pipeline = dividing(to_ilist("letters"), Interrupted(gate, "out"))
    job = ctx.new_job(pipeline)
    assert gate.was_reached.wait(20)
    seen = items_of(ctx)
    gate.is_open.set()
    job.join(20)

    assert (seen, items_of(ctx)) == ([], [0])


def test_letters_of_a_cancelled_job_are_thrown_away(ctx, monkeypatch):
    """Those of items that failed before are not published."""
    gate = Gate()

    def divide(n):
        return gate(n) if n == 2 else 6 // n

    job = ctx.new_job(dividing(to_ilist("letters"), to_ilist("out"), divide=divide))
    assert gate.was_reached.wait(20)
    job.cancel()
    gate.is_open.set()
    with pytest.raises(CancelledError):
        job.join(20)

    assert items_of(ctx) == []


def test_nobody_is_told_of_letters_of_a_job_that_was_cancelled(ctx, monkeypatch, capsys):
    """All items were read when it was cancelled, before it was decided."""
    taken, jobs, gate = StagedLetters.taken, [], Gate()

    def cancelled(self):
        gate(0)
        jobs[0].cancel()
        return taken(self)

    monkeypatch.setattr(StagedLetters, "taken", cancelled)
    jobs.append(ctx.new_job(dividing(to_ilist("letters"), to_ilist("out"))))
    gate.is_open.set()
    with pytest.raises(CancelledError):
        jobs[0].join(20)

    assert (items_of(ctx), "failed with" in capsys.readouterr().err) == ([], False)


def test_somebody_is_told_of_letters_when_they_are_there(ctx, capsys):
    """By one line for each stage that sent some."""
    ctx.new_job(dividing(to_ilist("letters"), to_ilist("out"))).join(20)

    (line,) = [line for line in capsys.readouterr().err.splitlines() if "failed with" in line]
    assert line.endswith(": 1 item failed with ZeroDivisionError and was sent to to_ilist('letters')")


def test_where_letters_go_is_made_though_there_are_none(ctx):
    """As a sink that gets no item."""
    ctx.new_job(dividing(to_ilist("letters"), to_ilist("out"), items=[1, 2])).join(20)

    assert ctx.get_list("letters").copy() == []


def test_two_stages_send_letters_to_two_places(ctx):
    """A source its bad records, and a step the items on which it failed; in a fork, where each is read once."""
    pipeline = ds.Pipeline()
    divided = pipeline.read_from(source_items(*ITEMS)).map(lambda n: 6 // n)
    whole = divided.on_error(ZeroDivisionError, into=to_ilist("zeros"))
    whole.map(lambda n: {6: "six"}[n]).on_error(KeyError, into=to_ilist("unknown")).write_to(to_ilist("words"))
    whole.aggregate(counting()).write_to(to_ilist("count"))
    ctx.new_job(pipeline).join(20)

    assert (items_of(ctx, "zeros"), items_of(ctx, "unknown")) == ([0], [3])
    assert (ctx.get_list("words").copy(), ctx.get_list("count").copy()) == (["six"], [2])


def test_bad_records_of_a_source_are_published_with_the_sinks(ctx, tmp_path, monkeypatch):
    """They are letters of the stage that reads."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}\nno json\n')
    pipeline = ds.Pipeline()
    read = pipeline.read_from(json_lines(str(path), into=to_ilist("bad")))
    read.map(lambda record: record["n"]).write_to(to_ilist("out"))
    commit, failures = EpochRecord.commit, []

    def fails_first(self, receipts):
        failures.append(receipts)
        if len(failures) == 1:
            raise ConnectionError("lost, as it was told")
        commit(self, receipts)

    monkeypatch.setattr(EpochRecord, "commit", fails_first)
    ctx.new_job(pipeline, config=AGAIN).join(20)

    assert (len(ctx.get_list("bad")), ctx.get_list("out").copy()) == (1, [1])


def test_letters_with_a_name_of_their_own_job_are_written_once(ctx):
    """As those of a terminal operation: what the job of this name wrote is there."""
    for _ in range(2):
        ctx.new_job(dividing(to_ilist("letters", job="once"), to_ilist("out"))).join(20)

    assert (items_of(ctx), ctx.get_list("out").copy()) == ([0], [6, 3, 6, 3])


def test_letters_that_cannot_be_published_any_more_are_made_again(ctx):
    """What was written is gone after a day; the sink, which has published, keeps what it has."""
    failures = []

    def gone(receipts):
        failures.append(receipts)
        if len(failures) < 3:
            raise ConnectionError("lost") if len(failures) == 1 else IllegalStateError("the files are gone")

    def submitted_once():
        pipeline = dividing(Interrupted(gone, "letters"), to_ilist("out"))
        ctx.new_job(pipeline, name="one", config=ds.JobConfig(auto_restart=False)).join(20)

    with pytest.raises(ConnectionError):
        submitted_once()
    submitted_once()

    assert (len(failures), items_of(ctx), ctx.get_list("out").copy()) == (3, [0], [6, 3])


def test_letters_go_into_maps_and_files(ctx, tmp_path):
    """Whatever reducers can do; a map merges what the letters of one key give."""
    entries = to_imap("counts", key=lambda letter: letter.error, value=lambda letter: 1, merge=int.__add__)
    ctx.new_job(dividing(entries, to_ilist("out"), items=[0, 1, 0])).join(20)
    files = to_files(tmp_path / "files", to_string=lambda letter: f"{letter.item} {letter.error}")
    ctx.new_job(dividing(files, to_ilist("out"))).join(20)

    assert ctx.get_map("counts").copy() == {"ZeroDivisionError": 2}
    written = [path.read_text() for path in (tmp_path / "files").glob("[!_.]*")]
    assert written == ["0 ZeroDivisionError\n"]


@pytest.mark.parametrize("point", ["written", "decided"])
def test_a_driver_may_be_killed_around_the_decision(start, connect, place, point):
    """Submitted again under its name the job goes on; each letter is there once."""
    driver = start(DRIVER, place, point)
    driver.says(point)
    driver.signal(signal.SIGKILL)
    driver.ended()
    context = connect()
    submitted(context).join(30)

    assert (items_of(context), context.get_list("out").copy()) == ([0], [6, 3])


def test_what_is_decided_is_published_where_the_letters_went(start, connect, place):
    """So a pipeline that sends them elsewhere is another one."""
    driver = start(DRIVER, place, "decided")
    driver.says("decided")
    driver.signal(signal.SIGKILL)
    driver.ended()
    with pytest.raises(IllegalStateError, match="another pipeline"):
        submitted(connect(), letters="others")


def submitted(context, at=bool, letters="letters"):
    """Submit the job; `at` is told that its sink is to publish."""
    sink = Interrupted(lambda _: at("decided"), "out")
    return context.new_job(dividing(to_ilist(letters), sink), name="dividing")


def main():
    """Wait at the point that is named."""
    storage, point = sys.argv[1:]

    def at(reached):
        if reached == point:
            print(reached, flush=True)
            time.sleep(3600)

    commit = EpochRecord.commit

    def told(self, receipts):
        at("written")
        commit(self, receipts)

    EpochRecord.commit = told
    with ds.connect(engine="local", storage=storage) as context:
        submitted(context, at).join()
