"""Forks while other threads hold locks, or import: what the forked process finds."""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref

import pytest

import dstream as ds
from dstream.base.threads import RenewedLock, in_a_thread, in_this_process
from dstream.testing import Parts
from reducers import to_ilist
from tests.jobs.planned import plan_of

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")


def in_a_fork(function):
    """Return the code with which a forked process ends: 7 if the function says True, 3 if it takes more than 20 s."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, lambda *_: os._exit(3))
        signal.alarm(20)
        try:
            os._exit(7 if function() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_process_removes_no_folder_of_its_parent():
    """It inherits exit handlers and finalizers; those of the kit for tests, too, whose folders the parent reads."""
    made, parts = [], Parts([1, 2])
    action = in_this_process(made.append, 1)

    assert in_a_fork(lambda: (action(), made == [])[1]) == 7
    assert in_a_fork(lambda: (parts._folder, weakref.finalize._exitfunc(), True)[2]) == 7
    action()
    assert (made, list(parts.splits(1)[0].read()), parts.items_read) == ([1], [1, 2], 2)


def test_a_lock_is_free_in_a_forked_process():
    """The thread that held it is not there; in the parent it still does."""
    lock, is_held, may_end = RenewedLock(), threading.Event(), threading.Event()

    def hold():
        with lock:
            is_held.set()
            may_end.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(20)

    def takes():
        with lock, lock:
            return True

    assert in_a_fork(takes) == 7
    assert not lock._lock.acquire(blocking=False)
    may_end.set()
    thread.join()


def test_a_job_is_submitted_in_a_fork_while_a_driver_starts_its_engine(monkeypatch):
    """The driver has asked the context for it, and nobody in the forked process would ever get an answer."""
    is_starting, may_start = threading.Event(), threading.Event()
    with ds.connect(engine="local", storage="memory:") as ctx:
        start, parent = ctx._start, os.getpid()

        def slowly():
            if os.getpid() == parent:
                is_starting.set()
                may_start.wait(20)
            return start()

        monkeypatch.setattr(ctx, "_start", slowly)
        job = ctx.new_job(plan_of(ctx.stream([1]), to_ilist("of the parent")))
        assert is_starting.wait(20)

        def submits():
            ctx.new_job(plan_of(ctx.stream([2]), to_ilist("of the fork"))).join(15)
            return ctx.get_list("of the fork").copy() == [2]

        assert in_a_fork(submits) == 7
        may_start.set()
        job.join(20)


def test_a_fork_waits_for_what_a_thread_imports(tmp_path, monkeypatch):
    """A module that is half made when the process is forked stays so there."""
    (tmp_path / "slow_of_test.py").write_text(
        "import threading, time\nthreading.begun.set()\ntime.sleep(0.3)\nis_whole = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(threading, "begun", threading.Event(), raising=False)
    in_a_thread(lambda: __import__("slow_of_test"), "test")
    assert threading.begun.wait(20)

    assert in_a_fork(lambda: sys.modules["slow_of_test"].is_whole) == 7
