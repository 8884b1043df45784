"""Dead letters of jobs without an end: each once, with the epoch whose items they are."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.jobs.unbounded.epoch_runner import EpochRunner
from dstream.jobs.unbounded.log import EpochLog
from dstream.testing.unbounded import epochs
from reducers import to_ilist, to_imap
from tests.jobs.unbounded.streams import Feed, eventually

AGAIN = ds.JobConfig(auto_restart=(1, 0.0))


@pytest.fixture
def ctx(tmp_path):
    """Run on the local engine, over the lake."""
    with ds.connect(engine="local", storage=str(tmp_path)) as context:
        yield context


def dividing(feed, letters="letters", out="out"):
    """Return a pipeline that divides 6 by what it reads; what cannot be goes where dead letters go."""
    pipeline = ds.Pipeline()
    divided = pipeline.read_from(feed).map(lambda n: 6 // n)
    divided.on_error(ZeroDivisionError, into=to_ilist(letters)).write_to(to_ilist(out))
    return pipeline


def failing_once(monkeypatch, owner, name, is_meant, before=True):
    """Raise in a method as if a connection were lost, at the first call with a certain argument."""
    method, failures = getattr(owner, name), []

    def fails(self, record):
        if not before:
            method(self, record)
        if is_meant(record) and not failures:
            failures.append(record)
            raise ConnectionError("lost, as it was told")
        if before:
            method(self, record)

    monkeypatch.setattr(owner, name, fails)
    return failures


def items_of(context, name="letters"):
    """Return the items of dead letters."""
    return [letter.item for letter in context.get_list(name)]


def test_letters_come_with_their_epoch(ctx):
    """Not before: whoever sees an epoch published sees its letters."""
    feed = Feed()
    job = ctx.new_job(dividing(feed))
    feed.give(1, 0)
    eventually(lambda: job.epoch == 1)
    assert (ctx.get_list("out").copy(), items_of(ctx)) == ([6], [0])
    feed.give(2)
    eventually(lambda: job.epoch == 2)
    feed.give(0, 3)
    feed.end()
    job.join(10)

    assert (ctx.get_list("out").copy(), items_of(ctx)) == ([6, 3, 2], [0, 0])
    [letter, _] = ctx.get_list("letters")
    assert (letter.error, letter.step) == ("ZeroDivisionError", ".map(lambda)")


@pytest.mark.parametrize(
    ("owner", "name", "before"),
    [
        (EpochLog, "put", True),
        (EpochLog, "put", False),
        (EpochRunner, "publish", True),
        (EpochRunner, "publish", False),
    ],
)
def test_letters_come_once_wherever_a_driver_fails(ctx, monkeypatch, owner, name, before):
    """Before its record, behind it, and behind its publication."""
    failures = failing_once(monkeypatch, owner, name, lambda record: record.receipts, before)
    feed = Feed({"0": [1, 0, 2], "1": [0]})
    feed.end()
    job = ctx.new_job(dividing(feed), config=AGAIN)
    job.join(10)

    assert (len(failures), job.metrics().runs) == (1, 2)
    assert (sorted(ctx.get_list("out")), items_of(ctx)) == ([3, 6], [0, 0])


def test_letters_of_an_epoch_that_is_not_committed_are_nowhere(ctx, monkeypatch, capsys):
    """The job fails; what its tasks had written is gone, and nobody is told that it was sent."""
    failing_once(monkeypatch, EpochLog, "put", lambda record: record.receipts)
    job = ctx.new_job(dividing(Feed({"0": [1, 0]})), config=ds.JobConfig(auto_restart=False))
    with pytest.raises(ConnectionError, match="as it was told"):
        job.join(10)

    assert (ctx.get_list("out").copy(), items_of(ctx)) == ([], [])
    assert "failed with" not in capsys.readouterr().err


def test_a_driver_publishes_the_letters_that_the_one_before_recorded(ctx, monkeypatch):
    """As it does what sinks have staged; also a merge of counts is done once."""
    failing_once(monkeypatch, EpochRunner, "publish", lambda record: record.receipts)
    pipeline, feed = ds.Pipeline(), Feed({"0": ["1", "x", "y", "x"]})
    feed.end()
    counts = to_imap("bad", lambda letter: letter.item, lambda letter: 1, lambda a, b: a + b, on_existing="merge")
    pipeline.read_from(feed).map(int).on_error(ValueError, into=counts).write_to(to_ilist("out"))
    ctx.new_job(pipeline, config=AGAIN).join(10)

    assert (ctx.get_list("out").copy(), ctx.get_map("bad").copy()) == ([1], {"x": 2, "y": 1})


def test_two_stages_have_letters_of_their_own(ctx):
    """Each goes where its stage says, whether items are counted or not."""
    pipeline, feed = ds.Pipeline(), Feed({"0": ["1", "0", "x"]})
    feed.end()
    numbers = pipeline.read_from(feed).map(int).on_error(ValueError, into=to_ilist("no numbers"))
    numbers.map(lambda n: 6 // n).on_error(ZeroDivisionError, into=to_ilist("zeros")).write_to(to_ilist("out"))
    ctx.new_job(pipeline, config=ds.JobConfig(metrics=False)).join(10)

    assert [ctx.get_list("out").copy(), items_of(ctx, "no numbers"), items_of(ctx, "zeros")] == [[6], ["x"], [0]]


def test_letters_of_one_step_keep_apart(ctx):
    """Calls that stand on one line, or in a loop, are told apart by more than their places."""
    pipeline, feed = ds.Pipeline(), Feed({"0": ["1", "0", "x", ""]})
    feed.end()
    stage = pipeline.read_from(feed).map(lambda text: 6 // int(text) if text else {}["none"])
    for kind in (ValueError, ZeroDivisionError, KeyError):
        stage = stage.on_error(kind, into=to_ilist(kind.__name__))
    stage.write_to(to_ilist("out"))
    job = ctx.new_job(pipeline)
    job.join(10)

    assert ctx.get_list("out").copy() == [6]
    assert [items_of(ctx, name) for name in ("ValueError", "ZeroDivisionError", "KeyError")] == [["x"], ["0"], [""]]
    assert [each.dead_letters for each in job.metrics().stages.values()] == [None, None, 1, 1, 1, None]


def test_letters_on_spark_come_with_their_epoch(spark_context, tmp_path):
    """They travel through the driver, which stages them."""
    out, letters = f"{tmp_path.name}-out", f"{tmp_path.name}-letters"
    feed = Feed({"0": [1, 0], "1": [0, 2]})
    feed.end()
    spark_context.new_job(dividing(feed, letters, out), config=ds.JobConfig(epoch_length=0.05)).join(240)

    assert (sorted(spark_context.get_list(out)), items_of(spark_context, letters)) == ([3, 6], [0, 0])


def test_letters_of_epochs_cut_by_hand(ctx):
    """A test of a pipeline sees them with what the sinks got."""
    by_hand = epochs(ctx)
    numbers = by_hand.source("numbers")
    by_hand.of(dividing(numbers))

    assert by_hand.cut({numbers: {0: [1, 0, 2]}})["write_to"] == [6, 3]


def test_metrics_count_the_letters_of_all_epochs(ctx):
    """Of each once: those of an epoch that ran again are not counted twice."""
    feed = Feed()
    job = ctx.new_job(dividing(feed), config=AGAIN)
    for epoch, items in enumerate(([1, 0, 0], [2], [0]), 1):
        feed.give(*items)
        eventually(lambda epoch=epoch: job.epoch == epoch)
    feed.end()
    job.join(20)

    assert job.metrics().stages["on_error"].dead_letters == 3
