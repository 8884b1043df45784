"""The jobs of one operation: how they are named and cancelled."""

from __future__ import annotations

import pytest

from dstream.engine.calls import Call, Progress
from dstream.engine.spark.port.classic import ClassicPort
from dstream.engine.spark.run.stage_runner import ItemCounts, OperationJobs


def test_a_job_that_begins_while_it_is_cancelled_does_not_run(spark_context):
    """Ctrl-C may come when the job is on its way and Spark does not know it yet."""
    assert spark_context.stream([1, 2]).map(lambda n: n).to_list() == [1, 2]
    spark = spark_context.spark
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # A group of this thread's own would stay its own.
    port = ClassicPort(spark)
    work = OperationJobs(port, Progress(asked=False), ItemCounts(port), Call.of_user())
    work.cancel()

    with pytest.raises(Exception, match="cancelled"), work.job(work.call):
        spark.range(1).collect()
    assert spark.range(1).count() == 1
