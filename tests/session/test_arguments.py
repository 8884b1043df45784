"""What `connect()` and a context refuse at the call, and that nothing was made by then."""

from __future__ import annotations

from datetime import timedelta

import pytest

import dstream as ds


@pytest.fixture
def ctx():
    """A local context with an empty storage."""
    with ds.connect(engine="local", storage="memory:") as context:
        yield context


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"journal": "yes"}, "journal must be True or False, not 'yes'"),
        ({"strict": 1}, "strict must be True or False, not 1"),
        ({"buckets": 0}, "buckets must be a number from 1 to 65536, not 0"),
        ({"buckets": 10**9}, "buckets must be a number from 1 to 65536, not 1000000000"),
        ({"buckets": True}, "buckets must be a number from 1 to 65536, not True"),
    ],
)
def test_a_map_is_not_made_with_options_of_another_type(ctx, options, message):
    """`strict="no"` would be a strict map."""
    with pytest.raises((TypeError, ValueError), match=message):
        ctx.get_map("ages", **options)

    assert ctx.collections() == []


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "60", True])
def test_a_cache_is_not_made_with_what_are_no_seconds(ctx, seconds):
    """The message names the option and what was given."""
    for option in ("ttl", "max_idle"):
        with pytest.raises(ValueError, match=f"{option} must be a number of seconds above 0"):
            ctx.get_cache("sessions", **{option: seconds})

    assert ctx.collections() == []


@pytest.mark.parametrize("storage", [5, b"data", ["data"]])
def test_a_storage_is_a_text_or_a_path(storage):
    """The message says what to give."""
    with pytest.raises(TypeError, match="storage must be a folder or a URL"):
        ds.connect(engine="local", storage=storage)


def test_an_empty_storage_is_refused():
    """It would be the current folder, where nobody expects it."""
    with pytest.raises(ValueError, match="storage must not be empty"):
        ds.connect(engine="local", storage="")


@pytest.mark.parametrize(
    ("progress", "said", "shown"),
    [
        (None, None, None),
        (None, "", None),
        (None, "1", True),
        (None, "0", False),
        (True, "0", True),
        (False, "1", False),
    ],
)
def test_progress_is_asked_for_by_argument_or_environment(monkeypatch, progress, said, shown):
    """The argument wins."""
    monkeypatch.delenv("DSTREAM_PROGRESS", raising=False)
    if said is not None:
        monkeypatch.setenv("DSTREAM_PROGRESS", said)
    with ds.connect(engine="local", progress=progress) as ctx:
        assert ctx.running_engine()._progress._asked is shown


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_progress_is_true_or_false(monkeypatch, engine):
    """Anything else is refused before something starts, also in the environment."""
    with pytest.raises(TypeError, match="progress must be True or False, not 'yes'"):
        ds.connect(engine=engine, progress="yes")
    monkeypatch.setenv("DSTREAM_PROGRESS", "yes")
    with pytest.raises(ValueError, match="DSTREAM_PROGRESS must be one of 0, 1, not 'yes'"):
        ds.connect(engine=engine)


@pytest.mark.parametrize("older_than", [-1, float("nan"), timedelta(-1), "1", None, True])
def test_vacuum_takes_seconds(older_than):
    """Or a timedelta, of the whole storage and of a collection; what is no age removes nothing."""
    with ds.connect(engine="local", storage="memory:") as ctx:
        for place in (ctx, ctx.get_list("names")):
            with pytest.raises((TypeError, ValueError), match=r"older_than must be (a finite number of )?seconds"):
                place.vacuum(older_than)
            assert [place.vacuum(0), place.vacuum(timedelta(0)), place.vacuum(timedelta(days=1))] == [0, 0, 0]
