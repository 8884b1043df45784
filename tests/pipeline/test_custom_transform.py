"""A processor of the user's as a step of a pipeline."""

from __future__ import annotations

from collections import Counter
from uuid import uuid4

import pytest

from dstream import Context, Pipeline
from dstream.core import processors
from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext
from reducers import to_ilist
from sources import Items
from tests.conftest import EngineUnderTest


class Seen(Processor):
    """Emits its number with each item at its end."""

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        self.outbox, self.index = outbox, context.index
        self.seen: list[tuple[int, int]] = []

    def process(self, ordinal: int, inbox: Inbox) -> None:
        self.seen += [(self.index, item) for item in inbox]

    def complete(self) -> bool:
        while self.seen and self.outbox.offer(self.seen[-1]):
            self.seen.pop()
        return not self.seen


def test_processors_get_every_item_once(engine: EngineUnderTest) -> None:
    """As many of them run as the stage says."""
    pipeline, name = Pipeline(), f"transformed-{uuid4().hex}"
    stage = pipeline.read_from(Items(range(100), 3)).custom_transform("seen", Seen).set_local_parallelism(3)
    stage.write_to(to_ilist(name))

    job = engine.context.new_job(pipeline)
    job.join()

    found = list(engine.context.get_list(name))
    assert sorted(item for _, item in found) == list(range(100))
    assert {index for index, _ in found} == {0, 1, 2}
    assert job.metrics().stages["seen"].items_in_by_edge == (100,)


def test_items_of_a_key_come_to_one_processor(engine: EngineUnderTest) -> None:
    """On a keyed stage."""
    pipeline, name = Pipeline(), f"transformed-by-key-{uuid4().hex}"
    keyed = pipeline.read_from(Items(range(60), 3)).grouping_key(lambda n: n % 7)
    keyed.custom_transform("seen", Seen).set_local_parallelism(4).write_to(to_ilist(name))

    engine.context.new_job(pipeline).join()

    places = {(item % 7, index) for index, item in engine.context.get_list(name)}
    assert Counter(key for key, _ in places) == Counter(range(7))


def test_a_supplier_is_called_once_for_each_processor(local_context: Context) -> None:
    """Not before the job runs, and again by the next run."""
    pipeline, made = Pipeline(), []

    def supplier() -> Seen:
        made.append(Seen())
        return made[-1]

    stage = pipeline.read_from(Items(range(9), 2)).custom_transform("seen", supplier).set_local_parallelism(3)
    stage.write_to(to_ilist(f"transformed-{uuid4().hex}"))
    assert made == []

    local_context.new_job(pipeline).join()
    assert sorted(each.index for each in made) == [0, 1, 2]
    local_context.new_job(pipeline).join()
    assert sorted(each.index for each in made) == [0, 0, 1, 1, 2, 2]


def test_a_failure_names_the_stage_and_the_item(engine: EngineUnderTest) -> None:
    """As one of any other step does."""
    pipeline = Pipeline()
    stage = pipeline.read_from(Items([1, 0], 2)).custom_transform("inverse", processors.map(lambda n: 1 / n))
    stage.write_to(to_ilist(f"never-{uuid4().hex}"))

    with pytest.raises(ZeroDivisionError) as caught:
        engine.context.new_job(pipeline).join()

    notes = " ".join(caught.value.__notes__)
    assert "custom_transform('inverse') as 'inverse'" in notes
    assert "on the item 0" in notes


def test_what_is_no_supplier_is_refused() -> None:
    """When the stage is made, as is an empty name."""
    stage = Pipeline().read_from(Items("ab"))

    with pytest.raises(TypeError, match="a vertex takes a function"):
        stage.custom_transform("seen", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must not be empty"):
        stage.custom_transform(" ", Seen)
