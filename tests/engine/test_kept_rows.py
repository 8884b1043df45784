"""The rows of a cached stream: items for a plan, or for this process."""

from __future__ import annotations

import gc
import pickle
from types import SimpleNamespace

import pytest

from dstream.engine.spark.run.segments import CachedRows
from dstream.engine.tasks.rows import ITEMS, WATERMARKS, Row
from dstream.errors import SerializationError
from dstream.operators.rows.batches import dumps_items


class Rows:
    """Stands for a DataFrame of rows, and notes what is asked of it."""

    def __init__(self):
        self.conditions = []

    def where(self, condition):
        self.conditions.append(condition)
        return self


class Executors:
    """Stands for a cluster that holds two batches, and forgets rows."""

    def __init__(self):
        self.released = []
        self.port = SimpleNamespace(release=self.released.append)

    def rows_one_partition_at_a_time(self, rows):
        assert rows.conditions == [f"(channel = {WATERMARKS} or channel = {ITEMS})"]
        yield Row(0, 0, 0, ITEMS, 2, dumps_items(["a", "b"]))
        yield Row(0, 1, 0, ITEMS, 1, dumps_items(["c"]))


def test_kept_rows_give_their_items_to_this_process():
    """As often as somebody asks, in order, without what came beside them."""
    kept = CachedRows(Rows(), 2, Executors())

    assert [list(kept), list(kept)] == [["a", "b", "c"]] * 2


def test_kept_rows_are_released_with_their_object():
    """Once, when nobody has it any more."""
    rows, executors = Rows(), Executors()
    kept = CachedRows(rows, 2, executors)
    assert executors.released == []

    del kept
    gc.collect()

    assert executors.released == [rows]


def test_kept_rows_are_not_pickled():
    """They are on the executors of a context; what can be pickled is the plan."""
    with pytest.raises(SerializationError, match="pickle the plan"):
        pickle.dumps(CachedRows(Rows(), 2, Executors()))
