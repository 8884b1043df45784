"""Options and names of stored collections and records, and the errors of vanished ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dstream.base.records import record
from dstream.errors import CollectionDestroyedError, IllegalStateError, SetupError
from dstream.spi.store import MOST_BUCKETS, Kind, ListView, Options
from dstream.storage.codec.collection import Codec

__all__ = [
    "BUCKETS",
    "MOST_BYTES",
    "Shape",
    "ViewOvertakenError",
    "check_format",
    "check_name",
    "check_prefix",
    "check_record",
    "check_write",
    "destroyed_error",
    "is_record_name",
    "removed_error",
]


def check_format(title: str, found: object, known: object) -> None:
    """Refuse data of another version of dstream.

    Args:
        title: its name, for the message.
        found: the format that it names; None if it names none.
        known: the format that this version reads.

    Raises:
        SetupError: it is another one.
    """
    if found != known:
        words = "no format" if found is None else f"format {found!s:.20}"
        raise SetupError(f"{title} has {words}; this dstream reads {known}")


BUCKETS = 16
"""The default number of parts into which keys are divided."""


@record
class Shape:
    """The options of a collection that do not change after it was made; types belong to its codec."""

    buckets: int | None
    journal: bool | None
    ttl: float | None
    max_idle: float | None

    @staticmethod
    def of(kind: Kind, name: str, options: Options) -> Shape:
        """Return the shape with defaults for the open `options`."""
        buckets = options.buckets if kind == "list" or options.buckets is not None else BUCKETS
        # A bool is an int for `isinstance`.
        if buckets is not None and type(buckets) is not int:
            raise TypeError(f"{kind} {name!r} cannot have {buckets!r} buckets; their number is an int")
        if buckets is not None and buckets < 1:
            raise ValueError(f"{kind} {name!r} cannot have {buckets} buckets; it needs at least one")
        journal = bool(options.journal) if kind in ("map", "cache") else options.journal
        return Shape(buckets, journal, options.ttl, options.max_idle)

    @staticmethod
    def from_json(data: Any, kind: Kind) -> Shape:
        """Return the shape that `to_json` wrote down.

        Raises:
            ValueError: it is none, or one that no collection of that kind has.
        """
        # Exactly these, since an unknown option could change the meaning of the entries.
        if not isinstance(data, Mapping) or set(data) != {"buckets", "journal", "ttl", "max_idle"}:
            raise ValueError("the options of a collection were expected")
        journal = data["journal"]
        is_list = kind == "list"
        if (data["buckets"] is None) != is_list or journal not in (None, True, False) or (is_list and journal):
            raise ValueError(f"these are not the options of a {kind}")
        buckets = data["buckets"]
        if buckets is not None and (type(buckets) is not int or not 1 <= buckets <= MOST_BUCKETS):
            raise ValueError(f"a map has from 1 to {MOST_BUCKETS} buckets")
        return Shape(buckets, journal, _seconds(data["ttl"]), _seconds(data["max_idle"]))

    def to_json(self) -> dict[str, Any]:
        """Return this shape in terms of JSON."""
        return asdict(self)

    def check(self, kind: Kind, name: str, options: Options) -> None:
        """Refuse options that contradict this shape.

        Raises:
            ValueError: an option is set and differs from the stored one; the message names both.
        """
        for option, there in asdict(self).items():
            asked = getattr(options, option)
            if asked is not None and asked != there:
                raise ValueError(
                    f"{kind} {name!r} exists with {option}={there!r} and cannot be opened with {option}={asked!r}; "
                    "leave the option out, or destroy the collection first"
                )

    def options(self, codec: Codec) -> Options:
        """Return all options of the collection, types that are known included."""
        return Options(
            key_type=codec.key.hint if codec.key else None,
            value_type=codec.value.hint if codec.value else None,
            buckets=self.buckets,
            journal=self.journal,
            strict=codec.strict,
            ttl=self.ttl,
            max_idle=self.max_idle,
        )


def _seconds(data: Any) -> float | None:
    if data is not None and (type(data) not in (int, float) or not data > 0):
        raise ValueError("a number of seconds above 0 was expected")
    return data  # type: ignore[no-any-return]


def check_name(name: str) -> None:
    """Refuse an invalid name of a collection.

    Raises:
        TypeError: it is no str.
        ValueError: it is empty, or cannot be encoded.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a collection is a str, not {name!r}")
    if not name:
        raise ValueError("the name of a collection cannot be empty")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the name of a collection cannot have a lone surrogate in it: {name!r}") from None


MOST_BYTES = 64_000_000
"""A record travels as a whole."""

_LONGEST = 400
"""The longest name, in characters; a key of S3 has at most 1024 bytes, of which a URL may take some."""
_NAME = re.compile(r"[a-z0-9-]{1,64}(?:/[a-z0-9-]{1,64})*")
_PREFIX = re.compile(r"(?:[a-z0-9-]{1,64}/)*[a-z0-9-]{0,64}")


def is_record_name(name: str) -> bool:
    """Return whether a record may have a name."""
    return len(name) <= _LONGEST and _NAME.fullmatch(name) is not None


def check_record(name: str) -> None:
    """Refuse an invalid name of a record.

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
    """Refuse a prefix that no name of a record has; errors as for a name."""
    if not isinstance(prefix, str):
        raise TypeError(f"names of records begin with a str, not {prefix!r:.200}")
    if len(prefix) > _LONGEST or not _PREFIX.fullmatch(prefix):
        raise ValueError(f"no name of a record begins with {prefix!r:.200}")


def check_write(name: str, data: bytes, version: int) -> None:
    """Refuse to write an invalid record; errors as for a name."""
    check_record(name)
    if not isinstance(data, bytes):
        raise TypeError(f"the record {name!r} holds bytes, not {type(data).__name__}")
    if len(data) > MOST_BYTES:
        raise ValueError(f"the record {name!r} cannot hold {len(data)} bytes; it may have {MOST_BYTES}")
    if type(version) is not int:
        raise TypeError(f"the version of the record {name!r} is an int, not {version!r:.200}")
    if version < 1:
        raise ValueError(f"the record {name!r} cannot have version {version}; the first one is 1")


def destroyed_error(collection: object) -> CollectionDestroyedError:
    """Return the error of a collection that was destroyed."""
    return CollectionDestroyedError(f"{collection} was destroyed; ask for it again by its name")


def removed_error(collection: object) -> IllegalStateError:
    """Return the error of temporary data of a collection that were removed."""
    return IllegalStateError(
        f"{collection}: what tasks wrote, or what a reader began to read, was removed by vacuum or is older than a "
        "day; run the job again"
    )


class ViewOvertakenError(IllegalStateError):
    """A list has changed since `change` began to read it.

    Args:
        name: of the list.
        view: the state that cannot be read any more.
    """

    def __init__(self, name: str, view: ListView) -> None:
        super().__init__(f"list {name!r} has changed since this view of it was made")
        self.view = view
