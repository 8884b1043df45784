"""`Shape`: how a collection is made, apart from its types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dstream.spi.store import Kind, Options
from dstream.storage.codec.codec import Codec
from dstream.storage.settings import MOST_BUCKETS

__all__ = ["BUCKETS", "Shape", "check_name"]

BUCKETS = 16
"""Into how many parts keys are divided if nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The options of a collection that do not change after it was made; types belong to its codec."""

    buckets: int | None
    journal: bool | None
    ttl: float | None
    max_idle: float | None

    @staticmethod
    def of(kind: Kind, name: str, options: Options) -> Shape:
        """Fill in what `options` leave open."""
        buckets = options.buckets if kind == "list" or options.buckets is not None else BUCKETS
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
            ValueError: an option is given and is not what stands here; the message names both.
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
    """Refuse what is no name of a collection.

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
