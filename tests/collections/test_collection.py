"""What maps, lists and caches have in common."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

import dstream as ds


def test_location_names_a_table_where_there_is_one(tmp_path):
    """Maps, lists and caches of the lake have a folder, those in memory have none."""
    with ds.connect(engine="local", storage=tmp_path) as ctx, ds.connect(engine="local", storage="memory:") as other:
        for made in (ctx.get_map("m"), ctx.get_list("l"), ctx.get_cache("c", ttl=1)):
            assert str(tmp_path) in made.location
        assert other.get_map("m").location is None


CELL = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Point:
    x: int
    y: int
"""


@pytest.mark.parametrize("storage", ["memory:", "lake"])
def test_a_key_is_found_after_its_class_was_defined_again(storage, tmp_path, monkeypatch):
    """A notebook cell that runs again makes a new class; its keys are those of the old one."""
    notebook: Any = types.ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", notebook)
    exec(CELL, vars(notebook))
    with ds.connect(engine="local", storage=storage if storage == "memory:" else tmp_path) as ctx:
        points = ctx.get_map("points")
        points.update({notebook.Point(1, 1): "a", notebook.Point(2, 2): "b"})
        points.get(notebook.Point(1, 1))
        exec(CELL, vars(notebook))

        assert points.put(notebook.Point(1, 1), "c") == "a"
        assert points.get(notebook.Point(2, 2)) == "b"
        assert len(points) == 2


@pytest.mark.parametrize("url", ["s3:/bucket", "s3:bucket", "redis:/host", "ftp://host/x"])
def test_a_url_that_is_none_is_refused(url):
    """A slash too few is not taken for the name of a folder."""
    with ds.connect(engine="local", storage=url) as ctx, pytest.raises(ValueError, match="no storage has a URL"):
        ctx.collections()
