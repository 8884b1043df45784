"""What is named and not there yet says so."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream import Stream
from dstream.errors import UnsupportedError


@pytest.mark.parametrize("name", ["DAG"])
def test_a_planned_name_of_the_package_is_refused(name):
    """Asking for it says what is missing."""
    with pytest.raises(UnsupportedError, match=f"dstream.{name} does not exist yet"):
        getattr(ds, name)


def test_any_other_name_is_an_attribute_error():
    """A typo stays a typo."""
    with pytest.raises(AttributeError, match="has no 'mapp'"):
        Stream.of(1).mapp  # noqa: B018 - asking is what is tested
    assert not hasattr(ds, "Streem")
