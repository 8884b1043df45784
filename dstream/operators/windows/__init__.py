"""Windows of event time: buffers of open windows, and the results that they emit.

`frames` aggregates tumbling and sliding windows, `sessions` session windows; both have their containers from `buffers`
and emit through `results`, for the items that `arrivals` assigns to shards. `bounded` is the same for bounded input.
Definitions of windows are in `dstream.windows`.
"""
