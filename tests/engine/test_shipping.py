"""Modules on their way to workers."""

from __future__ import annotations

import threading

import pytest

from dstream.engine.spark.port.shipped_code import Code


def test_nobody_runs_ahead_of_modules_that_another_thread_sends():
    """A job that starts before they have arrived would not find them."""
    sending, may_arrive, done = threading.Event(), threading.Event(), threading.Event()
    code = Code(lambda file: (sending.set(), may_arrive.wait(10)))
    first = threading.Thread(target=code.ship)
    second = threading.Thread(target=lambda: (code.ship(), done.set()))
    first.start()
    assert sending.wait(10)
    second.start()

    assert not done.wait(0.1)
    may_arrive.set()
    assert done.wait(10)
    first.join()


def test_what_was_not_sent_is_sent_again():
    """A server that could not be reached has none of the modules."""
    sent = []

    def refuse_once(file):
        sent.append(file)
        if len(sent) == 1:
            raise ConnectionError("gone")

    code = Code(refuse_once)
    with pytest.raises(ConnectionError, match="gone"):
        code.ship()
    code.ship()
    code.ship()

    assert len(sent) == 2
