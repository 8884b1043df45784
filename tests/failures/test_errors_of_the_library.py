"""The errors of the library: each has its class, its built-in base and a message that names the cause."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import dstream as ds
from collectors import grouping_by, to_map
from dstream import Optional, Stream, errors
from sources import text_files

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text()


def closed():
    """Return a stream that is closed."""
    stream = Stream.of(1)
    stream.close()
    return stream


def destroyed():
    """Return a list that is destroyed."""
    gone = memory().get_list("gone")
    gone.destroy()
    return gone


def memory():
    """Return a context whose collections are in memory."""
    return ds.connect(engine="local", storage="memory:")


EXAMPLES = [
    (errors.IllegalStateError, lambda: closed().to_list(), "stream has already been closed"),
    (errors.IllegalStateError, lambda: Stream.generate(int).to_list(), "the stream is infinite; end it with limit()"),
    (errors.IllegalStateError, lambda: Stream.of("a", "b").collect(to_map(len, str)), "Duplicate key 1 (attempted"),
    (errors.NullElementError, lambda: Stream.of(None).find_first(), "find_first() found a None"),
    (errors.NullElementError, lambda: Stream.of(1).collect(grouping_by({}.get)), "cannot be mapped to a null key: 1"),
    (errors.UnstableKeyError, lambda: Stream.of(["a"]).distinct().to_list(), "['a'] cannot be a key: list has no hash"),
    (errors.NoSuchElementError, lambda: Optional.empty().get(), "No value present"),
    (errors.SerializationError, lambda: pickle.dumps(memory()), "a context cannot be used inside a function"),
    (errors.UnsupportedError, lambda: memory().spark, "the local engine has no Spark session"),
    (
        errors.SourceError,
        lambda: memory().read(text_files("missing.txt")).to_list(),
        "missing.txt: there is no such file",
    ),
    (errors.CollectionDestroyedError, lambda: destroyed().size(), "gone"),
    (errors.CacheNotExistsError, lambda: memory().get_cache("c"), "cache 'c' was never configured"),
    (TypeError, lambda: Stream.of(1).map(5), "fn must be a function, not int"),
    (TypeError, lambda: Stream.of(1).limit("x"), "n must be an int, not str"),
    (ValueError, lambda: Stream.of(1).limit(-1), "n must not be negative: -1"),
    (TypeError, lambda: Stream.of("a").map_to_int(str.upper).sum(), "an int is needed here, not str: 'A'"),
    (TypeError, lambda: Stream.of(1).flat_map(abs).to_list(), "needs a function that gives an iterable or None"),
]


@pytest.mark.parametrize(("expected", "provoke", "words"), EXAMPLES)
def test_errors_have_their_class_and_name_the_cause(expected, provoke, words):
    """The class is the one of the reference, not one above it."""
    with ds.connect(engine="local"), pytest.raises(expected) as caught:
        provoke()

    assert caught.type is expected
    assert words in str(caught.value)


def test_a_setting_with_a_mistake_is_refused_with_its_choices(monkeypatch):
    """The message names the variable."""
    monkeypatch.setenv("DSTREAM_ENGINE", "sprak")

    with pytest.raises(
        errors.ConfigurationError, match="DSTREAM_ENGINE must be one of spark, local, auto, not 'sprak'"
    ):
        ds.connect()


def test_the_reference_lists_every_error_with_its_bases():
    """A row has the class and those that it derives from beside `DStreamError`."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (`\w+`(?:, `\w+`)*) \|", PAGE, re.M)
    listed = {name: set(re.findall(r"\w+", bases)) for names, bases in rows for name in re.findall(r"\w+", names)}

    assert set(listed) == {*errors.__all__} - {"DStreamError"}
    for name, bases in listed.items():
        assert {base.__name__ for base in getattr(errors, name).__mro__} & bases
