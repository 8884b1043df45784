"""Runs of physical plans on a Spark session.

In reading order: `segments` makes DataFrames of stages, `graphs` runs a physical plan with its decisions, `execution`
turns its rows into items, and `engine` runs terminal operations. `backend` is the Spark session as they use it, `jobs`
the progress of its jobs, `driver` the part of a run in the driver.
"""
