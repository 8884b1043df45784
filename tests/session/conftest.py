"""A folder of its own for each test, with nothing configured from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one; no variable of dstream's is set."""
    for name in [name for name in os.environ if name.startswith("DSTREAM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
