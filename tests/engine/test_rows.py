"""Rows as Arrow batches, and what making them loads into a worker."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from dstream.engine.worker.rows import ITEMS, Row, from_record_batch, to_record_batch


@pytest.mark.parametrize("payload", [b"", b"abc", bytes(300_000), memoryview(b"abc"), bytearray(b"abc")])
@pytest.mark.parametrize("places", [(0, 0, 0, ITEMS, 0), (2**31 - 1, 7, 2**62, -4, 2**31 - 1), (-1, -2, -3, -4, -1)])
def test_a_row_comes_back_from_its_batch(places, payload):
    """Whatever its numbers are, and whatever holds its bytes."""
    batch = to_record_batch(Row(*places, payload))
    batch.validate(full=True)

    (row,) = from_record_batch(batch)
    assert (row[:-1], row.payload.to_pybytes()) == (places, bytes(payload))


def test_rows_come_and_go_without_pandas():
    """Loading it takes a worker longer than most tasks do."""
    script = """
import sys
from dstream.engine.worker.rows import Row, from_record_batch, to_record_batch
print(*[row.size for row in from_record_batch(to_record_batch(Row(0, 0, 0, 0, 5, b"abc")))], "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "5 False\n"


def test_workers_freeze_what_they_loaded(spark_context):
    """Looking at all modules after each task would take longer than most tasks do."""
    frozen = spark_context.stream(range(4), 2).map(lambda item: gc.get_freeze_count() > 10_000).to_list()

    assert frozen == [True] * 4
