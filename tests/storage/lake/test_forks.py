"""Forked processes: what other threads held when they were forked does not stop them."""

from __future__ import annotations

import os
import threading
import warnings

import pytest

from dstream.delta import checkpoints
from tests.storage.lake.writing import written

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def _forked(run):
    """Run something in a forked process and return its exit code; a process that hangs is ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are threads is what is tested
        child = os.fork()
    if not child:
        try:
            threading.Timer(20, os._exit, [3]).start()
            run()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_fork_while_another_thread_holds_the_locks(lake):
    """The child reads and writes, and makes collections."""
    storage = lake.storage()
    store = lake.map()
    lake.put(store, a=1)
    held, release = threading.Event(), threading.Event()

    def hold():
        with store.log.lock, storage._lock:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    code = _forked(lambda: (lake.put(store, b=2), storage.names()))
    release.set()
    thread.join()

    assert (code, lake.content(store)) == (0, {"a": 1, "b": 2})


def test_fork_writes_a_checkpoint_when_it_is_due(lake, monkeypatch):
    """Also in the child of a process that has written one."""
    monkeypatch.setattr(checkpoints, "COLLECTION_CHECKPOINT_INTERVAL", 1)
    store = lake.map()
    job = store.begin(None)
    job.commit(written(job.writer, [("a", 1)]))
    checkpoints.write_checkpoint(store.log.folder)

    assert _forked(lambda: lake.put(store, b=2)) == 0
    assert lake.content(store) == {"a": 1, "b": 2}
    assert checkpoints.read_checkpoint(store.log.folder).version == store.log.version
