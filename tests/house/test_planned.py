"""Names that the package does not have."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dstream as ds
from dstream import Stream


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("DAG", "dstream.core"),
        ("tumbling", "dstream.windows"),
        ("counting", "collectors"),
        ("to_imap", "reducers"),
        ("csv_rows", "sources"),
        ("window_fixed", "dstream.gatherers"),
    ],
)
def test_a_name_of_another_package_leads_there(name, place):
    """As whoever knows `ds.Stream` guesses where the rest is."""
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; it is in {place}: from {place} import {name}$"):
        getattr(ds, name)
    with pytest.raises(ImportError):
        exec(f"from dstream import {name}")


def test_a_module_that_nobody_imported_is_named():
    """Modules are attributes from their import on."""
    script = "import dstream; dstream.windows"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert ended.stderr.endswith("module 'dstream' has no attribute 'windows'; import dstream.windows first\n")


def test_any_other_name_is_an_attribute_error():
    """A typo stays a typo."""
    with pytest.raises(AttributeError, match="has no 'mapp'"):
        Stream.of(1).mapp  # noqa: B018 - asking is what is tested
    assert not hasattr(ds, "Streem")
