"""The Spark engine: graphs of tasks as DataFrames, with one fused `mapInArrow` for each stage.

In reading order: `rows` says how items travel, `stage` runs on the workers, `sinks` and `readers` are the two ends of
a stage there, `segments` builds stages in the driver, `graphs` runs what `dstream.engine.compiler` made of a plan, `spark_engine`
runs terminal operations, `session` starts and stops Spark.
"""
