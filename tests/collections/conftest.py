"""Collections in memory, and handles to them, made without a session."""

from __future__ import annotations

import pytest

from tests.collections.stored import Making


@pytest.fixture
def make(local_context):
    """What makes handles to new collections on the local engine."""
    return Making(local_context)
