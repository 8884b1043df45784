"""The path of a module says each word once."""

from __future__ import annotations

from tests.house.figures import sources


def test_no_module_repeats_its_package():
    """`storage/sqlite/maps.py`, and not `storage/sqlite/sqlite_maps.py`."""
    modules = sources()

    assert len(modules) > 300
    assert [each.name for each in modules if each.repeats_its_package] == []
