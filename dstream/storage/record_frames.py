"""What a record looks like where it is kept: a line that names it, a checksum, the data. All that is read is input."""

from __future__ import annotations

import re
from hashlib import blake2b

from dstream.errors import IllegalStateError

__all__ = ["checked_name", "framed", "unframed"]

_NAME = re.compile(r"[a-z0-9-]{1,64}(?:/[a-z0-9-]{1,64}){0,7}")
_MAGIC = b"dstream record\n"
_SUM = 16


def checked_name(name: str) -> str:
    """Return a name, which becomes a path or a key.

    Raises:
        ValueError: it is none.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"no record has the name {name!r:.200}")
    return name


def framed(name: str, version: int, data: bytes) -> bytes:
    """Return what is kept of a version."""
    return _MAGIC + _sum(name, version, data) + data


def unframed(name: str, version: int, kept: bytes) -> bytes:
    """Return the data of a version.

    Raises:
        IllegalStateError: it is not what was written under that name as that version.
    """
    data = kept[len(_MAGIC) + _SUM :]
    if not kept.startswith(_MAGIC) or kept[len(_MAGIC) : len(_MAGIC) + _SUM] != _sum(name, version, data):
        raise IllegalStateError(f"the record {name} is damaged: version {version} is not what dstream has written")
    return data


def _sum(name: str, version: int, data: bytes) -> bytes:
    summed = blake2b(f"{name}\n{version}\n".encode(), digest_size=_SUM)
    summed.update(data)
    return summed.digest()
