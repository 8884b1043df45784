"""The stores behind distributed maps, lists and caches. The contract is in `dstream.spi.store`.

`memory` is the reference implementation, `lake` the default, `redis` works over the network, `sqlite` on one machine;
`codec` encodes keys and values as bytes and columns in all of them, `base` has their common parts. Each is imported on
use.
"""

from __future__ import annotations

from dstream.spi.store import Settings, Storage

__all__ = ["Settings", "open_storage"]

_LAKE = frozenset({"file", "s3", "s3a", "gs", "az", "abfs", "abfss"})
_REDIS = frozenset({"redis", "rediss", "unix"})


def open_storage(url: str, settings: Settings) -> Storage:
    """Return the storage that a URL or a path names; nothing is made before the first collection is.

    Raises:
        ValueError: no storage has a URL of that kind.
        SetupError: a package that it needs is not installed.
    """
    scheme, colon, rest = url.partition(":")
    is_url = rest.startswith("//")
    if not colon or url.startswith((".", "/")) or (is_url and scheme in _LAKE):
        from dstream.storage.lake import open_lake

        return open_lake(url, settings)
    if scheme == "memory":
        from dstream.storage.memory import open_memory

        return open_memory(url, settings)
    if scheme == "sqlite":
        from dstream.storage.sqlite import open_sqlite

        return open_sqlite(url, settings)
    if is_url and scheme in _REDIS:
        from dstream.storage.redis import open_redis

        return open_redis(url, settings)
    shown = f"{scheme}:{'//' if is_url else ''}..."
    raise ValueError(
        f"no storage has a URL such as {shown}; storage is a folder, file:///..., s3://..., sqlite:..., redis://... or "
        "memory:"
    )
