"""A pipeline that counts words, in the versions in which a job may go on with it."""

from __future__ import annotations

from typing import Any

import dstream as ds
from collectors import counting
from dstream.pipeline.plan import PipelinePlan
from dstream.windows import tumbling
from reducers import to_ilist

__all__ = ["counts", "windowed", "written"]


def counts(
    feed: Any, *, name: str = "counts", source: str = "words", sink: str = "out", more: Any = None
) -> PipelinePlan:
    """Return the plan of a pipeline that gives each word with how often it came so far.

    Args:
        feed: gives the words.
        name: that of the step that counts.
        source: the name of the stage that reads.
        sink: the list that is written.
        more: another source, whose words go to the list `more`, as they are.
    """
    pipeline = ds.Pipeline()
    if more is not None:
        pipeline.read_from(more, "more").write_to(to_ilist("more")).set_name("to more")
    stage = pipeline.read_from(feed, source).grouping_key(str)
    stage.rolling_aggregate(counting()).set_name(name).write_to(to_ilist(sink)).set_name("to list")
    return pipeline.plan()


def windowed(feed: Any, size: int, more: Any = None) -> PipelinePlan:
    """Return the plan of a pipeline that counts numbers, which are their own timestamps, in windows."""
    pipeline = ds.Pipeline()
    if more is not None:
        pipeline.read_from(more, "more").write_to(to_ilist("more")).set_name("to more")
    stage = pipeline.read_from(feed, "numbers").add_timestamps(int).set_name("time")
    counted = stage.window(tumbling(size)).aggregate(counting()).set_name("counts")
    counted.map(lambda each: (each.start, each.result)).write_to(to_ilist("out"))
    return pipeline.plan()


def written(context: Any, name: str = "out") -> list[tuple[Any, Any]]:
    """Return the words and counts that a list has."""
    return [(each.key, each.value) for each in context.get_list(name)]
