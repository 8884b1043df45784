"""Jobs whose drivers are processes of their own: killed, cut off, seen and cancelled from here."""

from __future__ import annotations

import signal

import pytest

import dstream as ds
from tests.jobs.killed_driver import ITEMS, NAME, POINTS, submitted

LISTS = ("interrupted", "second", "third")
DRIVER = "from tests.jobs.killed_driver import main; main()"


def contents(ctx):
    """Return what is in the lists of the three sinks."""
    return [ctx.get_list(name).copy() for name in LISTS]


@pytest.mark.parametrize("point", POINTS)
def test_a_driver_may_be_killed_anywhere(start, connect, place, point):
    """Submitted again under its name the job goes on; its sinks are whole and have one copy."""
    driver = start(DRIVER, place, point)
    driver.says(point)
    driver.signal(signal.SIGKILL)
    driver.ended()
    ctx = connect()
    lost = ctx.job(NAME)
    assert (lost.is_lost, lost.status) == (True, ds.JobStatus.NOT_RUNNING)
    is_decided = point not in ("reading", "written")
    job = submitted(ctx, at=lambda reached: pytest.fail("it reads again") if is_decided and reached == "reading" else 0)
    job.join(30)

    assert (job.id, contents(ctx)) == (lost.id, [list(ITEMS)] * 3)


def test_a_driver_that_was_stopped_finds_itself_taken_over(start, connect, place):
    """SIGSTOP and SIGCONT: another process drives the job meanwhile, and only that one commits."""
    driver = start(TAKEN_OVER, place)
    driver.says("reading")
    driver.signal(signal.SIGSTOP)
    ctx = connect()
    while not ctx.job(NAME).is_lost:
        pass
    job = submitted(ctx)
    job.join(30)
    driver.signal(signal.SIGCONT)
    code, said = driver.ended()

    assert (code, "JobTakenOverError" in said) == (0, True), said
    assert (contents(ctx), ctx.job(NAME).status) == ([list(ITEMS)] * 3, ds.JobStatus.COMPLETED)


TAKEN_OVER = """
import sys, threading, dstream as ds
from tests.jobs.killed_driver import submitted

def at(point):
    if point == "reading":
        print(point, flush=True)
        threading.Event().wait(2)

with ds.connect(engine="local", storage=sys.argv[1]) as ctx:
    try:
        submitted(ctx, at).join()
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


def test_a_job_is_seen_and_cancelled_from_another_process(start, connect, place):
    """It obeys within a second; whoever joins it there hears of it."""
    driver = start(CANCELLED, place)
    driver.says("reading")
    ctx = connect()
    job = ctx.job(NAME)
    while job.status is ds.JobStatus.STARTING:
        pass
    assert (job.status, job.driver.process) == (ds.JobStatus.RUNNING, driver.process.pid)
    assert job.cancel()
    code, said = driver.ended()

    assert (code, said.strip()) == (0, "JobCancelledError")
    assert (job.status, contents(ctx)) == (ds.JobStatus.CANCELLED, [[], [], []])


CANCELLED = TAKEN_OVER.replace("except Exception", "except BaseException").replace("wait(2)", "wait(20)")


def test_a_program_that_ends_joins_its_jobs(start, connect, place):
    """Without a word of it: nothing is lost that was submitted."""
    text = "import sys, time, dstream as ds\nfrom tests.jobs.killed_driver import submitted\n"
    text += "submitted(ds.connect(engine='local', storage=sys.argv[1]), lambda point: time.sleep(0.2))\nprint('end')"
    code, said = start(text, place).ended()

    assert (code, said) == (0, "end\n")
    assert contents(connect()) == [list(ITEMS)] * 3


@pytest.mark.parametrize("ending", ["with context as ctx:\n    waits(ctx)", "waits(context)"])
def test_a_program_that_is_interrupted_cancels_its_jobs(start, connect, place, ending):
    """Ctrl-C does not wait for what nobody wants any more, whether a block or the program ends with it."""
    program = start(INTERRUPTED + ending, place)
    program.says("runs")
    program.signal(signal.SIGINT)
    code, _ = program.ended()
    ctx = connect()

    assert (code, ctx.job("long").status) == (-signal.SIGINT, ds.JobStatus.CANCELLED)
    assert ctx.get_list("out").copy() == []


INTERRUPTED = """
import sys, time
import dstream as ds
from reducers import to_ilist
from tests.jobs.planned import plan_of

def slow(n):
    print("runs" if n == 0 else n, flush=True)
    time.sleep(0.1)
    return n

def waits(ctx):
    ctx.new_job(plan_of(ctx.stream(range(1000)).map(slow), to_ilist("out")), name="long").join()

context = ds.connect(engine="local", storage=sys.argv[1])
"""


def test_a_forked_process_drives_jobs_of_its_own(start, place):
    """Others see it alive, it hears of what they ask, and what the parent drives is none of its business."""
    code, said = start(FORKED, place).ended()

    assert (code, said) == (0, "True CANCELLED\n")


FORKED = """
import os, sys, threading, time, warnings, dstream as ds
from concurrent.futures import CancelledError
from tests.jobs.killed_driver import submitted
from tests.jobs.planned import plan_of
from reducers import to_ilist

is_reading, end = threading.Event(), threading.Event()
with ds.connect(engine="local", storage=sys.argv[1]) as ctx:
    job = submitted(ctx, lambda point: point == "reading" and (is_reading.set(), end.wait(20)))
    is_reading.wait(20)
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns from 3.12 on: a fork beside threads may hang.
    if os.fork() == 0:
        mine = ctx.new_job(plan_of(ctx.stream([1]).map(lambda n: threading.Event().wait(20)), to_ilist("a")), name="b")
        try:
            mine.join(20)
        except CancelledError:
            os._exit(7)
    while ctx.job("b") is None:
        time.sleep(0.05)
    was_cancelled = ctx.job("b").cancel()
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
    end.set()
    job.join(10)
    print(was_cancelled, ctx.job("b").status.name)
"""


def test_an_exception_of_another_process_is_raised_here(start, connect, place):
    """Of a class that only the other program has, with what it holds, and its notes."""
    code, said = start(FAILING, place).ended()
    assert code == 0, said
    with pytest.raises(Exception, match="no more sugar") as caught:
        connect().job(NAME).join(10)

    error = caught.value
    assert (type(error).__name__, error.spoons, error.__notes__[0][:14]) == ("SugarError", 2, "What happened:")


FAILING = """
import sys, dstream as ds
from reducers import to_ilist
from tests.jobs.planned import plan_of

class SugarError(Exception):
    def __init__(self, spoons):
        super().__init__("no more sugar")
        self.spoons = spoons

def sweeten(cup):
    raise SugarError(cup)

with ds.connect(engine="local", storage=sys.argv[1]) as ctx:
    ctx.new_job(plan_of(ctx.stream([2]).map(sweeten), to_ilist("cups")), name="sales").future().exception()
"""
