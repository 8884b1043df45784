"""Names that the package does not have."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream import Stream


@pytest.mark.parametrize("name", ["DAG", "Edge", "Vertex"])
def test_a_name_of_the_core_api_leads_there(name):
    """Graphs have a package of their own."""
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; it is in dstream.core"):
        getattr(ds, name)


def test_any_other_name_is_an_attribute_error():
    """A typo stays a typo."""
    with pytest.raises(AttributeError, match="has no 'mapp'"):
        Stream.of(1).mapp  # noqa: B018 - asking is what is tested
    assert not hasattr(ds, "Streem")
