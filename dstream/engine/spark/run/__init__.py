"""Runs of physical plans on a Spark session.

- `backend`: the Spark session that all runs share, and DataFrames for the caller.
- `segments`: DataFrames of stages.
- `stage_runner`: builds stages and runs their jobs with the options of a run.
- `graphs`: a physical plan with its decisions.
- `execution`: rows of a run as items.
- `engine`: terminal operations.
- `remote`: tasks on Spark for a run whose first tasks ran in the caller's process.
- `service_listener`: the end of shared services.
"""
