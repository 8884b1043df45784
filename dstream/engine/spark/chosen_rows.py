"""What an `OutputPort` is on Spark: the rows of a DataFrame by their channels and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dstream.engine.graph.output_ports import EVERYTHING, OutputPort
from dstream.engine.worker.rows import ITEMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["chosen_rows"]


def chosen_rows(frame: DataFrame, port: OutputPort) -> DataFrame:
    """Return those rows that a port names."""
    conditions = [_of_channels(port), _within("source", port.sources), _within("target", port.targets)]
    wanted = " and ".join(filter(None, conditions))
    return frame.where(wanted) if wanted else frame


def _of_channels(port: OutputPort) -> str:
    if port.channels >= EVERYTHING.channels and port.has_beside:
        return ""
    channels = [f"channel = {channel}" for channel in sorted(port.channels)]
    return f"({' or '.join([*channels, *([f'channel > {ITEMS}'] if port.has_beside else [])])})"


def _within(column: str, numbers: range | None) -> str:
    return "" if numbers is None else f"{column} >= {numbers.start} and {column} < {numbers.stop}"
