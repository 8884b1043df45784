"""Pipelines with windows, run as jobs."""

from __future__ import annotations

from operator import itemgetter

import dstream as ds
from collectors import counting
from dstream.testing import epochs
from dstream.windows import sliding, tumbling
from reducers import to_ilist
from sources import stream_of
from tests.jobs.unbounded.streams import Feed, eventually


def counts_by_key(stage):
    """Count by the second field, in windows of ten."""
    return stage.add_timestamps(itemgetter(0)).grouping_key(itemgetter(1)).window(tumbling(10)).aggregate(counting())


def test_windows_by_key(ctx):
    """A source that ends flushes them; late are those behind the watermark at the start of their epoch."""
    pipeline = ds.Pipeline()
    items = [(n, "ab"[n % 2]) for n in range(40)]
    counts_by_key(pipeline.read_from(stream_of(items, 4))).write_to(to_ilist("out"))
    job = ctx.new_job(pipeline)
    job.join(10)

    found = {(each.start, each.key): each.result for each in ctx.get_list("out")}
    assert found == {(start, key): 5 for start in range(0, 40, 10) for key in "ab"}
    assert job.metrics().stages["aggregate"].items_out == 8


def test_a_cascade_closes_in_one_epoch():
    """The watermark passes both windows; the results of the first one are in time for the second."""
    by_hand = epochs()
    clicks = by_hand.source("clicks")
    pipeline = ds.Pipeline()
    stage = pipeline.read_from(clicks).add_timestamps(int)
    counts = stage.window(sliding(20, 10)).aggregate(counting())
    counts.window(tumbling(20)).aggregate(counting()).write_to(to_ilist("out"))
    by_hand.of(pipeline)

    assert by_hand.cut({clicks: [1, 5, 12]}) == {"write_to": []}
    closed = by_hand.cut({clicks: [40]})["write_to"]
    assert [(each.start, each.end, each.result) for each in closed] == [(0, 20, 2), (20, 40, 1)]


def test_one_stamped_source_feeds_two_windows_and_a_list():
    """Each gets all items; time passes in each of them."""
    by_hand = epochs()
    clicks = by_hand.source("clicks", partitions=2)
    pipeline = ds.Pipeline()
    stage = pipeline.read_from(clicks).add_timestamps(itemgetter(0))
    stage.window(tumbling(10)).aggregate(counting()).write_to(to_ilist("all"))
    stage.grouping_key(itemgetter(1)).window(tumbling(10)).aggregate(counting()).write_to(to_ilist("keys"))
    stage.write_to(to_ilist("items"))
    got = by_hand.of(pipeline).cut({clicks: {0: [(1, "a"), (11, "b")], 1: [(2, "b"), (12, "b")]}})

    assert [each.result for each in got["write_to"]] == [2]
    assert sorted((each.key, each.result) for each in got["write_to-2"]) == [("a", 1), ("b", 1)]
    assert got["write_to-3"] == [(1, "a"), (11, "b"), (2, "b"), (12, "b")]


def test_items_are_shared_before_they_have_timestamps():
    """Each partition has a time of its own, and a list gets the items of all, epoch after epoch."""
    by_hand = epochs()
    clicks = by_hand.source("clicks", partitions=2)
    pipeline = ds.Pipeline()
    stage = pipeline.read_from(clicks).map(lambda n: n + 1)
    stage.add_timestamps(int).window(tumbling(10)).aggregate(counting()).write_to(to_ilist("counts"))
    stage.write_to(to_ilist("items"))
    by_hand.of(pipeline)

    assert by_hand.cut({clicks: {0: [1, 2], 1: [3]}}) == {"write_to": [], "write_to-2": [2, 3, 4]}
    got = by_hand.cut({clicks: {0: [10], 1: [11, 12]}})
    assert ([each.result for each in got["write_to"]], got["write_to-2"]) == ([3], [11, 12, 13])


def test_late_items_are_logged_once_for_each_epoch(ctx, caplog):
    """With the stage and how many they were in it; an epoch without any says nothing."""
    feed = Feed()
    pipeline = ds.Pipeline()
    counts_by_key(pipeline.read_from(feed)).set_name("counts").write_to(to_ilist("out"))
    job = ctx.new_job(pipeline)
    for number, items in enumerate([[(40, "a")], [(1, "a"), (2, "b")], [(41, "a")]], 1):
        feed.give(*items)
        eventually(lambda number=number: job.epoch == number)
    job.cancel()

    said = [text for text in caplog.messages if "late" in text]
    assert [text.partition(": ")[2] for text in said] == ["items that came too late: 2 at 'counts'"]


def test_early_results_come_of_all_keys_in_one_epoch():
    """Also of keys that came just then, whose shard was empty before."""
    by_hand = epochs()
    clicks = by_hand.source("clicks")
    pipeline = ds.Pipeline()
    windows = pipeline.read_from(clicks).add_timestamps(itemgetter(0)).grouping_key(itemgetter(1))
    windows.window(tumbling(10).early_results(5)).aggregate(counting()).write_to(to_ilist("out"))
    by_hand.of(pipeline)

    assert by_hand.cut({clicks: [(1, "a")]}, now=103.0) == {"write_to": []}
    early = by_hand.cut({clicks: [(2, key) for key in range(9)]}, now=105.0)["write_to"]
    assert sorted((str(each.key), each.is_early) for each in early) == [(key, True) for key in "012345678a"]
