"""How partials come to the tasks where their shards are: plain functions, no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from collectors import counting, to_list
from dstream.engine.tasks.rows import LAST, Row
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.shards import ReadShards, RouteToShards
from dstream.errors import EngineError, SerializationError
from dstream.failures import MISSING, known_of
from dstream.operators.state.keyed_operators import RollingAggregate
from dstream.operators.state.stateful_steps import Arrival, Gathered
from dstream.operators.windows.frames import FrameWindows
from dstream.operators.windows.sessions import SessionWindows
from dstream.spi.epochs import EpochTime, TaskPartials
from dstream.windows import session, tumbling
from tests.engine.epochs import step

TARGETS, SHARDS = 2, 6
STEP = step(".window(...)", 5)


def sent(source: int, *arrivals: Arrival, watermark: int = 5) -> list[Row]:
    """Return the rows that a task sends."""
    task = StageTask(source, 2**60)
    task.watermarks.take({("clock", ("events", str(source))): watermark})
    return list(RouteToShards(TARGETS, SHARDS, STEP)(iter(arrivals), task))


def gathered(rows: Iterable[Row], target: int, sources: int = 2) -> Gathered:
    """Return what a target makes of the rows that are for it, in the order in which a shuffle brings them."""
    own = sorted((row for row in rows if row.target == target), key=lambda row: (row.source, row.sequence))
    (found,) = ReadShards(TARGETS, sources, STEP)(iter(own))
    return found


@pytest.fixture
def rows() -> list[Row]:
    """What two tasks of two inputs send."""
    first = Arrival(0, TaskPartials({0: "a", 1: "b", 4: "c"}, 10, 2))
    return [*sent(1, Arrival(1, TaskPartials({0: "d"}, 5, 0)), watermark=3), *sent(0, first)]


def test_partials_of_a_shard_come_in_order(rows: list[Row]) -> None:
    """By input, partition and offset; each target has shards that follow each other."""
    low, high = gathered(rows, 0), gathered(rows, 1)

    assert (low.target, low.of_shards) == (0, {0: [(0, "a"), (1, "d")], 1: [(0, "b")]})
    assert (high.target, high.of_shards) == (1, {4: [(0, "c")]})


def test_items_are_counted_at_one_target(rows: list[Row]) -> None:
    """Of each task, what it saw is told once."""
    found = [gathered(rows, target) for target in range(TARGETS)]

    assert [(each.items, each.late) for each in found] == [(10, 2), (5, 0)]


def test_watermarks_come_to_every_target(rows: list[Row]) -> None:
    """Also to one that no item is for."""
    known = {("clock", ("events", "0")): 5, ("clock", ("events", "1")): 3}

    assert [gathered(rows, target).watermarks for target in range(TARGETS)] == [known, known]


def without(rows: list[Row], lost: Callable[[Row], bool]) -> list[Row]:
    """Return the rows that a broken shuffle brings."""
    return [row for row in rows if not lost(row)]


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (lambda row: row.source == 1 and row.sequence < LAST, "task 1 sent 1, and 0 arrived"),
        (lambda row: row.source == 1, "1 of 2 tasks were heard of"),
        (lambda row: row.sequence == LAST, "0 of 2 tasks were heard of"),
        (lambda row: True, "0 of 2 tasks were heard of"),
    ],
)
def test_lost_rows_are_noticed(rows: list[Row], lost: Any, said: str) -> None:
    """Partials, the last row of a task, or all that a target should have."""
    with pytest.raises(EngineError, match=rf"the shuffle before step 5 of 9: .window\(...\) lost rows: {said}"):
        gathered(without(rows, lost), 0)


def test_rows_that_come_twice_are_noticed(rows: list[Row]) -> None:
    """A number that is too large is as wrong."""
    with pytest.raises(EngineError, match="task 0 sent 1, and 2 arrived"):
        gathered([*rows, *(row for row in rows if row.source == 0 and row.sequence < LAST)], 0)


def test_nothing_was_sent_by_no_task() -> None:
    """An epoch that reads nothing has no source tasks, and loses nothing."""
    assert gathered([], 0, sources=0) == Gathered(0, TARGETS)


class Unpicklable:
    """What pickle does not take."""

    def __reduce__(self) -> str:
        raise TypeError("not this one")


BAD = Unpicklable()
WINDOW, MAPPING = FrameWindows(tumbling(10), (str,), to_list()), RollingAggregate(str, counting())
SESSIONS = SessionWindows(session(10), (str,), to_list())


@pytest.mark.parametrize(
    ("operator", "what", "item"),
    [
        (MAPPING, "an item cannot travel between processes: Unpicklable <", BAD),
        (WINDOW, "a group cannot travel between processes: list [<", MISSING),
        (SESSIONS, "a group cannot travel between processes: list [<", MISSING),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_what_cannot_travel_names_the_step(operator: Any, what: str, item: Any) -> None:
    """In terms of the user's items and keys, and not of what holds them on their way."""
    partials = operator.partial(0, iter([(1, "good"), (2, BAD)]), EpochTime(1, 0.0, 0, 0), SHARDS)
    with pytest.raises(SerializationError) as caught:
        sent(0, Arrival(0, partials))

    assert str(caught.value).startswith(what)
    assert str(caught.value).endswith("cannot be pickled: not this one")
    known = known_of(caught.value)
    assert known is not None
    assert (known.step, known.item) == (STEP, item)
    assert known.given is None or known.given.startswith("in the group of the key '<")


def test_another_failure_before_the_shuffle_stays_as_it_is() -> None:
    """Nothing here is to blame for it."""

    def arrivals() -> Iterator[Arrival]:
        yield Arrival(0, TaskPartials({0: "a"}, 1, 0))
        raise SerializationError("elsewhere")

    task = StageTask(0, 2**60)
    with pytest.raises(SerializationError, match=r"^elsewhere$") as caught:
        list(RouteToShards(TARGETS, SHARDS, STEP)(arrivals(), task))
    assert known_of(caught.value) is None
