"""The choice of the engine of each plan, by an estimate of its work.

`engine` runs each plan where `placement` puts it. `estimates` has the costs of a plan, from the `flows` of its items,
the `constants` of a machine and the `measured` times of functions; `border` is where a run continues on Spark.
"""

from __future__ import annotations
