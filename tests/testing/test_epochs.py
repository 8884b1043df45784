"""`epochs()`: epochs that a test cuts."""

from __future__ import annotations

from datetime import timedelta
from operator import add, itemgetter

import pytest

from collectors import counting
from dstream import JoinClause, Pipeline, connect
from dstream.errors import IllegalStateError
from dstream.testing.unbounded import epochs
from dstream.windows import tumbling
from reducers import to_ilist, to_imap
from sources import imap, stream_from_processor, text_files
from tests.jobs.unbounded.counting_processors import Numbers, Totals
from tests.jobs.unbounded.streams import pipeline_of
from tests.jobs.unbounded.summing import FrameSums, Lagging
from tests.jobs.unbounded.timed_plans import summing_plan


def test_each_cut_is_one_epoch():
    """What sinks get is that of the epoch; an empty one gives nothing."""
    by_hand = epochs()
    numbers = by_hand.source("numbers", partitions=2)
    by_hand.of(pipeline_of(numbers, to_ilist("out"), to_imap("map", str, lambda n: n)))

    assert by_hand.cut({numbers: {0: [1], 1: [2]}}) == {"write_to": [1, 2], "write_to-2": [("1", 1), ("2", 2)]}
    assert by_hand.cut() == {"write_to": [], "write_to-2": []}
    assert by_hand.cut({numbers: [3]}) == {"write_to": [3], "write_to-2": [("3", 3)]}


def test_replay_gives_the_same():
    """All epochs run again from the start, with the same borders."""
    by_hand = epochs()
    numbers = by_hand.source("numbers")
    by_hand.of(pipeline_of(numbers, to_ilist("out")))
    first = [by_hand.cut({numbers: [1, 2]}), by_hand.cut(), by_hand.cut({numbers: [3]})]

    assert by_hand.replay() == first == [{"write_to": [1, 2]}, {"write_to": []}, {"write_to": [3]}]


def test_a_replay_that_failed_loses_no_epochs():
    """It can be repeated from the start; an epoch behind one that was not reached again is refused."""
    by_hand, failing = epochs(), []
    numbers = by_hand.source("numbers")
    by_hand.of(pipeline_of(numbers, to_imap("map", lambda n: n if n not in failing else n / 0, str)))
    first = [by_hand.cut({numbers: [n]}) for n in (1, 2, 3)]

    failing.append(2)
    with pytest.raises(ZeroDivisionError):
        by_hand.replay()
    with pytest.raises(IllegalStateError, match="a replay failed in between"):
        by_hand.cut({numbers: [4]})
    failing.clear()

    assert by_hand.replay() == first
    assert by_hand.cut({numbers: [4]}) == {"write_to": [(4, "4")]}


def test_a_replay_needs_a_pipeline():
    """As a cut does."""
    with pytest.raises(IllegalStateError, match="there is no pipeline"):
        epochs().replay()


def test_a_side_of_a_hash_join_is_read_once(tmp_path):
    """It is kept from the first epoch on, as in Jet; what changes belongs into a map."""
    by_hand, path = epochs(), tmp_path / "names.txt"
    path.write_text("a 1")
    letters, pipeline = by_hand.source("letters"), Pipeline()
    names = pipeline.read_from(text_files(path)).map(str.split)
    joined = pipeline.read_from(letters).hash_join(names, on=(str, itemgetter(0)), to=lambda letter, name: name[1])
    joined.write_to(to_ilist("out"))
    by_hand.of(pipeline)
    assert by_hand.cut({letters: ["a"]}) == {"write_to": ["1"]}
    path.write_text("a 2")

    assert by_hand.cut({letters: ["a", "a"]}) == {"write_to": ["1", "1"]}


def test_what_several_stages_read_is_computed_in_each_epoch():
    """Both see the items of this epoch."""
    by_hand = epochs()
    numbers, pipeline = by_hand.source("numbers"), Pipeline()
    shared = pipeline.read_from(numbers).map(str)
    for name in ("one", "two"):
        shared.map(name.__add__).write_to(to_ilist(name))
    by_hand.of(pipeline)

    assert by_hand.cut({numbers: [1]}) == {"write_to": ["one1"], "write_to-2": ["two1"]}
    assert by_hand.cut({numbers: [2]}) == {"write_to": ["one2"], "write_to-2": ["two2"]}


def renaming(path, letters, changed=lambda stage: stage, **refreshing):
    """Return the pipeline that gives letters the names that a file says."""
    pipeline = Pipeline()
    names = changed(pipeline.read_from(text_files(path)).map(str.split))
    on = (str, itemgetter(0))
    joined = pipeline.read_from(letters).hash_join(names, on, lambda letter, name: name[1], **refreshing)
    joined.write_to(to_ilist("out"))
    return pipeline


@pytest.mark.parametrize("changed", [lambda stage: stage, lambda stage: stage.cache(), lambda s: s.cache().filter(len)])
def test_a_side_of_a_hash_join_is_read_again(tmp_path, changed):
    """By the first epoch that begins so much later, not before; also what `cache()` keeps of it."""
    by_hand, path, found = epochs(), tmp_path / "names.txt", []
    letters = by_hand.source("letters")
    path.write_text("nobody reads this")
    by_hand.of(renaming(path, letters, changed, refresh_every=timedelta(minutes=1)))
    for number, now in enumerate([100.0, 159.0, 160.0, 219.0, 250.0]):
        path.write_text(f"a {number}")
        found += by_hand.cut({letters: ["a"]}, now)["write_to"]

    assert found == ["0", "0", "2", "2", "4"]


@pytest.mark.parametrize("changed", [lambda stage: stage, lambda stage: stage.cache(), lambda s: s.cache().filter(len)])
def test_each_side_of_a_hash_join_has_a_time_of_its_own(tmp_path, changed):
    """Unset, it is read once; 0 reads it in each epoch; also of what they share, and of what that keeps."""
    by_hand, path, found = epochs(), tmp_path / "name.txt", []
    letters, pipeline = by_hand.source("letters"), Pipeline()
    path.write_text("nobody reads this")
    stage, names = pipeline.read_from(letters), changed(pipeline.read_from(text_files(path)))
    for every in (None, 0, 10):
        stage = stage.inner_hash_join(names, (bool, bool), add, refresh_every=every)
    stage.write_to(to_ilist("out"))
    by_hand.of(pipeline)
    for number, now in enumerate([0.0, 5.0, 10.0]):
        path.write_text(str(number))
        found += by_hand.cut({letters: ["a"]}, now)["write_to"]

    assert found == ["a000", "a010", "a022"]


def test_a_map_is_read_again_as_it_is_then():
    """Not as it was when the job began."""
    with connect(engine="local", storage="memory:") as ctx:
        by_hand, numbers, found = epochs(ctx), ctx.get_map("numbers"), []
        letters, pipeline = by_hand.source("letters"), Pipeline()
        names = pipeline.read_from(imap("numbers"))
        joined = pipeline.read_from(letters).hash_join(names, JoinClause.join_map_entries(str), refresh_every=0)
        joined.write_to(to_ilist("out"))
        by_hand.of(pipeline)
        for number in range(3):
            numbers["a"] = number
            found += by_hand.cut({letters: ["a"]})["write_to"]

    assert found == [("a", 0), ("a", 1), ("a", 2)]


def test_windows_run_in_the_context_of_a_test_on_both_engines(both_engines):
    """Its collections are in memory, where workers cannot reach them; the state of the steps has to be elsewhere."""
    by_hand = epochs(both_engines)
    numbers, pipeline = by_hand.source("numbers", partitions=2), Pipeline()
    timed = pipeline.read_from(numbers).add_timestamps(int)
    timed.window(tumbling(10)).aggregate(counting()).write_to(to_ilist("out"))
    by_hand.of(pipeline)
    assert by_hand.cut({numbers: {0: [1, 4, 12], 1: [3]}}) == {"write_to": []}

    assert by_hand.cut({numbers: {1: [15]}}) == {"write_to": [(0, 10, 3, False)]}
    assert [got["write_to"] for got in by_hand.replay()] == [[], [(0, 10, 3, False)]]


@pytest.mark.parametrize(("every", "error"), [(-1, ValueError), ("1", TypeError)])
def test_a_side_is_read_again_after_seconds(every, error):
    """Other times are refused where the join is written."""
    with pytest.raises(error, match="refresh_every must be"):
        renaming("names.txt", epochs().source("letters"), refresh_every=every)


def test_a_pipeline_is_needed():
    """The message says how it is given."""
    with pytest.raises(IllegalStateError, match=r"epochs\(\)\.of\(pipeline\) takes one"):
        epochs().cut()


@pytest.fixture
def sums():
    """Sums by frames of ten, of two partitions whose watermarks are their greatest timestamps."""
    by_hand = epochs()
    numbers = by_hand.source("numbers", partitions=2)
    by_hand.of(summing_plan(numbers, Lagging, FrameSums()))
    return lambda given=None, now=None, **more: by_hand.cut({numbers: given or {}}, now, **more)["sink"], by_hand


def test_a_frame_closes_when_all_partitions_have_passed_it(sums):
    """In the very epoch in which the slower one does."""
    cut, by_hand = sums

    assert cut({0: [2, 4], 1: [6]}) == []
    assert cut({0: [12]}) == []
    assert (by_hand.clock, cut({1: [10]})) == (6, [(10, 12)])
    assert cut({0: [21], 1: [25]}) == [(20, 22)]
    assert by_hand.replay() == [{"sink": []}, {"sink": []}, {"sink": [(10, 12)]}, {"sink": [(20, 22)]}]


def test_late_items_are_counted(sums):
    """They are dropped where they are, by the watermark at the start of the epoch."""
    cut, by_hand = sums
    cut({0: [30], 1: [40]})

    assert (cut({0: [5, 35]}), by_hand.late) == ([], {"sums": 1})


def test_an_idle_partition_holds_nobody_back(sums):
    """After its timeout; the clock is that of the test."""
    cut, _ = sums
    assert cut({0: [2, 14]}, now=0) == []
    assert cut({0: [16]}, now=59) == []
    assert cut({0: [18]}, now=60) == [(10, 2)]
    assert cut({1: [12], 0: [20]}, now=61) == []


def test_all_partitions_idle_let_time_go_to_the_greatest(sums):
    """What the slower one has is on time up to there."""
    cut, _ = sums
    cut({0: [2, 14], 1: [4]}, now=0)

    assert cut(now=59) == []
    assert cut(now=60) == [(10, 6)]


def test_an_end_closes_all_frames(sums):
    """In order of their ends in each shard."""
    cut, _ = sums
    cut({0: [2, 14]})

    assert sorted(cut({1: [26]}, is_end=True)) == [(10, 2), (20, 14), (30, 26)]


def test_what_a_function_raises_is_told_with_its_step_and_item():
    """As in a job."""
    by_hand = epochs()
    numbers = by_hand.source("numbers")
    by_hand.of(pipeline_of(numbers, to_imap("map", lambda n: 1 // n, lambda n: n)))

    with pytest.raises(ZeroDivisionError) as raised:
        by_hand.cut({numbers: [0]})
    assert "Where: step 2 of 2, .write_to(to_imap('map'" in raised.value.__notes__[1]
    assert "on the item 0" in raised.value.__notes__[1]


def test_what_failed_was_not_given():
    """Its items may be given again, or others."""
    by_hand = epochs()
    numbers = by_hand.source("numbers")
    by_hand.of(pipeline_of(numbers, to_imap("map", lambda n: 1 // n, lambda n: n)))
    with pytest.raises(ZeroDivisionError):
        by_hand.cut({numbers: [1, 0]})

    assert by_hand.cut({numbers: [1]}) == {"write_to": [(1, 1)]}
    assert by_hand.replay() == [{"write_to": [(1, 1)]}]


def test_nothing_comes_behind_the_end():
    """The items would be lost; an epoch without any may follow, and what begins anew has not ended."""
    by_hand = epochs()
    numbers = by_hand.source("numbers")
    by_hand.of(pipeline_of(numbers, to_ilist("out"))).cut({numbers: [1]}, is_end=True)

    assert by_hand.cut() == {"write_to": []}
    with pytest.raises(IllegalStateError, match=r"all sources have ended: of\(pipeline\) begins anew"):
        by_hand.cut({numbers: [2]})
    assert by_hand.of(pipeline_of(numbers, to_ilist("out"))).cut({numbers: [2]}) == {"write_to": [2]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda numbers: [1, 2], r"cut\(\) takes the items of each source, such as \{numbers: \[1, 2\]\}, not list"),
        (lambda numbers: {"numbers": [1]}, r"cut\(\) takes items of what source\(...\) returned, and 'numbers' is str"),
        (lambda numbers: {numbers: 5}, r"the items of source\('numbers'\) must be a list or another iterable, not int"),
        (
            lambda numbers: {numbers: {"a": [1]}},
            r"the partitions of source\('numbers'\) have numbers from 0 on, and 'a'",
        ),
        (lambda numbers: {numbers: {-1: [1]}}, r"have numbers from 0 on, and -1 is none"),
    ],
)
def test_what_is_given_has_a_form(given, message):
    """The message says which."""
    by_hand = epochs()
    numbers = by_hand.source("numbers")
    by_hand.of(pipeline_of(numbers, to_ilist("out")))

    with pytest.raises(TypeError, match=message):
        by_hand.cut(given(numbers))


def test_a_source_that_nobody_reads_takes_no_items():
    """They would be lost, as those for a source of the same name that other epochs have."""
    by_hand = epochs()
    by_hand.of(pipeline_of(by_hand.source("numbers"), to_ilist("out")))

    with pytest.raises(ValueError, match=r"the pipeline does not read source\('numbers'\)"):
        by_hand.cut({epochs().source("numbers"): [1]})


def test_what_is_no_pipeline_is_refused():
    """And a number of partitions below none."""
    with pytest.raises(TypeError, match=r"of\(\) takes a pipeline or a graph, not None"):
        epochs().of(None)
    with pytest.raises(ValueError, match="partitions must not be negative: -1"):
        epochs().source("numbers", -1)


def test_a_partition_may_come_up_and_end_at_once(sums):
    """In the epoch in which all sources end."""
    cut, _ = sums

    assert cut({0: [2], 7: [3]}, is_end=True) == [(10, 2), (10, 3)]


@pytest.mark.parametrize("end", [500, None])
def test_processors_that_might_go_on_end_with_the_others(engine, end):
    """What stands behind them hears of it in the epoch in which everything ends, behind their last item."""
    by_hand, pipeline = epochs(engine.context), Pipeline()
    source = stream_from_processor("numbers", lambda: Numbers(end, most=500, at_once=500))
    numbers = pipeline.read_from(source).set_local_parallelism(2)
    words = numbers.map(lambda pair: f"{pair[0]}").custom_transform("totals", Totals).set_local_parallelism(1)
    words.write_to(to_ilist("out"))
    by_hand.of(pipeline)
    first, second = by_hand.cut()["write_to"], by_hand.cut(is_end=True)["write_to"]
    most = 500 if end else 1000

    assert "end" not in dict(first)
    assert second[-1] == ("end", 2 * most)
    assert [count for word, count in first + second if word == "0"] == list(range(1, most + 1))
    assert end is None or by_hand.cut() == {"write_to": []}


def test_the_clock_starts_with_the_first_epoch():
    """Without a reading it stands at 0, and a later one of a real clock would make every partition idle."""
    by_hand = epochs()
    numbers = by_hand.source("numbers", partitions=2)
    by_hand.of(pipeline_of(numbers, to_ilist("out")))
    by_hand.cut({numbers: [1]})

    with pytest.raises(ValueError, match=r"would jump from 0 to 1700000000.*give now= to the first cut, too"):
        by_hand.cut(now=1.7e9)
    assert by_hand.cut({numbers: [2]}, now=100.0) == {"write_to": [2]}
    by_hand.of(pipeline_of(numbers, to_ilist("out"))).cut(now=1.7e9)
    assert by_hand.cut({numbers: [3]}) == {"write_to": [3]}
    assert by_hand.now == 1.7e9
