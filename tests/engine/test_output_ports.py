"""Output ports as conditions that Spark evaluates: each names the rows that its words say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dstream.engine.physical import vertices
from dstream.engine.spark.run.segments import chosen_rows
from dstream.engine.tasks.rows import ITEMS, SAMPLE, SUMMARY, WATERMARKS

if TYPE_CHECKING:
    from dstream.engine.physical.vertices import OutputPort


class Frame:
    """Keeps the condition that it is asked for."""

    condition = "true"

    def where(self, condition: str) -> Frame:
        """Take a condition."""
        self.condition = condition
        return self


def _chosen(port: OutputPort) -> set[tuple[int, int, int]]:
    """Return which of some rows a port names, as (channel, source, target)."""
    all_rows = [(channel, source, target) for channel in range(-7, 3) for source in range(3) for target in range(3)]
    frame = Frame()
    chosen_rows(frame, port)  # type: ignore[arg-type]
    condition = frame.condition.replace(" = ", " == ").replace("true", "True")
    return {
        (channel, source, target)
        for channel, source, target in all_rows
        if eval(condition, {"channel": channel, "source": source, "target": target})
    }


def _channels(port: OutputPort) -> set[int]:
    return {channel for channel, _, _ in _chosen(port)}


@pytest.mark.parametrize(
    ("port", "channels"),
    [
        (vertices.EVERYTHING, set(range(-7, 3))),
        (vertices.ITEMS, {ITEMS}),
        (vertices.ITEMS_AND_MARKS, set(range(-7, 1))),
        (vertices.ITEMS_AND_BESIDE, {ITEMS, 1, 2}),
        (vertices.ITEMS_AND_WATERMARKS, {ITEMS, WATERMARKS}),
        (vertices.BESIDE, {1, 2}),
        (vertices.BESIDE_AND_WATERMARKS, {WATERMARKS, 1, 2}),
        (vertices.SAMPLE, {SAMPLE}),
        (vertices.SORTED_RUNS, set(range(-7, 3)) - {SAMPLE}),
        (vertices.SCHEMAS, set(range(-7, 3)) - {ITEMS}),
        (vertices.SUMMARY, {SUMMARY}),
        (vertices.SUMMARY.with_beside(), {SUMMARY, 1, 2}),
        (vertices.SORTED_RUNS.without_beside(), set(range(-7, 1)) - {SAMPLE}),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_a_port_names_the_channels_of_its_words(port: OutputPort, channels: set[int]) -> None:
    """Items, samples, marks and what is beside them travel in one frame, and each reader gets its own."""
    assert _channels(port) == channels


def test_a_port_may_be_of_some_tasks_and_for_some_partitions() -> None:
    """Both narrow what the channels say, also where several channels are meant."""
    port = vertices.ITEMS_AND_BESIDE.of_sources(1, 3).to_targets(0, 1)
    assert _chosen(port) == {(channel, source, 0) for channel in (0, 1, 2) for source in (1, 2)}
