from __future__ import annotations

from pathlib import Path

import pytest

from dstream.operators.state import backend, shards
from dstream.operators.state.shards import RecentFiles, ShardCache
from dstream.spi.records import StateFiles
from dstream.storage import Settings, open_storage
from tests.state.counting import Counting
from tests.state.epochs import JOB, Epochs


@pytest.fixture(params=["lake", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> StateFiles:
    """Where state stands: in a folder, and in this process."""
    url = "memory:" if request.param == "memory" else str(tmp_path / "lake")
    return open_storage(url, Settings()).state_files(JOB)


@pytest.fixture
def lake(tmp_path: Path) -> StateFiles:
    """A folder alone."""
    return open_storage(str(tmp_path / "lake"), Settings()).state_files(JOB)


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process of the tests has kept of shards comes back behind each test."""
    monkeypatch.setattr(backend, "kept_shards", ShardCache())
    for module in (backend, shards):
        monkeypatch.setattr(module, "recent_files", RecentFiles())


@pytest.fixture
def epochs(files: StateFiles) -> Epochs:
    """A step that counts, before its first epoch."""
    return Epochs(files, Counting())
