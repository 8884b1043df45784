"""`configure`: settings of the engine for one pipeline."""

from __future__ import annotations

import pytest


def test_configure_sets_a_setting_while_the_pipeline_runs(spark_context):
    """The later call wins; afterwards the setting is what it was."""
    name, seen = "spark.sql.session.timeZone", []
    conf = spark_context.spark.conf
    before = conf.get(name)
    stream = spark_context.stream([1, 2], 2).configure({name: "Asia/Tokyo"}).configure({name: "Asia/Kolkata"})
    stream.peek(lambda n: seen.append(conf.get(name))).to_list()

    assert (seen, conf.get(name)) == (["Asia/Kolkata"] * 2, before)


@pytest.mark.xfail(strict=True, reason="runs share one Spark session, whose settings are those of all of them")
def test_configure_leaves_runs_alone_that_overlap(spark_context):
    """A pipeline that runs while another one is looped over has its own settings."""
    name = "spark.sql.session.timeZone"
    conf = spark_context.spark.conf
    before = conf.get(name)
    loop = iter(spark_context.stream([1, 2], 2).configure({name: "Asia/Tokyo"}))
    try:
        next(loop)
        seen = []
        spark_context.stream([1], 1).peek(lambda n: seen.append(conf.get(name))).to_list()
    finally:
        loop.close()
    assert seen == [before]


def test_configure_changes_no_items(engine):
    """The local engine has no settings and ignores them."""
    assert engine.stream([1, 2], 2).configure({"spark.sql.shuffle.partitions": 3}).to_list() == [1, 2]


@pytest.mark.parametrize("config", [None, 3, "spark.x"])
def test_configure_refuses_what_is_no_mapping(local_context, config):
    """Settings are names and values; anything else is a `TypeError` at the call."""
    with pytest.raises(TypeError):
        local_context.stream([1]).configure(config)
