"""Rows as Arrow batches, and what making them loads into a worker."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from dstream.engine.tasks.rows import ITEMS, Row, bounded, from_record_batch, to_record_batch
from dstream.engine.tasks.sinks import WriteItems
from dstream.engine.tasks.stage import SplitInput, Stage
from dstream.errors import SerializationError
from dstream.failures import failure


@pytest.mark.parametrize("payload", [b"", b"abc", bytes(300_000), memoryview(b"abc"), bytearray(b"abc")])
@pytest.mark.parametrize("places", [(0, 0, 0, ITEMS, 0), (2**31 - 1, 7, 2**62, -4, 2**31 - 1), (-1, -2, -3, -4, -1)])
def test_a_row_comes_back_from_its_batch(places, payload):
    """Whatever its numbers are, and whatever holds its bytes."""
    batch = to_record_batch(Row(*places, payload))
    batch.validate(full=True)

    (row,) = from_record_batch(batch)
    assert (row[:-1], row.payload.to_pybytes()) == (places, bytes(payload))


def test_a_row_that_java_cannot_take_is_refused(step):
    """In words, with the size, the limit, the step and what to do, before Java ends without any."""
    rows = [Row(0, 0, 0, ITEMS, 2, bytes(9)), Row(0, 0, 0, ITEMS, 1, memoryview(bytes(11)))]
    passed = bounded(rows, 10, step)
    assert next(passed) is rows[0]

    with pytest.raises(
        SerializationError, match=r"an item has 11 bytes when pickled, and .* takes 10 at once"
    ) as error:
        next(passed)
    known = failure(error.value)
    assert known.step is step
    assert "spark.driver.memory" in known.advice


def test_no_row_is_larger_than_arrow_and_java_count():
    """Whatever memory there is: offsets have 32 bits."""
    stage = Stage(SplitInput((), 0), WriteItems(), 2**60)

    assert 2**30 < stage.largest < 2**31 - 1


def test_rows_come_and_go_without_pandas():
    """Loading it takes a worker longer than most tasks do."""
    script = """
import sys
from dstream.engine.tasks.rows import Row, from_record_batch, to_record_batch
print(*[row.size for row in from_record_batch(to_record_batch(Row(0, 0, 0, 0, 5, b"abc")))], "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "5 False\n"


def test_workers_freeze_what_they_loaded(spark_context):
    """Looking at all modules after each task would take longer than most tasks do."""
    frozen = spark_context.stream(range(4), 2).map(lambda item: gc.get_freeze_count() > 10_000).to_list()

    assert frozen == [True] * 4
