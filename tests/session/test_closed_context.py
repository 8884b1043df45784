"""A closed context: what it made neither reads nor changes anything; and what needs no engine starts none."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.errors import IllegalStateError
from reducers import to_imap
from tests.failures.test_items import Mute

USES = {
    "get": lambda m, n, c: m.get("a"),
    "put": lambda m, n, c: m.update(b=2),
    "len": lambda m, n, c: len(m),
    "contains": lambda m, n, c: "a" in m,
    "view": lambda m, n, c: list(m.items()),
    "journal": lambda m, n, c: list(m.journal()),
    "process": lambda m, n, c: m.execute_on_key("a", lambda entry: entry.value),
    "clear": lambda m, n, c: m.clear(),
    "destroy": lambda m, n, c: m.destroy(),
    "vacuum": lambda m, n, c: m.vacuum(),
    "stream": lambda m, n, c: m.stream().to_list(),
    "item": lambda m, n, c: n[0],
    "append": lambda m, n, c: n.append(2),
    "reversed": lambda m, n, c: list(reversed(n)),
    "cached": lambda m, n, c: c.get("a"),
    "caching": lambda m, n, c: c.update(a=2),
    "purge": lambda m, n, c: c.purge(),
}


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A map, a list and a cache of a context that was closed, and iterators that were begun before."""
    with ds.connect(engine="local", storage=tmp_path_factory.mktemp("data")) as ctx:
        numbers, names, sessions = ctx.get_map("m", journal=True), ctx.get_list("n"), ctx.get_cache("c", ttl=60)
        numbers["a"], sessions["a"] = 1, 1
        names.append(1)
        begun = [iter(numbers), iter(names), reversed(names), numbers.journal()]
    return (numbers, names, sessions), begun


@pytest.mark.parametrize("use", USES)
def test_a_collection_of_a_closed_context_is_refused(closed, use):
    """As its streams are, and in the same words."""
    with pytest.raises(IllegalStateError, match=r"this context is closed; connect\(\) again"):
        USES[use](*closed[0])


def test_an_iterator_that_was_begun_is_refused(closed):
    """Over a map, over a list from both ends, and over a journal."""
    for iterator in closed[1]:
        with pytest.raises(IllegalStateError, match="closed"):
            next(iterator)


def test_a_collection_of_a_closed_context_is_shown_without_being_read(closed):
    """It says its name, and why it says no more."""
    for collection, name in zip(closed[0], "mnc", strict=True):
        shown = f"{type(collection).__name__}({name!r}, this context is closed; connect() again)"
        assert (repr(collection), collection.name) == (shown, name)
        assert "closed" in collection._repr_html_()


def test_a_job_that_is_done_starts_no_engine(tmp_path):
    """It was done by an earlier process; the collection is there."""
    reducer = to_imap("m", str, str, job="monday")
    with ds.connect(engine="local", storage=tmp_path) as ctx:
        ctx.stream([1]).collect(reducer)

    with ds.connect(engine="spark", storage=tmp_path) as ctx:
        assert dict(ctx.stream([1]).collect(reducer)) == {"1": "1"}
        assert "open" in repr(ctx)


@pytest.mark.parametrize("error", [OSError, Mute])
@pytest.mark.parametrize("failing", [["storage"], ["other"], ["other", "storage"], ["jobs", "storage"]])
def test_a_context_closes_the_rest_after_a_failure(tmp_path, monkeypatch, failing, error):
    """The first error is raised and names the others; the engine and the other storages are closed all the same."""
    ctx, closed = ds.connect(engine="local", storage="memory:"), []
    beside = ctx.elsewhere(str(tmp_path)).running_storage()
    ctx.jobs()
    parts = {"jobs": ctx._jobs, "other": beside, "storage": ctx.running_storage(), "engine": ctx.running_engine()}
    for name, part in parts.items():

        def close(name=name, close=part.close, **arguments):
            close(**arguments)
            closed.append(name)
            if name in failing:
                raise error(name)

        monkeypatch.setattr(part, "close", close)

    with pytest.raises(error, match=failing[0]) as caught:
        ctx.close()

    assert closed == ["jobs", "other", "storage", "engine"]
    named = [] if error is Mute else failing[1:]  # One that takes no notes is raised as it is.
    assert getattr(caught.value, "__notes__", []) == [
        f"after it, closing failed with OSError: {name}" for name in named
    ]
