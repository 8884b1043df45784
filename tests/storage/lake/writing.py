"""How the tests of the lake hand entries to the writer of a job: bucket by bucket, as an engine does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["written"]


def written(writer: Any, entries: Iterable[tuple[Any, Any]]) -> list[Any]:
    """Return the receipts for some entries."""
    buckets: dict[int, list[tuple[Any, Any]]] = {}
    for key, value in entries:
        buckets.setdefault(writer.bucket_of(key), []).append((key, value))
    return [receipt for bucket, some in buckets.items() for receipt in writer.write_bucket(bucket, iter(some))]
