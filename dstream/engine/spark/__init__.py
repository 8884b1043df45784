"""The Spark engine: physical plans as DataFrames, with one fused `mapInArrow` for each stage.

`session` starts and stops Spark, `port` has the calls to it, classic or Connect, and `run` runs physical plans. Its
workers run `dstream.engine.tasks`.
"""

from __future__ import annotations
