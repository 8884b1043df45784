"""What maps, lists and caches have in common."""

from __future__ import annotations

import dstream as ds


def test_location_names_a_table_where_there_is_one(tmp_path):
    """Maps, lists and caches of the lake have a folder, those in memory have none."""
    with ds.connect(engine="local", storage=tmp_path) as ctx, ds.connect(engine="local", storage="memory:") as other:
        for made in (ctx.get_map("m"), ctx.get_list("l"), ctx.get_cache("c", ttl=1)):
            assert str(tmp_path) in made.location
        assert other.get_map("m").location is None
