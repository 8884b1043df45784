"""What a task that writes entries makes of them before it stages them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dstream.spi.store import Merge, Update
from dstream.storage.codec.codec import Codec
from dstream.storage.codec.codec_keys import bucket_of
from dstream.storage.encoded import merged, updated

__all__ = ["encoded_bucket", "merged_with"]


def encoded_bucket(
    codec: Codec, entries: Iterable[tuple[Any, Any]], bucket: int, buckets: int, merge: Merge | None
) -> tuple[Codec, dict[bytes, bytes]]:
    """Return the entries of a bucket, encoded, and the codec, whose types the first one decides if they are open.

    Raises:
        ValueError: a key belongs into another bucket.
    """
    is_update = isinstance(merge, Update)  # What is written are no values of the map then.
    checking = replace(codec, value=None) if is_update else codec
    encoded = {}
    for key, value in entries:
        checking.checked(key, value)
        if not (codec.is_decided or is_update):
            codec = codec.decided_by([key], [value])
        data = codec.encode_key(key)
        if bucket_of(data, buckets) != bucket:
            raise ValueError(f"{codec}: {key!r} does not belong into bucket {bucket}")
        encoded[data] = codec.encode_value(value)
    return codec, encoded


def merged_with(
    codec: Codec, old: dict[bytes, bytes], new: dict[bytes, bytes], merge: Merge
) -> tuple[Codec, dict[bytes, bytes]]:
    """Return the new values, empty where there is none, and the codec that they leave; `old` is empty there, too."""
    if isinstance(merge, Update):
        return updated(codec, old, new, merge)
    return codec, merged(codec, {key: value for key, value in old.items() if value}, new, merge)
