"""Which engine runs an epoch: the choice by load, with a clock and costs in the hands of the test."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from dstream.jobs.unbounded.placement import EpochLoad, EpochPlacement
from dstream.jobs.unbounded.rate_control import BatchSize

START = 4.0
"""Seconds that a start of Spark takes."""


@dataclass
class Simulation:
    """A job whose items arrive at a rate, on two engines whose epochs have a constant cost and a cost of each item.

    Attributes:
        rate: the items of a second, by the time.
        of_each: seconds that an item takes in this process.
        speedup: how many times faster Spark is with items.
        most: how many items an epoch may have, as the user limits them.
        burst_at: when 100,000 items come at once.
        pause: the seconds that the next epoch is held up for.
        engines: the engine of each epoch, with its start.
        lasting: whether Spark should start behind each epoch, with its end.
    """

    rate: Callable[[float], float]
    of_each: float = 10e-6
    here: float = 0.008
    there: float = 0.08
    speedup: float = 3.0
    most: float = math.inf
    is_spark_running: Callable[[float], bool] = lambda now: True
    burst_at: float = math.inf
    pause: Callable[[], float] = lambda: 0.0
    now: float = 0.0
    backlog: float = 0.0
    placement: EpochPlacement = field(default_factory=EpochPlacement)
    engines: list[tuple[float, str]] = field(default_factory=list)
    longest: float = 0.0
    lasting: list[tuple[float, bool]] = field(default_factory=list)

    def run(self, until: float) -> Simulation:
        sizes = {engine: BatchSize(0.2, longest=1.0) for engine in ("inprocess", "spark")}
        pauses = {"inprocess": 0.01, "spark": 0.2}
        while self.now < until:
            engine = self.placement.choose(self.now, is_spark_running=self.is_spark_running(self.now))
            items = min(self.backlog, sizes[engine].limit, self.most)
            if items < 1:
                self._wait(pauses[engine])
                continue
            began, self.backlog = self.now, self.backlog - items
            seconds = self.here + items * self.of_each
            if engine == "spark":
                seconds = self.there + items * self.of_each / self.speedup
            seconds += self.pause()
            self.engines.append((began, engine))
            left = min(self.backlog, self.most)
            self._wait(seconds)
            self.placement.after(EpochLoad(began, seconds, int(items), left))
            self.lasting.append((self.now, self.placement.is_lasting(START)))
            sizes[engine] = sizes[engine].after(int(items), seconds, left)
            self.longest = max(self.longest, self.backlog * self.of_each)
            self._wait(max(0.0, began + pauses[engine] - self.now))
        return self

    def _wait(self, seconds: float) -> None:
        if self.now < self.burst_at <= self.now + seconds:
            self.backlog += 100_000
        self.backlog += self.rate(self.now) * seconds
        self.now += seconds

    def moves(self) -> list[tuple[float, str]]:
        """Return the first epoch on each engine, of those that another one ran before."""
        pairs = zip(self.engines, self.engines[1:], strict=False)
        return [later for earlier, later in pairs if earlier[1] != later[1]]


@pytest.mark.parametrize("rate", [1, 100, 1_000, 10_000, 50_000])
def test_a_load_that_this_process_keeps_up_with_stays_here(rate: float) -> None:
    """Half of a core is no reason to move: an epoch on Spark takes ten times as long."""
    assert Simulation(lambda now: rate).run(120).moves() == []


@pytest.mark.parametrize("of_each", [4e-6, 10e-6, 100e-6])
def test_a_burst_behind_a_calm_is_on_spark_after_three_epochs(of_each: float) -> None:
    """100,000 events at once; a minute later the epochs are here again, and stay."""
    made = Simulation(lambda now: 100, of_each, burst_at=20.0).run(120)
    (there, first), (back, second) = made.moves()

    assert (first, second) == ("spark", "inprocess")
    assert len([began for began, engine in made.engines if 20.0 < began < there]) <= 3
    assert back - 20.0 <= 60


def test_a_rising_load_is_on_spark_before_it_waits_for_long() -> None:
    """From 1,000 to 150,000 events a second within a minute: more than one core does."""
    made = Simulation(lambda now: 1_000 + min(now, 60.0) / 60 * 149_000).run(120)

    assert [engine for _, engine in made.moves()] == ["spark"]
    assert 25 < made.moves()[0][0] < 45  # A core is full at 40 s.
    assert made.longest < 1.0


def test_a_falling_load_is_here_again_within_a_minute() -> None:
    """Whatever it was."""
    made = Simulation(lambda now: 200_000 if 10 < now < 50 else 500).run(120)
    (_, first), (back, second) = made.moves()

    assert (first, second) == ("spark", "inprocess")
    assert 50 < back < 110


def test_a_load_that_comes_and_goes_does_not_move_epochs_each_time() -> None:
    """Epochs stay on Spark longer each time that they were back too soon."""
    made = Simulation(lambda now: 200_000 if now % 15 < 1 else 100).run(600)

    assert len(made.moves()) <= 2 * 600 / 50


@pytest.mark.parametrize("rate", [75_000, 85_000, 95_000])
def test_a_load_near_the_limit_does_not_flap(rate: float) -> None:
    """It runs on one engine or the other."""
    assert len(Simulation(lambda now: rate).run(300).moves()) <= 1


@pytest.mark.parametrize("rate", [200, 1_000, 5_000])
def test_pauses_of_the_machine_are_no_reason_to_move(rate: float) -> None:
    """One epoch in a hundred takes up to 300 ms, whose few items cost no more than others."""
    numbers = random.Random(0)

    def paused() -> float:
        return numbers.uniform(0.05, 0.3) if numbers.random() < 0.01 else 0.0

    made = Simulation(lambda now: rate, pause=paused).run(120)

    assert made.moves() == []


def test_epochs_that_the_user_limits_stay_here() -> None:
    """However long the backlog: an epoch of 100 items is over here before Spark would have begun."""
    assert Simulation(lambda now: 50_000, most=100).run(60).moves() == []


def test_slow_records_are_no_reason_to_move() -> None:
    """A storage that takes 300 ms for a record does so on Spark, too."""
    assert Simulation(lambda now: 100, here=0.3, there=0.4).run(60).moves() == []


def test_epochs_return_from_a_spark_that_is_not_faster() -> None:
    """They try again a minute later, not at once."""
    made = Simulation(lambda now: 120_000, speedup=0.5).run(50)

    assert [engine for _, engine in made.moves()] == ["spark", "inprocess"]


def test_epochs_return_from_a_spark_that_works_off_a_backlog_more_slowly() -> None:
    """Its epochs became small, since they took long: what each of them does would be nothing here."""
    placement = EpochPlacement()
    for number in range(5):
        placement.after(EpochLoad(number * 0.3, 0.3, 30_000, 90_000))
    assert placement.choose(2.0, is_spark_running=True) == "spark"
    for number in range(2, 10):
        assert placement.engine == "spark"
        placement.after(EpochLoad(number, 0.9, 2_000, 80_000))
        placement.choose(number + 0.95, is_spark_running=True)

    assert placement.engine == "inprocess"
    placement.after(EpochLoad(12.0, 0.3, 30_000, 90_000))
    assert placement.choose(13.0, is_spark_running=True) == "inprocess"
    placement.after(EpochLoad(80.0, 0.3, 30_000, 90_000))
    assert placement.choose(81.0, is_spark_running=True) == "spark"


def test_epochs_move_when_spark_runs() -> None:
    """Until then they go on here; and they return when it is gone."""
    made = Simulation(lambda now: 150_000, is_spark_running=lambda now: 10 < now < 20).run(40)
    (there, first), (back, second) = made.moves()

    assert (first, second) == ("spark", "inprocess")
    assert (there < 10.5, 20 <= back < 21) == (True, True)


def test_spark_begins_to_start_before_it_is_needed() -> None:
    """Half of a high load is enough; a calm is not."""
    calm = Simulation(lambda now: 1_000 + 500 * math.sin(now)).run(30)
    rising = Simulation(lambda now: 60_000 + 20_000 * math.sin(now)).run(30)

    assert (calm.placement.is_rising, rising.placement.is_rising) == (False, True)
    assert rising.moves() == []


@pytest.mark.parametrize(("of_each", "starts"), [(10e-6, False), (30e-6, False), (100e-6, True)])
def test_a_burst_starts_spark_if_it_would_still_be_there(of_each: float, starts: bool) -> None:
    """100,000 events are one, three or ten seconds of work, at the beginning of a job or behind a calm."""
    for burst_at in 0.0, 20.0:
        made = Simulation(
            lambda now: 100,
            of_each,
            burst_at=burst_at,
            backlog=100_000 * (not burst_at),
            is_spark_running=lambda now: False,
        ).run(60)

        assert any(lasting for _, lasting in made.lasting) == starts


def test_the_first_epochs_do_not_say_what_a_backlog_takes() -> None:
    """On a busy machine ten thousand items take long for themselves: ten seconds for the backlog, by that measure."""
    placement, now, left = EpochPlacement(), 0.0, 500_000
    for items in (10_000, 20_000, 40_000, 80_000, 160_000, 190_000):
        seconds, left = 0.25 + items * 2e-6, left - items
        placement.after(EpochLoad(now, seconds, items, left))
        now += seconds

        assert not placement.is_lasting(START)


@pytest.mark.parametrize("rate", [60_000, 150_000, 1_000_000])
def test_a_load_that_lasts_starts_spark_within_some_seconds(rate: float) -> None:
    """However small its backlog is yet; three epochs in a row are no proof of it."""
    made = Simulation(lambda now: rate if now > 10 else 100, is_spark_running=lambda now: False).run(30)

    assert 10 < next(ended for ended, lasting in made.lasting if lasting) < 15


@pytest.mark.parametrize(("has_more", "engine"), [(True, "spark"), (False, "inprocess")])
def test_epochs_do_not_return_before_a_backlog_of_unknown_size(has_more: bool, engine: str) -> None:
    """Full epochs may be small, where the batch size was found while Spark was slow."""
    placement = EpochPlacement()
    for number in range(5):
        placement.after(EpochLoad(number * 0.3, 0.3, 30_000, 30_000))
    assert placement.choose(2.0, is_spark_running=True) == "spark"
    for number in range(2, 30):
        placement.after(EpochLoad(number, 0.01, 1_000, 1_000 * has_more, has_more))
        found = placement.choose(number + 0.5, is_spark_running=True)

    assert found == engine


def test_one_epoch_that_is_held_up_is_no_reason_to_start_spark() -> None:
    """A machine does other things, too, now and then."""
    placement = EpochPlacement()
    for number in range(1000):
        placement.after(EpochLoad(number * 0.02, 0.4 if number % 100 == 50 else 0.007, 20))

        assert not placement.is_rising
