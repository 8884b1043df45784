"""The choice of the engine of each plan, by an estimate of its work.

`engine` runs each plan where `placement` puts it. `estimates` adds up the cost of a plan, operation by operation, in
`subplan_estimates`, from the constants of formats and operations in `cost_model` and the `measured` times of functions.
`border` decides when a run continues on Spark.
"""

from __future__ import annotations
