"""A collection that another version of dstream has written is refused before anything in it is called damaged."""

from __future__ import annotations

import pytest

from dstream.errors import SetupError
from dstream.spi.store import Options


@pytest.mark.parametrize(("stored", "has"), [("3", "format 3"), (None, "no format")])
def test_a_collection_of_another_format_is_refused(storage, server, stored, has):
    """Whatever else its hash contains."""
    meta = storage.create("map", "m", Options())._collection.meta
    assert server.hget(meta, "format") == b"2"
    server.hset(meta, "shape", "{}")
    server.hset(meta, "format", stored) if stored else server.hdel(meta, "format")

    with pytest.raises(SetupError, match=f"map 'm' has {has}; this dstream reads 2"):
        storage.open("map", "m", Options())
