"""What the tests of the sources share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

from dstream.spi.source import Source


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
    monkeypatch.setattr("sources.file_access.SMALLEST_SPLIT", 1)
    monkeypatch.setattr("sources.file_access.LARGEST_SPLIT", 7)
    monkeypatch.setattr("sources.file_access.OPENING", 1)
    monkeypatch.setattr("sources.lines.BLOCK", 5)
