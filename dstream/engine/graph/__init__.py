"""The physical plan as values: `vertices` says what tasks do and how rows travel, `decisions` what a run decides.

`dstream.engine.compiler` makes it of a plan of core operations; an engine runs it. Nothing here knows Spark.
"""
