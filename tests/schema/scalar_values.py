"""Generated values of each class of the table of text forms."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from uuid import UUID

from hypothesis import strategies as st

from dstream.schema.text_forms import TEXT_FORMS

__all__ = ["SCALARS", "values_of"]

ZONES = st.one_of(
    st.none(), st.just(UTC), st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
)
PARTS = st.text(st.characters(exclude_characters="/\\\0:", exclude_categories=["Cs"]), min_size=1)
VALUES = {
    str: st.text(),
    bool: st.booleans(),
    int: st.integers(),
    float: st.floats(),
    Decimal: st.decimals(),
    Fraction: st.fractions(),
    timedelta: st.timedeltas(),
    time: st.times(timezones=ZONES),
    datetime: st.datetimes(timezones=ZONES),
    UUID: st.uuids(),
    IPv4Address: st.ip_addresses(v=4),
    IPv6Address: st.ip_addresses(v=6),
    bytes: st.binary(),
    **{kind: st.lists(PARTS).map(lambda parts, kind=kind: kind(*parts)) for kind in (PurePosixPath, PureWindowsPath)},
}
SCALARS = [kind for kind in TEXT_FORMS if not issubclass(kind, PurePath)] + [PurePosixPath, PureWindowsPath]


def values_of(kind):
    """Return the strategy of values of a class."""
    return VALUES.get(kind, st.from_type(kind))
