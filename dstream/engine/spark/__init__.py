"""The Spark engine: graphs of tasks as DataFrames, with one fused `mapInArrow` for each stage.

In reading order: `rows` says how items travel, `stage` runs on the workers, `sinks` and `readers` are the two ends of
a stage there, `flow` builds stages in the driver, `graphs` runs what `dstream.engine.compiler` made of a plan, `engine`
runs terminal operations, `launch` starts and stops Spark.
"""
