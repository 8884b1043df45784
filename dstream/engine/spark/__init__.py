"""The Spark engine: graphs of tasks as DataFrames, with one fused `mapInArrow` for each stage.

In reading order: `segments` makes DataFrames of stages, `graphs` runs what `dstream.engine.compiler` made of a plan,
`spark_run` makes items of rows, `spark_engine` runs terminal operations, `session` starts and stops Spark. What its
workers run is `dstream.engine.worker`.
"""
