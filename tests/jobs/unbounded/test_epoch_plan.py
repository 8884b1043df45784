"""The plan of an epoch: ranges in the place of sources, and once for each range what gives timestamps."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.errors import SourceError
from dstream.jobs.unbounded.log import SourceMark, TimedPartition
from dstream.jobs.unbounded.plans import InThisEpoch, epoch_plan, open_plan
from dstream.jobs.unbounded.ranges import BoundedAsStream, ranges_of
from dstream.jobs.unbounded.rate_control import BatchSize
from dstream.plan.operations.streams import Concat, Read
from dstream.plan.operations.unbounded import AssignTimestamps, OverEpochs
from dstream.plan.properties import is_of_epoch
from dstream.plan.walk import topological
from reducers import to_ilist
from sources import Items, text_files
from tests.jobs.unbounded.streams import Feed, pipeline_of
from tests.jobs.unbounded.summing import FrameSums, Lagging
from tests.jobs.unbounded.timed_plans import summing_plan


@pytest.fixture
def ctx():
    """A context that opens plans."""
    with ds.connect(engine="local", storage="memory:") as context:
        yield context


def kinds(plan, kind):
    """Return the operations of a kind."""
    return [each for each in topological(plan) if isinstance(each, kind)]


def ranges(source, **offsets):
    """Return what is read of a source."""
    return ranges_of(source, SourceMark(offsets or dict(source.begin()), False, 0.0), None)


def test_ranges_stand_where_the_source_stood(ctx):
    """One split for each partition that has news, in the order of their numbers; whoever runs it knows what it is."""
    feed = Feed({"10": [3], "9": [1, 2], "2": []})
    plan = open_plan(pipeline_of(feed, to_ilist("out")), ctx)
    made = epoch_plan(plan, InThisEpoch({"read_from": ranges(feed).ranges}, ["writer"]))
    (read,) = kinds(made, Read)

    assert [list(split.read()) for split in read.source.splits(1)] == [[1, 2], [3]]
    assert made.ends[0].writer == "writer"
    assert (is_of_epoch(made), is_of_epoch(plan.several)) == (True, False)


def test_without_news_a_task_is_left(ctx):
    """In which time passes."""
    plan = open_plan(pipeline_of(Feed(), to_ilist("out")), ctx)
    (read,) = kinds(epoch_plan(plan, InThisEpoch({}, [None])), Read)

    assert [list(split.read()) for split in read.source.splits(1)] == [[]]


def test_each_range_has_a_time_of_its_own(ctx):
    """What gives timestamps stands there once for each, with all before it."""
    feed = Feed({"0": [1], "1": [2], "2": []})
    plan = open_plan(summing_plan(feed, Lagging, FrameSums()), ctx)
    news, places = ranges(feed).ranges, [TimedPartition("time", "source", name) for name in "01"]
    epoch = InThisEpoch({"source": news}, [None], dict(zip(places, "ab", strict=True)), {"sums": "t"}, {"sums": "s"})
    made = epoch_plan(plan, epoch)

    assert [each.time for each in kinds(made, AssignTimestamps)] == ["a", "b"]
    assert [(each.time, each.state) for each in kinds(made, OverEpochs)] == [("t", "s")]
    assert [type(each) for each in kinds(made, Concat)] == [Concat]


def test_where_nothing_is_read_no_time_is_told(ctx):
    """The step is there all the same."""
    plan = open_plan(summing_plan(Feed(), Lagging, FrameSums()), ctx)
    made = epoch_plan(plan, InThisEpoch({}, [None], {}, {"sums": "t"}, {"sums": "s"}))

    assert (kinds(made, AssignTimestamps), len(kinds(made, OverEpochs))) == ([], 1)


def test_a_bounded_source_is_one_range_that_ends():
    """It is read whole, in its own splits, and then it has ended."""
    whole = BoundedAsStream(Items([1, 2, 3], partitions=2))
    news = ranges(whole)

    assert [(each.partition, each.items, each.ends) for each in news.ranges] == [("all", whole.source, True)]
    assert (news.mark.has_ended, ranges_of(whole, news.mark, None).ranges) == (True, ())


def test_a_partition_that_is_left_out_goes_on_where_it_was():
    """As a file that is renamed while the folder is looked through; long after it is forgotten."""
    feed, mark = Feed({"b": [1, 2]}), SourceMark({"a": 1, "b": 2}, False, 0.0)
    out = ranges_of(feed, mark, None, now=5.0, keep=10).mark
    feed.partitions["a"] = [1, 2, 3]
    (back,) = ranges_of(feed, out, None, now=7.0, keep=10).ranges
    del feed.partitions["a"]

    assert (out.offsets, out.left_out) == ({"a": 1, "b": 2}, {"a": 5.0})
    assert (back.partition, list(back.items.splits(1)[0].read())) == ("a", [2, 3])
    assert ranges_of(feed, out, None, now=14.9, keep=10).mark.left_out == {"a": 5.0}
    assert ranges_of(feed, out, None, now=15.0, keep=10).mark.offsets == {"b": 2}


@pytest.mark.parametrize("offset", ["\ud800", type("Int", (int,), {})(3), object(), pytest.param(10**5000, id="long")])
def test_an_offset_that_no_record_can_hold_is_refused_before_it_is_read(offset):
    """The message names the source and the partition."""
    source = type("Odd", (Feed,), {"reach": lambda self, offsets, most=None: {"p": offset}})()

    with pytest.raises(SourceError, match=r"feed\(\): the offset .* of the partition 'p' is no plain data"):
        ranges_of(source, SourceMark({"p": 0}, False, 0.0), None)


def test_offsets_that_come_back_as_lists_are_no_news():
    """Records have tuples and lists; sources may give either."""
    pairs = type("Pairs", (Feed,), {"reach": lambda self, offsets, most=None: {"0": (1, ("a", 2))}})()

    assert ranges_of(pairs, SourceMark({"0": [1, ["a", 2]]}, False, 0.0), None).ranges == []


@pytest.mark.parametrize(
    ("items", "seconds", "limit"),
    [
        (1000, 0.4, 500),  # too long: half of it
        (1000, 0.1, 2000),  # full and short: twice as many
        (1000, 0.19, 1052),  # as many as fit
        (100, 0.01, 1000),  # a small one says little
        (0, 9.0, 1000),
        (5, 9.0, 100),  # never too few
    ],
)
def test_admission_follows_the_time_that_epochs_take(items, seconds, limit):
    """Towards the target, from either side."""
    assert BatchSize(0.2, 1000).after(items, seconds).limit == limit


def limit_after(costs, target=0.02, limit=10_000, epochs=40):
    """Return what epochs take in the end that are always full, if `costs` says how long each of them lasts."""
    admission = BatchSize(target, limit)
    for _ in range(epochs):
        admission = admission.after(admission.limit, costs(admission.limit))
    return admission.limit


def test_admission_does_not_shrink_where_epochs_are_long_without_items():
    """An epoch of half a second for itself, with a target of 0.02: fewer items would not make it shorter."""
    assert limit_after(lambda items: 0.5 + items * 1e-4) == pytest.approx(2500, rel=0.1)
    assert limit_after(lambda items: 0.5) > 1_000_000


def test_admission_keeps_to_the_target_where_that_can_be_met():
    """What epochs cost for themselves is a part of the target then, also behind a first one that was slow."""
    assert limit_after(lambda items: 0.1 + items * 1e-5, 0.2) == pytest.approx(10_000, rel=0.1)
    assert limit_after(lambda items: 0.1 + items * 1e-5 + (items == 10_000) * 5, 0.2) == pytest.approx(10_000, rel=0.1)
    assert limit_after(lambda items: items * 1e-3, 0.2) == pytest.approx(200, rel=0.1)


@pytest.mark.parametrize(
    ("longest", "left", "limit"),
    [
        (1.0, 0, 2000),  # no backlog: twice as many
        (1.0, 200_000, 10_000),  # 20 s of work: as many as fit into a second
        (1.0, 40_000, 10_000),  # 4 s of work: a quarter of it
        (1.0, 20_000, 5_000),
        (0.2, 200_000, 2_000),  # the user says how long epochs are
        (0.0, 200_000, 2_000),
    ],
)
def test_epochs_are_longer_while_a_backlog_is_worked_off(longest, left, limit):
    """Its results are late in any case; behind it they are as long as before."""
    size = BatchSize(0.2, 1000, longest=longest)
    for _ in range(10):
        size = size.after(size.limit, size.limit * 1e-4, left)
    assert size.limit == pytest.approx(limit, rel=0.01)
    for _ in range(3):
        size = size.after(size.limit, size.limit * 1e-4)

    assert size.limit == pytest.approx(2_000, rel=0.01)


def test_admission_divides_what_it_takes():
    """Over partitions; what the user allows is a bound."""
    assert [BatchSize(0.2, 1000).of_each(4), BatchSize(0.2, 1000, 20).of_each(4), BatchSize(0.2, 1).of_each(9)] == [
        250,
        20,
        1,
    ]


def test_sources_with_bad_records_bear_the_names_of_their_stages(ctx):
    """Though both are read in one line, and the second one first."""
    pipeline = ds.Pipeline()
    first, second = (
        pipeline.read_from(text_files(f"/{name}"), name).ignore(SourceError).add_timestamps(int) for name in ("a", "b")
    )
    second.merge(first).write_to(to_ilist("out"))
    plan = open_plan(pipeline.plan(), ctx)

    assert {name: str(source.source) for name, source in plan.sources.items()} == {
        "a": "text_files('/a')",
        "b": "text_files('/b')",
    }
