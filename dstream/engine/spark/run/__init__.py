"""Runs of physical plans on a Spark session.

In reading order: `segments` makes DataFrames of stages, `graphs` runs a physical plan with its decisions, `execution`
turns its rows into items, and `engine` runs terminal operations. `backend` is the Spark session that all runs share,
`stage_runner` builds stages and runs their jobs with the options of a run; `service_listener` ends shared services.
"""
