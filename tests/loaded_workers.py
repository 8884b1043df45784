"""The daemon that forks the workers of the test run's Spark, with the modules loaded that each of them needs.

A worker whose function failed ends, so hundreds of tests start new ones, and each would spend half a second of CPU on
imports. Scripts that run in a process of their own have Spark's own daemon.
"""

from __future__ import annotations

import pyarrow
import pyspark.worker
from pyspark import daemon

import dstream.engine.tasks.stage

__all__ = ["LOADED", "daemon"]

LOADED = (pyarrow, pyspark.worker, dstream.engine.tasks.stage)

if __name__ == "__main__":
    daemon.manager()
