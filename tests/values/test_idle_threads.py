"""Threads that are used again."""

from __future__ import annotations

import contextvars
import threading
from functools import partial
from queue import SimpleQueue
from typing import Any

import pytest

from dstream.base import threads
from dstream.base.threads import in_a_thread

LONGEST = 10.0
_variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@pytest.fixture(autouse=True)
def no_idle_thread(monkeypatch):
    """Threads of other tests stay out of these."""
    monkeypatch.setattr(threads, "_idle", [])


def _said(run: Any, name: str = "one") -> Any:
    """Run in a thread, wait until it is idle, and return what the function gave."""
    said: SimpleQueue[Any] = SimpleQueue()
    in_a_thread(lambda: said.put((run(), threading.current_thread().name, threading.get_ident())), name)
    given = said.get(timeout=LONGEST)
    turn = threading.Event()
    while not threads._idle and not turn.wait(0.001):
        pass
    return given


def test_a_thread_that_is_idle_runs_the_next_function():
    """Under the name of that function."""
    (_, first, before), (_, second, after) = _said(int, "one"), _said(int, "two")

    assert (first, second, before == after) == ("one", "two", True)


def test_a_function_sees_no_context_variable_of_the_one_before():
    """As if its thread were a new one."""
    _said(partial(_variable.set, "of another job"))

    assert _said(_variable.get)[0] == "unset"


def test_functions_that_run_at_once_have_threads_of_their_own():
    """Each waits for the other."""
    both, said = threading.Barrier(2, timeout=LONGEST), SimpleQueue()
    for _ in range(2):
        in_a_thread(lambda: said.put(both.wait()), "waits")

    assert sorted(said.get(timeout=LONGEST) for _ in range(2)) == [0, 1]
