"""`item_stream`, `long_stream` and `stream_of`: sources without an end whose items are known."""

from __future__ import annotations

import datetime

import pytest

from dstream.errors import SourceError
from dstream.spi import StreamSource, TimestampedBeside
from sources import SimpleEvent, item_stream, long_stream, stream_of


class Clock:
    """Says what it was told, in seconds."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


def test_items_are_due_at_their_rate(follow):
    """Item i comes i / rate seconds after the start, and none before."""
    clock = Clock(100.0)
    reader = follow(item_stream(4, start=100_000, clock=clock))
    assert reader.news() == [SimpleEvent(100_000, 0)]

    clock.now = 100.74
    assert reader.news() == [SimpleEvent(100_250, 1), SimpleEvent(100_500, 2)]
    assert reader.news() == []


def test_the_start_stays_in_the_offset(follow):
    """A job that goes on has the start that it had, also where the source was made anew."""
    clock = Clock(50.0)
    reader = follow(item_stream(1, clock=clock))
    assert reader.news() == [SimpleEvent(50_000, 0)]

    clock.now = 52.0
    reader.source = item_stream(1, clock=clock)
    assert reader.news() == [SimpleEvent(51_000, 1), SimpleEvent(52_000, 2)]


def test_a_clock_that_goes_back_takes_nothing_back(follow):
    """An offset never falls."""
    clock = Clock(10.0)
    reader = follow(long_stream(1, start=0, clock=clock))
    assert len(reader.news()) == 11

    clock.now = -5.0
    assert reader.news() == []
    clock.now = 11.0
    assert reader.news() == [11]


def test_partitions_share_the_items(follow):
    """Item i is one of partition i modulo their number; a limit counts for each of them."""
    reader = follow(long_stream(10, start=0, partitions=3, clock=Clock(0.65)))

    assert reader.news(most=2) == [0, 3, 1, 4, 2, 5]
    assert reader.news() == [6]


def test_a_function_makes_the_items(follow):
    """Of the timestamp and the number, so that a range gives the same again."""
    source = item_stream(2.5, lambda timestamp, sequence: f"{sequence} at {timestamp}", start=0, clock=Clock(0.8))

    assert follow(source).news() == ["0 at 0", "1 at 400", "2 at 800"]
    assert repr(source) == "item_stream(2.5, lambda)"


def test_a_start_is_a_datetime_too(follow):
    """With a time zone; a start that has not come gives nothing."""
    start = datetime.datetime(1970, 1, 1, 0, 1, tzinfo=datetime.UTC)

    assert follow(item_stream(1, start=start, clock=Clock(60.0))).news() == [SimpleEvent(60_000, 0)]
    assert follow(item_stream(1, start=start, clock=Clock(59.9))).news() == []
    with pytest.raises(ValueError, match="start must be a datetime with a time zone"):
        item_stream(1, start=start.replace(tzinfo=None))


def test_each_item_has_its_time_beside_it():
    """Events, numbers, and what a function makes."""
    clock = Clock(0.8)
    made = [(0, "0"), (400, "1"), (800, "2")]
    for source, expected in [
        (item_stream(2.5, start=0, clock=clock), [(time, SimpleEvent(time, n)) for n, (time, _) in enumerate(made)]),
        (item_stream(2.5, lambda timestamp, sequence: str(sequence), start=0, clock=clock), made),
        (long_stream(2.5, start=0, clock=clock), [(time, n) for n, (time, _) in enumerate(made)]),
    ]:
        split = source.split("0", source.begin()["0"], source.reach(source.begin())["0"])
        assert isinstance(source, TimestampedBeside)
        assert list(split.read_timed()) == expected
        assert list(split.read()) == [item for _, item in expected]


def test_other_partitions_are_refused(follow):
    """Items would be given twice, or left out."""
    reader = follow(long_stream(1, start=0, partitions=2, clock=Clock(5.0)))
    reader.source = long_stream(1, start=0, partitions=3, clock=Clock(5.0))

    with pytest.raises(SourceError, match="the job was begun with 2 partitions, and there are 3"):
        reader.news()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: item_stream(0), ValueError, "per_second must be above 0, not 0"),
        (lambda: item_stream("1"), TypeError, "per_second must be a number, not str"),
        (lambda: item_stream(1, 5), TypeError, "fn must be a function, not int"),
        (lambda: long_stream(1, 0.5), TypeError, "start must be milliseconds as an int, or a datetime, not float"),
        (lambda: long_stream(1, partitions=0), ValueError, "partitions must be at least 1, not 0"),
        (lambda: long_stream(1, clock=3), TypeError, "clock must be a function, not int"),
        (lambda: stream_of(3), TypeError, "items must be several items, not int"),
        (lambda: stream_of([1], "2"), TypeError, "partitions must be an int, not str"),
    ],
)
def test_arguments_are_checked(make, error, message):
    """At the call, by their names."""
    with pytest.raises(error, match=message):
        make()


def test_given_items_end(follow):
    """A partition that was read is left out, as the contract of sources without an end says."""
    source = stream_of([0, 1, 2, 3, 4], partitions=2)
    reader = follow(source)

    assert isinstance(source, StreamSource)
    assert reader.news(most=2) == [0, 2, 1, 3]
    assert source.reach(reader.offsets) == {"0": 3}
    assert reader.news() == [4]
    assert source.reach({"0": 3, "1": 2}) == {}


def test_given_items_of_another_source_are_refused():
    """What stands in an old record belongs to other partitions."""
    with pytest.raises(SourceError, match=r"stream_of\(\['a', 'b'\]\): there is no partition '7'"):
        stream_of("ab").reach({"7": 0})
    with pytest.raises(SourceError, match="'x' is no offset of an item"):
        stream_of("ab").reach({"0": "x"})
