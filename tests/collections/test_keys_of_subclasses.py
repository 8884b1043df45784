"""Keys of subclasses, enums and numpy in maps and caches, as a user meets them, on every storage."""

from __future__ import annotations

import enum

import numpy
import pytest

import dstream as ds
from tests.keys.specimens import KEYS, NUMBERS, Color, Mood, Text


@pytest.fixture(params=["memory", "lake"])
def context(request, tmp_path):
    """A local context on a new storage."""
    storage = "memory:" if request.param == "memory" else str(tmp_path)
    with ds.connect(engine="local", storage=storage) as ctx:
        yield ctx


@pytest.mark.parametrize("kind", ["map", "cache"])
def test_keys_of_every_class_are_those_of_a_dict(context, kind):
    """What is put under one class is found, counted and removed under the others."""
    made = context.get_map("m") if kind == "map" else context.get_cache("m", ttl=3600)
    made.update(zip(KEYS, NUMBERS, strict=True))

    assert [made.get(key) for key in KEYS] == NUMBERS
    assert (len(made), sorted(made.values())) == (len(set(NUMBERS)), sorted(set(NUMBERS)))
    assert all(key in made for key in KEYS)
    for key in KEYS:
        made.pop(key, None)
    assert len(made) == 0


@pytest.mark.parametrize("key", [Text("n"), numpy.str_("n"), Mood.GLAD], ids=lambda key: type(key).__name__)
def test_a_loop_of_read_and_write_counts_under_a_subclass(context, key):
    """One entry, whichever form of the key is used."""
    counts = context.get_map("counts")
    for form in (key, "n", key):
        counts[form] = counts.get(form, 0) + 1

    assert (counts["n"], counts[key], len(counts)) == (3, 3, 1)


def test_keys_come_back_in_the_plain_form(tmp_path):
    """On a storage that outlives the process subclasses and scalars of numpy come back as what they equal."""
    with ds.connect(engine="local", storage=str(tmp_path)) as ctx:
        for number, key in enumerate((Text("n"), numpy.str_("n"), numpy.int64(1), Color.RED)):
            ctx.get_map(f"m{number}")[key] = 1
        found = [next(iter(ctx.get_map(f"m{number}"))) for number in range(4)]

    assert [type(key) for key in found] == [str, str, int, Color]
    assert isinstance(found[3], enum.Enum)
