"""The Spark engine: plans lowered to DataFrames, with one fused `mapInArrow` for each stage.

In reading order: `rows` says how items travel, `stage` runs on the workers, `sinks` and `readers`
are the two ends of a stage there, `flow` builds stages in the driver, `lowering` turns each core
node into one, `engine` runs terminal operations, `launch` starts and stops Spark.
"""
