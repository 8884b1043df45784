"""Unbounded jobs: a sequence of epochs, each a bounded plan, and one record that commits each.

`unbounded_run` is the loop, `one_epoch` what happens in each turn. The plan is opened once (`open_plan`); `epoch_plan`
puts what is of one epoch into it: the ranges that `ranges` chose of the sources, the time that `event_time` knows, and
the state of steps (`state_of_steps`). `epoch_log` holds the records (`log_record`), of which the next one decides.
"""
