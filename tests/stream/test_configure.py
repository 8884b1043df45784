"""`configure`: settings of the engine for one pipeline."""

from __future__ import annotations

import pytest

ZONE = "spark.sql.session.timeZone"


def zone(_: object) -> str | None:
    """Return the setting as a task has it, where it was changed."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context.getLocalProperty(ZONE)


def test_configure_sets_a_setting_for_one_pipeline(spark_context):
    """The later call wins; the session of the context stays as it was."""
    before = spark_context.spark.conf.get(ZONE)
    stream = spark_context.stream([1, 2], 2).configure({ZONE: "Asia/Tokyo"}).configure({ZONE: "Asia/Kolkata"})

    assert stream.map(zone).to_list() == ["Asia/Kolkata"] * 2
    assert spark_context.spark.conf.get(ZONE) == before


def test_configure_leaves_runs_alone_that_overlap(spark_context):
    """Two loops, in turn, each with its own settings, and a pipeline without any between them."""
    east = iter(spark_context.stream([1] * 8, 8).configure({ZONE: "Asia/Tokyo"}).map(zone))
    west = iter(spark_context.stream([1] * 8, 8).configure({ZONE: "America/Lima"}).map(zone))
    seen = [zone for pair in zip(east, west, strict=True) for zone in pair]

    assert seen == ["Asia/Tokyo", "America/Lima"] * 8
    assert spark_context.stream([1], 1).map(zone).to_list() != ["Asia/Tokyo"]
    assert spark_context.stream([1], 1).map(zone).to_list() != ["America/Lima"]


def test_settings_of_the_session_hold_in_a_pipeline_with_its_own(spark_context):
    """A pipeline adds to them."""
    name = "spark.sql.shuffle.partitions"
    spark_context.spark.conf.set(ZONE, "Asia/Seoul")
    try:
        assert spark_context.stream([1], 1).configure({name: 3}).map(zone).to_list() == ["Asia/Seoul"]
    finally:
        spark_context.spark.conf.unset(ZONE)


def test_configure_changes_no_items(engine):
    """The local engine has no settings and ignores them."""
    assert engine.stream([1, 2], 2).configure({"spark.sql.shuffle.partitions": 3}).to_list() == [1, 2]


@pytest.mark.parametrize("config", [None, 3, "spark.x"])
def test_configure_refuses_what_is_no_mapping(local_context, config):
    """Settings are names and values; anything else is a `TypeError` at the call."""
    with pytest.raises(TypeError):
        local_context.stream([1]).configure(config)
