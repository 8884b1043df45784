"""Unbounded jobs: a sequence of epochs, each a bounded plan, and one record that commits each.

`run` has the loop, `epoch_runner` one turn of it, `rate_control` its batch sizes and pauses. `plans` opens the plan
once, and fills in for each epoch the `ranges` of its sources, the event time (`watermarks`) and the `state` of its
steps. `log` stores the records, of which the next one depends; `resumption` checks them when a job resumes, with its
own pipeline or another. `placement` chooses the engine of each epoch, `epoch_metrics` has its metrics.
"""

from __future__ import annotations
