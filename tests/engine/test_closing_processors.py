"""Processors are closed with what their run failed with, also where it fails behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dstream as ds
from dstream.core import AbstractProcessor, ProcessorContext
from reducers import to_ilist
from sources import from_processor
from tests.jobs.unbounded.streams import Feed, eventually


class Filing(AbstractProcessor):
    """Emits numbers, or what comes, and writes into a file with what it was closed."""

    def __init__(self, file: Path, is_cooperative: bool = True) -> None:
        super().__init__()
        self.file, self.is_cooperative, self.number = file, is_cooperative, 0

    def start(self, context: ProcessorContext) -> None:
        """Note that it is there."""
        self._write("started")

    def try_process(self, ordinal: int, item: Any) -> bool:
        """Give an item on."""
        return self.try_emit(item)

    def complete(self) -> bool:
        """Emit many numbers; nothing of what comes after its end."""
        while self.number < 5000 and self.try_emit(self.number):
            self.number += 1
        return self.number == 5000

    def close(self, error: BaseException | None) -> None:
        """Write why."""
        self._write(type(error).__name__)

    def _write(self, what: str) -> None:
        with self.file.open("a") as file:
            file.write(f"{what}\n")


def closed(file: Path) -> list[str]:
    """Return with what processors were closed."""
    return [line for line in file.read_text().splitlines() if line != "started"]


def failing(item: int) -> float:
    """Fail on 7."""
    return 1 / (item - 7)


@pytest.mark.parametrize("is_cooperative", [True, False])
def test_a_failure_behind_processors_is_told(engine, tmp_path, is_cooperative):
    """While the exception is at hand, and with it all that stood still; a thread of their own has ended by then."""
    file = tmp_path / "closed"
    numbers = engine.context.read(from_processor("numbers", lambda: Filing(file, is_cooperative)))
    with pytest.raises(ZeroDivisionError):
        numbers.map(failing).to_list()

    assert set(closed(file)) == {"ZeroDivisionError"}
    assert len(closed(file)) == file.read_text().count("started")


def test_a_run_that_ends_early_has_not_failed(engine, tmp_path):
    """Whoever takes a few items of processors has done so."""
    file = tmp_path / "closed"
    numbers = engine.context.read(from_processor("numbers", lambda: Filing(file)))

    assert len(numbers.limit(3).to_list()) == 3
    assert set(closed(file)) == {"NoneType"}


def test_a_loop_that_is_left_has_not_failed(local_context, tmp_path):
    """Its processors are closed with it."""
    file = tmp_path / "closed"
    items = iter(local_context.read(from_processor("numbers", lambda: Filing(file))))
    next(items)
    items.close()

    assert set(closed(file)) == {"NoneType"}


def test_a_failure_behind_processors_of_an_epoch_is_told(engine, tmp_path):
    """The epoch, and with it the job, has failed; nothing of their last items was written."""
    file, feed, pipeline = tmp_path / "closed", Feed({"0": [1, 2]}), ds.Pipeline()
    stage = pipeline.read_from(feed).custom_transform("filing", lambda: Filing(file)).set_local_parallelism(1)
    stage.map(failing).write_to(to_ilist(tmp_path.name))
    job = engine.context.new_job(pipeline, config=ds.JobConfig(epoch_length=0.05))
    eventually(lambda: job.epoch == 1)
    feed.give(7)
    with pytest.raises(ZeroDivisionError):
        job.join(240)

    assert closed(file)[-1] == "ZeroDivisionError"
    assert len(engine.context.get_list(tmp_path.name)) == 2


def test_all_processors_of_a_job_hear_what_it_failed_with(local_context, tmp_path):
    """Also those that had done their part of the epoch."""
    file, feed, pipeline = tmp_path / "closed", Feed({"0": [1, 2, 3, 4]}), ds.Pipeline()
    stage = pipeline.read_from(feed).custom_transform("filing", lambda: Filing(file)).set_local_parallelism(3)
    stage.map(failing).write_to(to_ilist(tmp_path.name))
    job = local_context.new_job(pipeline, config=ds.JobConfig(epoch_length=0.05))
    eventually(lambda: job.epoch == 1)
    feed.give(7)
    with pytest.raises(ZeroDivisionError):
        job.join(240)

    assert closed(file) == ["ZeroDivisionError"] * 3
