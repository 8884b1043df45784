"""A name that a stream does not have is answered with the one that is meant."""

from __future__ import annotations

import pytest

from dstream import IntStream, Stream
from dstream.stream.names import _ELSEWHERE


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("flatMap", "flat_map"),
        ("anyMatch", "any_match"),
        ("mapp", "map"),
        ("fliter", "filter"),
        ("takeWhile", "take_while"),
    ],
)
def test_a_name_that_is_nearly_right_is_mended(name, meant):
    """Names as in Java, and typing errors."""
    with pytest.raises(AttributeError, match=f"^a Stream has no '{name}'; use {meant}$"):
        getattr(Stream.of(1), name)


@pytest.mark.parametrize("name", _ELSEWHERE)
def test_a_name_from_elsewhere_is_translated(name):
    """What the message offers starts with a method that is there."""
    with pytest.raises(AttributeError, match="; use ") as caught:
        getattr(Stream.of(1), name)
    offered = str(caught.value).partition("; use ")[2].partition("(")[0]

    assert hasattr(Stream, offered) or offered in {"iter", "stream + Stream.of"}
    assert not hasattr(Stream, name), "a name that exists needs no translation"


@pytest.mark.parametrize("name", ["__wrapped__", "_repr_pretty_", "xyzzy"])
def test_a_name_like_no_other_is_refused(name):
    """Nothing is guessed, and nothing is said about names that tools probe for."""
    with pytest.raises(AttributeError, match=f"^an? IntStream has no '{name}'$"):
        getattr(IntStream.of(1), name)
