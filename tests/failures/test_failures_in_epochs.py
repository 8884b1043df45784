"""What fails in an epoch names the step of the user's, and the item or the key; here by epochs on the local engine."""

from __future__ import annotations

import threading
from operator import itemgetter
from typing import Any

import pytest

import dstream as ds
from collectors import counting
from dstream.testing import epochs
from dstream.windows import tumbling
from reducers import to_ilist
from sources import stream_of

NEVER = -(2**63)


def stop(item: Any) -> bool:
    """Raise what ends a loop, on 7."""
    if item == 7:
        raise StopIteration
    return True


def locked(state: list[Any], key: Any, item: Any) -> Any:
    """Keep what cannot be pickled, of one key."""
    if key == 1:
        state.append(threading.Lock())
    return item


class Policy:
    """Fails when the clock is past 5."""

    def __init__(self, gives: Any = None) -> None:
        self.gives = gives

    def report(self, timestamp: int, now: float) -> None:
        pass

    def watermark(self, now: float) -> Any:
        if now > 5 and self.gives is None:
            raise LookupError("no such time")
        return self.gives if now > 5 else NEVER


@pytest.mark.parametrize("name", ["filter", "map"])
def test_stop_iteration_in_a_job_names_its_step(name: str) -> None:
    """The engine runs in a thread of its own there, and what it knows of the failure comes along."""
    pipeline = ds.Pipeline()
    stage = pipeline.read_from(stream_of(range(9), 3)).add_timestamps(int)
    getattr(stage, name)(stop).write_to(to_ilist("out"))
    with (
        ds.connect(engine="local", storage="memory:") as ctx,
        pytest.raises(RuntimeError, match="StopIteration") as caught,
    ):
        ctx.new_job(pipeline).join(10)

    known = ds.failure(caught.value)
    assert known is not None
    assert (known.step.label, known.item) == (f".{name}(stop)", 7)


def told(failing: Any) -> tuple[str, ...]:
    """Return the three notes of a failure."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the tests look at what it says
        failing()
    return (str(caught.value), *caught.value.__notes__)


def test_state_that_cannot_be_pickled_names_its_key() -> None:
    """Not what holds it inside."""
    by_hand = epochs()
    numbers = by_hand.source("numbers")
    pipeline = ds.Pipeline()
    stage = pipeline.read_from(numbers).grouping_key(lambda n: n % 3)
    stage.map_stateful(list, locked).write_to(to_ilist("out"))
    by_hand.of(pipeline)
    what, _, where, to_do = told(lambda: by_hand.cut({numbers: range(6)}))

    assert what.startswith("a list cannot be stored: cannot pickle '_thread.lock' object")
    assert "map_stateful(list, locked)" in where
    assert "where the state of the key 1 was pickled, at the end of an epoch" in where
    assert to_do.startswith("What to do: keep plain values in the state")


@pytest.mark.parametrize(
    ("gives", "what"), [(None, "no such time"), ("noon", "policy.watermark(now) must give milliseconds as int")]
)
@pytest.mark.parametrize("partition", [0, 1])
def test_a_policy_that_fails_names_its_step(partition: int, gives: Any, what: str) -> None:
    """In the task that reads the partition, and in the driver, which asks for those that nobody reads."""
    by_hand = epochs()
    clicks = by_hand.source("clicks", partitions=2)
    pipeline = ds.Pipeline()
    stage = pipeline.read_from(clicks).add_timestamps(itemgetter(0), policy=Policy(gives))
    stage.window(tumbling(10)).aggregate(counting()).write_to(to_ilist("out"))
    by_hand.of(pipeline).cut({clicks: {0: [(1, "a")], 1: [(1, "b")]}}, now=1)
    message, *_, where, _ = told(lambda: by_hand.cut({clicks: {partition: [(2, "a")]}}, now=10))

    assert message.startswith(what)
    assert "add_timestamps(itemgetter, policy=" in where.partition("\n")[0]
