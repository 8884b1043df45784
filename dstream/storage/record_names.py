"""The names of records, which become parts of paths and keys, and what a record may hold."""

from __future__ import annotations

import re

__all__ = ["MOST_BYTES", "check_prefix", "check_record", "check_write", "is_record_name"]

MOST_BYTES = 64_000_000
"""A record travels as a whole."""

_LONGEST = 400
"""Of a name, in characters; a key of S3 has at most 1024 bytes, of which a URL may take some."""
_NAME = re.compile(r"[a-z0-9-]{1,64}(?:/[a-z0-9-]{1,64})*")
_PREFIX = re.compile(r"(?:[a-z0-9-]{1,64}/)*[a-z0-9-]{0,64}")


def is_record_name(name: str) -> bool:
    """Say whether a record may have a name."""
    return len(name) <= _LONGEST and _NAME.fullmatch(name) is not None


def check_record(name: str) -> None:
    """Refuse what is no name of a record.

    Raises:
        TypeError: it is no str.
        ValueError: it has other characters, or too many.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a record is a str, not {name!r:.200}")
    if not is_record_name(name):
        raise ValueError(
            f"{name!r:.200} is no name of a record: it has parts of 1 to 64 of the characters a-z, 0-9 and -, with a "
            f"slash between them, and at most {_LONGEST} characters"
        )


def check_prefix(prefix: str) -> None:
    """Refuse what no name of a record begins with; errors as for a name."""
    if not isinstance(prefix, str):
        raise TypeError(f"names of records begin with a str, not {prefix!r:.200}")
    if len(prefix) > _LONGEST or not _PREFIX.fullmatch(prefix):
        raise ValueError(f"no name of a record begins with {prefix!r:.200}")


def check_write(name: str, data: bytes, version: int) -> None:
    """Refuse to write what is no record; errors as for a name."""
    check_record(name)
    if not isinstance(data, bytes):
        raise TypeError(f"the record {name!r} holds bytes, not {type(data).__name__}")
    if len(data) > MOST_BYTES:
        raise ValueError(f"the record {name!r} cannot hold {len(data)} bytes; it may have {MOST_BYTES}")
    if type(version) is not int:
        raise TypeError(f"the version of the record {name!r} is an int, not {version!r:.200}")
    if version < 1:
        raise ValueError(f"the record {name!r} cannot have version {version}; the first one is 1")
