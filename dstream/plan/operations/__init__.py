"""Core operations: the plan as engines know it.

`streams` contains the operations on one stream and the ends, `pairs` those on two streams, `stages` those of pipelines.
"""
