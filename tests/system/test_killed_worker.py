"""A worker process that dies is an error in plain words, and the context goes on."""

from __future__ import annotations

import os
import signal

import pytest

import dstream as ds


def _kill_on_three(n: int) -> int:
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def test_a_killed_worker_is_an_engine_error(spark_context: ds.Context) -> None:
    """The error names the death of a worker, in a few lines, with no stack of Java or PySpark in the text."""
    numbers = spark_context.stream(range(8), 4).map(_kill_on_three)

    with pytest.raises(ds.errors.EngineError, match="worker") as caught:
        numbers.to_list()

    text = str(caught.value)
    assert len(text) < 600
    assert "\tat " not in text
    assert "org.apache" not in text


def test_the_context_goes_on_after_a_killed_worker(spark_context: ds.Context) -> None:
    """Jobs after the failed one give their results, also where the failed one sorted and iterated."""
    numbers = spark_context.stream(range(8), 4)
    for failing in (numbers.map(_kill_on_three).sorted().limit(5).to_list, lambda: list(numbers.map(_kill_on_three))):
        with pytest.raises(ds.errors.EngineError):
            failing()

    assert numbers.map(lambda n: n * n).sorted(reverse=True).limit(3).to_list() == [49, 36, 25]
