"""`JobConfig`: wrong values are refused by name, and what is said is kept."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.errors import UnsupportedError
from reducers import to_ilist
from tests.jobs.planned import plan_of


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"name": 3}, TypeError, "the name of a job must be a text, not 3"),
        ({"name": " "}, ValueError, "1 to 200 printable characters, not ' '"),
        ({"name": "a\nb"}, ValueError, "printable"),
        ({"guarantee": "twice"}, ValueError, "guarantee must be one of 'none', 'at-least-once', 'exactly-once'"),
        ({"epoch_length": 0}, ValueError, "epoch_length must be above 0, not 0"),
        ({"epoch_length": "1"}, TypeError, "epoch_length must be seconds, not '1'"),
        ({"auto_restart": -1}, ValueError, "auto_restart must not be negative, but it is -1"),
        ({"auto_restart": 10**9}, ValueError, "auto_restart must be at most 1,000,000, not 1000000000"),
        ({"auto_restart": 1.5}, TypeError, r"auto_restart must be a number, or \(number, seconds\), not 1.5"),
        ({"auto_restart": (1, float("inf"))}, ValueError, "the pause of auto_restart must be above 0, not inf"),
        ({"metrics": 1}, TypeError, "metrics must be True or False, not 1"),
        ({"max_items": 0}, ValueError, "max_items must be from 1 to 1,000,000,000, not 0"),
        ({"shards": "a"}, TypeError, "shards must be a number, not 'a'"),
        ({"force": 1}, TypeError, "force must be True or False, not 1"),
        ({"clock": 1}, TypeError, "clock must be a function without arguments, not 1"),
        ({"keep": -1}, ValueError, "keep must be above 0"),
        ({"start_at": float("nan"), "force": True}, ValueError, "must be the number of an epoch, which nan is not"),
        ({"colour": "red"}, TypeError, "unexpected keyword argument 'colour'"),
    ],
)
def test_job_config_refuses_what_is_wrong(given, error, words):
    """The message names the value and what it should be."""
    with pytest.raises(error, match=words):
        ds.JobConfig(**given)


@pytest.mark.parametrize(
    "name", ["max_items", "suspend_on_failure", "force", "shards", "clock", "keep", "max_watermark_retain"]
)
def test_a_bounded_job_refuses_what_is_for_others(ctx, name):
    """Before anything is registered."""
    value = {"clock": int, "force": True, "suspend_on_failure": True}.get(name, 1)
    with pytest.raises(UnsupportedError, match=f"JobConfig: {name} is for jobs without an end"):
        ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out")), config=ds.JobConfig(**{name: value}))
    assert ctx.jobs() == []


@pytest.mark.parametrize(
    ("given", "pauses"),
    [(True, [1, 2, 4]), (False, []), (0, []), (2, [1, 2]), ((2, 0), [0, 0]), ((8, 20.0), [20, 40, *[60] * 6])],
)
def test_job_config_says_when_a_job_starts_again(given, pauses):
    """Each pause is twice the one before, up to a minute."""
    config = ds.JobConfig(auto_restart=given)

    assert [config.pause_before(restart) for restart in range(config.restarts)] == pauses


def test_job_config_lets_a_job_start_again_very_often():
    """The pauses stay a minute; no number on the way becomes too large."""
    config = ds.JobConfig(auto_restart=1_000_000)

    assert (config.restarts, config.pause_before(999_999)) == (1_000_000, 60)


def test_job_config_is_kept_as_plain_data():
    """What comes back is equal, also where JSON has no tuples."""
    for config in (ds.JobConfig(), ds.JobConfig(name="a", guarantee="none", epoch_length=0.5, auto_restart=(1, 2.0))):
        assert ds.JobConfig.from_json(config.to_json()) == config
