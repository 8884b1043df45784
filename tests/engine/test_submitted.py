"""Runs of plans: one at a time where they are asked for, several at once in the background, ended one by one."""

from __future__ import annotations

import threading
import time
import weakref

import pytest

from dstream.engine.calls import Submitted
from dstream.errors import CancelledError, IllegalStateError
from dstream.failures import known_of
from dstream.plan import ForEachPartition, Loop, ToList, rewrite


def submitted(context, stream, end=ToList):
    """Submit the plan of a stream."""
    return context.running_engine().submit(rewrite(end(stream._node)))


def until(condition, seconds=60.0):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.01)


def test_a_run_runs_where_its_result_is_asked_for():
    """Once, in that thread; the result stays."""
    threads = []
    run = Submitted(lambda _: threads.append(threading.current_thread()))

    assert run.status == "waiting"
    assert [run.result(), run.result()] == [None, None]
    assert (run.status, threads) == ("done", [threading.current_thread()])


def test_a_run_that_failed_is_not_run_again():
    """The failure comes to the one who ran it; in the background, to everybody who asks."""
    here, there = (Submitted(lambda _: 1 // 0) for _ in range(2))
    there.start()
    with pytest.raises(ZeroDivisionError):
        here.result()
    with pytest.raises(IllegalStateError, match="submit its plan again"):
        here.result()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            there.result()
    assert (here.status, there.status) == ("failed", "failed")


def test_a_run_that_was_cancelled_before_does_not_begin(engine):
    """On both engines."""
    seen = []
    run = submitted(engine.context, engine.stream([1, 2], 2).peek(seen.append))
    run.cancel()

    with pytest.raises(CancelledError, match="was cancelled"):
        run.result()
    assert (run.status, seen) == ("cancelled", [])


def test_a_run_for_each_partition_gives_nothing(engine):
    """None on both engines, as `Engine.submit` says: not an empty list."""
    ended = submitted(engine.context, engine.context.stream(range(4), 2), lambda node: ForEachPartition(node, list))

    assert ended.result() is None


def test_others_wait_for_the_one_who_runs_it():
    """Whoever asks second gets the same result, and does not run it again."""
    go, began = threading.Event(), threading.Event()

    def wait(_):
        began.set()
        go.wait(60)
        return [1]

    run = Submitted(wait)
    first = threading.Thread(target=run.result)
    first.start()
    assert began.wait(60)
    threading.Timer(0.05, go.set).start()

    assert (run.result(), run.status) == ([1], "done")
    first.join()


def test_who_starts_a_run_may_wait_before_its_thread_has_begun(monkeypatch):
    """The thread of the run may be slow to begin: the one who started it has not begun to run it."""
    run = Submitted(lambda _: [1])
    in_thread = run._in_thread
    monkeypatch.setattr(run, "_in_thread", lambda: (time.sleep(0.1), in_thread()))
    run.start()

    assert run.result() == [1]


def test_a_run_that_waits_can_be_cancelled_for_good():
    """It says so at once, and to everybody who asks."""
    run = Submitted(lambda _: 1)
    run.cancel()

    assert run.status == "cancelled"
    for _ in range(2):
        with pytest.raises(CancelledError):
            run.result()


class Big:
    """What can be looked at from outside."""


def test_a_result_goes_with_the_one_who_has_it(engine):
    """Neither a cycle nor the run holds it."""
    found = engine.stream([1], 1).map(lambda n: Big()).to_list()
    seen = weakref.ref(found.pop())
    assert seen() is None


def test_cancelling_a_run_ends_that_one_alone(spark_context):
    """Two run at once on one context; the tasks of one end, the other gives its items."""

    def slowly(n):
        time.sleep(0.05)
        return n

    ended = submitted(spark_context, spark_context.stream(range(4000), 2).map(slowly))
    other = submitted(spark_context, spark_context.stream(range(20), 2).map(slowly))
    ended.start()
    other.start()
    time.sleep(0.5)
    begun = time.monotonic()
    ended.cancel()

    with pytest.raises(CancelledError):
        ended.result()
    assert time.monotonic() - begun < 20
    assert (ended.status, other.result(), other.status) == ("cancelled", list(range(20)), "done")


def test_a_run_of_this_process_can_be_cancelled(local_context):
    """Between two items."""
    seen = []
    run = submitted(local_context, local_context.stream(range(10**9)).filter(lambda n: seen.append(n)))
    run.start()
    until(lambda: len(seen) > 5)
    run.cancel()

    with pytest.raises(CancelledError):
        run.result()
    assert run.status == "cancelled"


def test_a_failure_in_the_background_knows_its_item(engine):
    """As it does where it is waited for."""
    run = submitted(engine.context, engine.stream([2, 1, 0], 3).map(lambda n: 1 // n))
    run.start()

    with pytest.raises(ZeroDivisionError) as caught:
        run.result()
    known = known_of(caught.value)
    assert (known.item, known.step.label) == (0, ".map(lambda)")


def test_a_loop_that_was_cancelled_gives_no_more(spark_context):
    """What is here already may still come; no further job starts."""
    run = submitted(spark_context, spark_context.stream(range(64), 64).map(abs), Loop)
    items = run.result()
    assert next(items) == 0
    run.cancel()

    with pytest.raises(CancelledError):
        list(items)
