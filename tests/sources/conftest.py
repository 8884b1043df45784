"""What the tests of the sources share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

from dstream.spi.source import Source, StreamSource


@pytest.fixture(scope="session")
def read() -> Callable[..., list[Any]]:
    """Read a source as an engine does: every split travels pickled before it is opened."""

    def read_source(source: Source[Any], parallelism: int = 3) -> list[Any]:
        source = cloudpickle.loads(cloudpickle.dumps(source))
        splits = [cloudpickle.loads(cloudpickle.dumps(split)) for split in source.splits(parallelism)]
        return [item for split in splits for item in split.read()]

    return read_source


@pytest.fixture
def tiny_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make splits and blocks of a few bytes, so that small files are cut in many places."""
    monkeypatch.setattr("dstream.connectors.files.splits.SMALLEST_SPLIT", 1)
    monkeypatch.setattr("dstream.connectors.files.splits.LARGEST_SPLIT", 7)
    monkeypatch.setattr("dstream.connectors.files.splits.OPENING", 1)
    monkeypatch.setattr("dstream.connectors.files.lines.BLOCK", 5)


class Follower:
    """Reads a source without an end range by range, as a job does: offsets are kept as JSON, splits travel pickled."""

    def __init__(self, source: StreamSource[Any]) -> None:
        self.source = source
        self.offsets = json.loads(json.dumps(dict(self.source.begin())))

    def ranges(self, most: int | None = None) -> list[Any]:
        """Give the splits of what is there now, and go on behind them."""
        reached = json.loads(json.dumps(dict(self.source.reach(self.offsets, most))))
        splits = [self.source.split(name, self.offsets.get(name), reached[name]) for name in sorted(reached)]
        self.offsets = reached
        return [cloudpickle.loads(cloudpickle.dumps(split)) for split in splits]

    def news(self, most: int | None = None) -> list[Any]:
        """Give the items that came since the last call, each range read twice."""
        splits = self.ranges(most)
        items = [item for split in splits for item in split.read()]
        assert [item for split in splits for item in split.read()] == items
        return items


@pytest.fixture(scope="session")
def follow() -> Callable[[StreamSource[Any]], Follower]:
    """Begin to read a source without an end."""
    return Follower
