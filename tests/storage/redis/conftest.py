"""A storage on the single server of the test run, and a plain client that looks behind it."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from dstream.spi.store import Storage
from dstream.storage import Settings, open_storage


@pytest.fixture
def server(redis_server: Any) -> Iterator[Any]:
    """A plain client of the server, which is empty."""
    with contextlib.closing(redis_server.client()) as client:
        client.flushall()
        yield client


@pytest.fixture
def storage(redis_server: Any, server: Any) -> Iterator[Storage]:
    """A storage on the server."""
    with contextlib.closing(open_storage(redis_server.url, Settings())) as storage:
        yield storage


@pytest.fixture
def start(redis_server: Any) -> Iterator[Any]:
    """Start one more server with options of its own: `start("--appendonly", "no")`."""
    with contextlib.ExitStack() as stack:
        yield lambda *options: stack.enter_context(contextlib.closing(type(redis_server)(*options)))


@pytest.fixture
def written() -> Any:
    """Run the tasks of a job, and return their receipts: `written(job, entries)`; a list gets the values."""

    def write(job: Any, entries: dict[Any, Any]) -> list[Any]:
        writer = pickle.loads(pickle.dumps(job.writer))
        if not hasattr(writer, "bucket_of"):
            return list(writer.write(iter(entries.values())))
        buckets: dict[int, list[Any]] = {}
        for key, value in entries.items():
            buckets.setdefault(writer.bucket_of(key), []).append((key, value))
        return [receipt for number, pairs in buckets.items() for receipt in writer.write_bucket(number, iter(pairs))]

    return write
