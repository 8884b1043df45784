"""The physical plan as values: `vertices` has what tasks do and how rows travel, `decisions` what a run finds out.

`dstream.engine.compiler` makes it of a plan of core operations; an engine runs it. Nothing here knows Spark.
"""
