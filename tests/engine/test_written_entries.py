"""Entries on their way into a writer: routed to their buckets, combined there, written bucket by bucket."""

from __future__ import annotations

import operator
from types import SimpleNamespace

import pytest

from dstream.base.memory import Bound
from dstream.engine.local import LocalEngine
from dstream.engine.tasks.sinks import RouteToBuckets
from dstream.failures import failure
from dstream.operators.rows.batches import loads
from dstream.operators.rows.operations import written, written_entries
from dstream.plan import Read, Step, Write, rewrite
from dstream.processors.groups import WritingResults
from dstream.spi import Collector
from reducers import to_imap
from sources import Items


class Writer:
    """A writer of four buckets that keeps what it is given in its receipts."""

    buckets = 4

    def bucket_of(self, key):
        return key % 4

    def write(self, items):
        yield list(items)

    def write_bucket(self, bucket, entries):
        yield bucket, dict(entries)


SUM = Collector(int, operator.add, operator.add)


def test_route_to_buckets_combines_before_it_sends(task, step):
    """One row for each bucket, with one container for each key."""
    collector = to_imap("m", abs, lambda n: 1, operator.add).collector
    rows = list(RouteToBuckets(collector, Writer(), step, 2)(iter([1, 2, 5, -1, 2]), task))

    assert {row.target: loads(row.payload) for row in rows} == {1: [[1, 5], [2, 1]], 2: [[2], [2]]}
    assert {row.source for row in rows} == {task.partition}


def test_written_entries_combines_and_finishes_each_bucket(task, step):
    """Batches of one bucket are combined in order and finished, then the writer gets them."""
    text = Collector(str, operator.add, operator.add, str.upper)
    batches = [(0, ([0, 4], ["a", "x"])), (0, ([0], ["b"])), (3, ([3], ["z"]))]

    assert list(written_entries(Writer(), text, step, iter(batches), task)) == [(0, {0: "AB", 4: "X"}), (3, {3: "Z"})]


def test_results_of_a_vertex_are_written_bucket_by_bucket(task, step):
    """A receipt is given before the next bucket is written; the results are counted behind the last one."""
    buckets, counts = [], []

    class Watched(Writer):
        def write_bucket(self, bucket, entries):
            buckets.append(bucket)
            return super().write_bucket(bucket, entries)

    same = Collector(dict, lambda held, entry: held.update([entry]), dict.update)
    writing = WritingResults("sums", None, Watched(), same, SUM, step)
    receipts = writing(
        iter([(0, ([0, 4], [1, 2])), (3, ([3], [5]))]),
        SimpleNamespace(bound=task.bound, peeking=lambda op: counts.append),
    )

    assert (next(receipts), buckets, counts) == ((0, {0: 1, 4: 2}), [0], [])
    assert (list(receipts), buckets, counts) == ([(3, {3: 5})], [0, 3], [{"sums": ([0], [3])}])


def test_written_entries_of_nothing_writes_nothing(task, step):
    """There is no receipt without entries."""
    assert list(written_entries(Writer(), SUM, step, iter([]), task)) == []


@pytest.mark.parametrize(
    "run", [written, lambda w, s, i, t: written_entries(w, SUM, s, ((0, ([key], [one])) for key, one in i), t)]
)
def test_a_writer_that_fails_names_the_step(run, task, step):
    """A full disk is a failure of the step that writes."""

    class Failing(Writer):
        def write(self, items):
            raise OSError(28, "No space left on device")

        def write_bucket(self, bucket, entries):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as raised:
        list(run(Failing(), step, iter([(0, 1)]), task))

    assert failure(raised.value).step == step


def test_the_local_engine_writes_each_bucket_once(monkeypatch):
    """Also when the groups come in several parts, since they were too large."""
    monkeypatch.setattr(Bound, "exceeded", lambda bound: True)
    collector = to_imap("m", abs, lambda n: 1, operator.add).collector
    numbers = Read(Items([n % 8 for n in range(10_000)]))

    receipts = LocalEngine(1).submit(rewrite(Write(numbers, Writer(), collector, step=Step(".collect")))).result()

    assert [bucket for bucket, _ in receipts] == [0, 1, 2, 3]
    assert {key: count for _, entries in receipts for key, count in entries.items()} == dict.fromkeys(range(8), 1250)
