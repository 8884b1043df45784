"""`gather` with a gatherer of one's own, and `and_then`."""

from __future__ import annotations

import operator
from typing import Any

import numpy
import pytest

from collectors import grouping_by, to_list
from dstream import Stream, failure
from dstream.errors import IllegalStateError
from dstream.gatherers import Gatherer, fold, scan, window_fixed, window_sliding
from dstream.gatherers.neighbours import indexed, numbered, pairs, sampled
from dstream.spi import Integration
from dstream.testing import Parts, same_everywhere
from reducers import to_imap


def doubled(state: None, item: Any, downstream: Any) -> None:
    """Push each item twice."""
    downstream.push(item)
    downstream.push(item)


def up_to(last: Any) -> Gatherer[Any, Any, Any]:
    """Keep the items up to `last`, and tell at the end how many there were."""

    def take(state: list[int], item: Any, downstream: Any) -> bool:
        state[0] += 1
        downstream.push(item)
        return item != last

    def add(left: list[int], right: list[int]) -> None:
        left[0] += right[0]

    return Gatherer.of(lambda: [0], integrator=take, combiner=add, finisher=lambda state, out: out.push(f"{state[0]}"))


def test_gather_without_state(engine):
    """An integrator pushes as often as it likes; without an initializer the state is None."""
    assert engine.stream("ab", 2).gather(Gatherer.of(integrator=doubled)).to_list() == ["a", "a", "b", "b"]


@pytest.mark.parametrize("combine", [lambda left, right: left.extend(right), operator.add])
def test_gather_with_a_combiner_runs_in_each_partition(engine, combine):
    """What is pushed stands where it was pushed; states are combined in order; the finisher comes once and last."""

    def take(state: list[int], item: int, downstream: Any) -> None:
        state.append(item) if item % 2 else downstream.push(item)

    gatherer = Gatherer.of(list, integrator=take, combiner=combine, finisher=lambda state, out: out.push(state))
    stream = engine.context.read(Parts([5, 2], [], [4, 3], [1], [6]))

    assert stream.gather(gatherer).to_list() == [2, 4, 6, [5, 3, 1]]
    assert stream.gather(gatherer).map(str).chunked(3).to_list() == [("2", "4", "6"), ("[5, 3, 1]",)]


def answering(answer: Any, *, through: bool = False) -> Gatherer[Any, Any, Any]:
    """Keep each item; `answer(item)` is the result of the integrator, or of the one that it pushes to."""

    def take(state: Any, item: Any, downstream: Any) -> Any:
        downstream.push(item)
        return answer(item)

    gatherer: Gatherer[Any, Any, Any] = Gatherer.of(integrator=take)
    return Gatherer.of(integrator=doubled).and_then(gatherer) if through else gatherer


@pytest.mark.parametrize(
    "answer", [lambda n: n < 2, lambda n: numpy.int64(n) < 2, lambda n: None if n < 2 else numpy.bool_(n == 1)]
)
def test_gather_stops_at_false_also_at_that_of_numpy(engine, answer):
    """False ends the stream, in each of its types; True and None continue it, also in a composition."""
    numbers = engine.stream([1, 2, 3, 4], 2)

    assert numbers.gather(answering(answer)).to_list() == [1, 2]
    assert numbers.gather(answering(answer, through=True)).to_list() == [1, 1, 2]
    assert numbers.gather(answering(answer).and_then(Gatherer.of(integrator=doubled))).to_list() == [1, 1, 2, 2]


@pytest.mark.parametrize("answer", [0, 1, "", [], numpy.int64(0), numpy.float64(1)])
@pytest.mark.parametrize("through", [False, True])
def test_gather_continues_after_another_result_of_an_integrator(engine, answer, through):
    """Only False ends the stream: what an integrator returns by the way does not."""
    numbers = engine.stream([7, 8], 1).gather(answering(lambda n: answer, through=through))

    assert numbers.to_list() == ([7, 7, 8, 8] if through else [7, 8])


@pytest.mark.parametrize("last", [1, 4, None])
def test_gather_stops_where_an_integrator_says_so(last):
    """Nothing of the items behind is given or counted, in this partition or in later ones."""
    items = [1, 2, 3, 4, 5, 6]
    kept = items[: items.index(last) + 1] if last else items

    assert same_everywhere(lambda s: s.gather(up_to(last)), items, partitions=(2, 4)) == [*kept, str(len(kept))]


def test_gather_of_nothing_finishes(engine):
    """The finisher runs for an empty stream, in empty partitions and where there are none."""
    empty = engine.context.read(Parts([], []))

    assert empty.gather(up_to(3)).to_list() == ["0"]
    assert empty.limit(0).map(str).gather(up_to(3)).to_list() == ["0"]


def test_gather_reads_an_endless_stream_as_far_as_it_likes(default_engine):
    """An integrator that wants no more ends it; a loop comes to its end."""
    numbers = Stream.iterate(0, lambda n: n + 1)

    assert numbers.gather(up_to(2)).limit(9).to_list() == [0, 1, 2, "3"]
    assert list(numbers.gather(up_to(2))) == [0, 1, 2, "3"]


def test_gather_reads_no_item_behind_the_last_one(local_context):
    """The item with which the integrator stops is the last that is asked for."""
    source = Parts(range(9))
    local_context.read(source).gather(up_to(2)).to_list()

    assert source.items_read == 3


def test_gather_names_the_item_that_failed(engine):
    """An integrator keeps its exception, which knows the step and the item; a finisher has no item."""
    failing = Gatherer.of(integrator=lambda state, item, out: out.push(1 / item))
    with pytest.raises(ZeroDivisionError) as caught:
        engine.stream([1, 0], 2).gather(failing).to_list()
    assert failure(caught.value).item == 0

    at_end = Gatherer.of(integrator=doubled, finisher=lambda state, out: out.push(1 / 0))
    with pytest.raises(ZeroDivisionError) as caught:
        engine.stream([1, 2], 2).gather(at_end).to_list()
    assert repr(failure(caught.value).item) == "<not known>"


OURS = [
    window_fixed(2),
    window_sliding(2),
    window_sliding(9),
    pairs(),
    indexed(),
    numbered(3),
    sampled(0.5, 1),
    fold(int, operator.add),
    scan(int, operator.add),
]


@pytest.mark.parametrize("gatherer", OURS, ids=lambda gatherer: gatherer.name)
@pytest.mark.parametrize("count", range(6))
def test_each_gatherer_gives_the_same_item_by_item(gatherer, count):
    """The fast loop of a factory and its integrator mean the same."""
    run = Integration(gatherer)

    assert [*run.pushed(range(count)), *run.finished()] == list(gatherer.gather(range(count)))


@pytest.mark.parametrize("first", [window_sliding(2), Gatherer.of(integrator=doubled)])
@pytest.mark.parametrize("second", [window_fixed(3), scan(list, lambda seen, item: [*seen, item]), up_to(1)])
def test_and_then_is_one_gatherer_after_another(engine, first, second):
    """The items of the first are those that the second takes, in any partitions."""
    stream = engine.stream([1, 2, 3, 4], 3)

    assert stream.gather(first.and_then(second)).to_list() == stream.gather(first).gather(second).to_list()


def test_and_then_with_two_combiners_runs_in_each_partition(engine):
    """The states of both are combined, and what the first pushes at its end goes through the second."""
    both = up_to(None).and_then(up_to("never"))

    assert both.combiner is not None
    assert engine.stream("abc", 3).gather(both).to_list() == ["a", "b", "c", "3", "4"]


def test_and_then_with_two_combiners_ends_where_the_second_stops(engine):
    """What the first pushes at its end comes to nothing then, also if it stopped in a later partition."""
    both = up_to(None).and_then(up_to("b"))

    assert engine.stream("abcd", 4).gather(both).to_list() == ["a", "b", "2"]


def test_and_then_tells_the_first_that_the_second_has_stopped(local_context):
    """Its push gives False, nothing is pushed through any more, and no further item is read."""
    told: list[Any] = []

    def push_three(state: None, item: int, downstream: Any) -> None:
        told.extend(downstream.push(item) for _ in range(3))
        told.append(downstream.is_rejecting())

    source = Parts([1, 2, 3])
    both = Gatherer.of(integrator=push_three).and_then(up_to(1))

    assert local_context.read(source).gather(both).to_list() == [1, "1"]
    assert (told, source.items_read) == ([False, False, False, True], 1)


@pytest.mark.parametrize("name", ["integrator", "initializer", "combiner", "finisher"])
def test_gatherers_refuse_what_is_no_function(name):
    """Each argument at the call, by its name."""
    given = {"integrator": doubled} | {name: 7}
    with pytest.raises(TypeError, match=f"^{name} must be a function, not int"):
        Gatherer.of(**given)


def test_gather_refuses_what_is_no_gatherer(local_context):
    """A function is none, for `gather` and for `and_then`; an endless stream is not listed."""
    with pytest.raises(TypeError, match="gatherer must be a Gatherer, not function"):
        local_context.stream([1]).gather(lambda item: item)
    with pytest.raises(TypeError, match="other must be a Gatherer, not None"):
        window_fixed(2).and_then(None)
    with pytest.raises(IllegalStateError, match="infinite"):
        Stream.iterate(0, abs).chunked(2).to_list()


def up_to_five(state, item, downstream):
    """Want no more after the fifth."""
    downstream.push(item)
    return item < 5


UP_TO_FIVE = Gatherer.of(integrator=up_to_five)
NATURAL = {
    "iterate": lambda: Stream.iterate(1, lambda n: n + 1),
    "from a chain": lambda: Stream.iterate(0, lambda n: n + 1).map(lambda n: n + 1).filter(bool),
    "concat": lambda: Stream.of(1, 2) + Stream.iterate(3, lambda n: n + 1),
}
ENDS = {
    "to_list": lambda s: s.to_list(),
    "collect": lambda s: s.collect(to_list()),
    "grouping": lambda s: s.collect(grouping_by(lambda n: 1))[1],
    "reduce": lambda s: list(range(1, s.reduce(max).get() + 1)),
    "count": lambda s: list(range(1, s.count() + 1)),
    "loop": lambda s: list(s),
    "sorted": lambda s: s.sorted().to_list(),
    "distinct": lambda s: s.distinct().to_list(),
    "zip_with_index": lambda s: [item for item, _ in s.zip_with_index().to_list()],
    "join": lambda s: sorted(e.key for e in Stream.of(1, 2, 3, 4, 5).join(s, on=abs).to_list()),
    "to_imap": lambda s: sorted(s.collect(to_imap("numbers", abs, abs)).copy()),
    "and_then": lambda s: s.gather(UP_TO_FIVE.and_then(window_fixed(9))).to_list()[0],
}


@pytest.mark.parametrize("source", NATURAL)
def test_a_gatherer_that_stops_ends_an_infinite_stream(default_engine, source):
    """Behind it all items may be asked for."""
    assert NATURAL[source]().gather(UP_TO_FIVE).to_list() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("end", ENDS)
def test_an_infinite_stream_that_a_gatherer_stopped_serves_every_operation(default_engine, end):
    """Those that need the end, and those that write."""
    assert list(ENDS[end](NATURAL["iterate"]().gather(UP_TO_FIVE))) == [1, 2, 3, 4, 5]


def test_generate_ends_behind_a_gatherer(default_engine):
    """Also from many partitions without order."""
    assert Stream.generate(lambda: 7).gather(UP_TO_FIVE).map(str).to_list() == ["7"]


@pytest.mark.parametrize("gatherer", [window_fixed(2), scan(int, lambda a, b: b), fold(int, lambda a, b: b)])
def test_a_gatherer_that_never_stops_leaves_an_infinite_stream_infinite(default_engine, gatherer):
    """Then who needs the end is refused before anything runs."""
    with pytest.raises(IllegalStateError, match="infinite"):
        NATURAL["iterate"]().gather(gatherer).to_list()
