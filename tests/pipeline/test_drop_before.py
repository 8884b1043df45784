"""`drop_before=`: what a source gives again of before a time goes no further."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from collectors import counting
from dstream import Pipeline
from dstream.plan.operations.unbounded import AssignTimestamps
from dstream.testing import epochs
from dstream.windows import tumbling
from reducers import to_ilist
from sources import Items, kafka
from tests.pipeline.test_stream_stages import operations

START = datetime(1970, 1, 1, 0, 0, 0, 100_000, tzinfo=UTC)


@pytest.mark.parametrize("start", [100, START])
def test_items_of_before_a_time_go_no_further(start):
    """The item at that time does; those that are dropped are not late."""
    by_hand = epochs()
    events = by_hand.source("events")
    pipeline = Pipeline()
    timed = pipeline.read_from(events).add_timestamps(lambda event: event, drop_before=start)
    timed.window(tumbling(50), late_to=to_ilist("late")).aggregate(counting()).set_name("counts").write_to(
        to_ilist("out")
    )
    by_hand.of(pipeline)
    found = by_hand.cut({events: [20, 99, 100, 101, 99, 150]})

    assert (found, by_hand.late.get("counts", 0)) == ({"counts-late": [], "write_to": [(100, 150, 2, False)]}, 0)
    assert by_hand.cut({events: [99, 120, 200]}) == {"counts-late": [120], "write_to": [(150, 200, 1, False)]}


def test_a_partition_that_gives_only_what_is_dropped_is_not_idle():
    """It has not come so far, and others wait for it as for any that is behind."""
    by_hand = epochs()
    pair = by_hand.source("pair", partitions=2)
    pipeline = Pipeline()
    timed = pipeline.read_from(pair).add_timestamps(lambda event: event, idle_timeout=30, drop_before=100)
    timed.window(tumbling(50)).aggregate(counting()).write_to(to_ilist("out"))
    by_hand.of(pipeline)

    assert by_hand.cut({pair: {0: [100, 150], 1: [10]}}, now=0)["write_to"] == []
    assert by_hand.cut({pair: {0: [160], 1: [20]}}, now=31)["write_to"] == []
    assert by_hand.cut({pair: {1: [150]}}, now=32)["write_to"] == [(100, 150, 1, False)]


def test_native_timestamps_drop_what_was_before():
    """As those of Kafka; what was given is shown."""
    stage = Pipeline().read_from(kafka("words", {"bootstrap.servers": "localhost:1"})).native_timestamps(5, START)
    (stamp,) = operations(stage, AssignTimestamps)

    assert stamp.drop_before == 100
    assert repr(stage).endswith(f"native_timestamps(allowed_lag=5, drop_before={START!r})>")


@pytest.mark.parametrize(
    ("start", "error", "words"),
    [
        (1.5, TypeError, "drop_before: a timestamp must be milliseconds since 1970 as int, or a datetime"),
        (datetime(2026, 1, 1), ValueError, "drop_before: a timestamp needs a time zone"),
    ],
)
def test_drop_before_is_a_time(start, error, words):
    """Where it is given."""
    with pytest.raises(error, match=words):
        Pipeline().read_from(epochs().source("events")).add_timestamps(len, drop_before=start)


def test_items_that_are_dropped_are_not_counted_as_given_on(local_context):
    """The stages behind get what is left."""
    pipeline = Pipeline()
    timed = pipeline.read_from(Items([20, 99, 100, 101])).add_timestamps(lambda event: event, drop_before=100)
    timed.map(str).write_to(to_ilist(f"counted {uuid4()}"))
    job = local_context.new_job(pipeline)
    job.join(20)

    stages = job.metrics().stages
    assert [(each.items_in, each.items_out) for each in stages.values()] == [(None, 4), (4, 2), (2, 2), (2, 2)]
