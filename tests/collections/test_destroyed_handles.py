"""Handles of collections that were destroyed: nothing of this library refers to them any more."""

from __future__ import annotations

import gc
import weakref

import pytest

USES = {
    "map": lambda ctx, name: ctx.get_map(name, journal=True),
    "list": lambda ctx, name: ctx.get_list(name),
    "cache": lambda ctx, name: ctx.get_cache(name, ttl=60),
    "set": lambda ctx, name: ctx.get_set(name),
    "counter": lambda ctx, name: ctx.get_counter(name),
    "queue": lambda ctx, name: ctx.get_queue(name),
}
FILLED = {
    "map": lambda handle: handle.update({"a": 1}),
    "list": lambda handle: handle.extend([1]),
    "cache": lambda handle: handle.put("a", 1),
    "set": lambda handle: handle.add(1),
    "counter": lambda handle: handle.add(1),
    "queue": lambda handle: handle.put(1),
}


@pytest.mark.parametrize("kind", USES)
def test_destroyed_handles_are_forgotten(engine, kind):
    """The handle and its store go when the user has let go of them, also when a stream has read them."""
    handle = USES[kind](engine.context, f"destroyed-{kind}")
    FILLED[kind](handle)
    if hasattr(handle, "stream"):
        assert handle.stream().count() == 1
    handle.destroy()
    left = [weakref.ref(handle), weakref.ref(handle.store)]
    del handle
    gc.collect()

    assert [each() for each in left] == [None, None]
