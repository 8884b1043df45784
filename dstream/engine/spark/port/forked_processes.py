"""Forks: a forked process has copies of the sockets on which Spark answers its parent, and must not touch them."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, TypeVar
from weakref import WeakSet

from dstream.engine.spark.spark_errors import forked

__all__ = ["check_process", "is_forked", "left_to_parent", "talks_to_a_server"]

H = TypeVar("H")

_is_forked = False
_talks_to_a_server = False
_of_parent: WeakSet[Any] = WeakSet()


def is_forked() -> bool:
    """Say whether Spark, as this process knows it, works for the process that this one was forked from."""
    return _is_forked


def check_process() -> None:
    """Refuse to talk to the Spark of a parent.

    Raises:
        EngineError: this process was forked from one that uses Spark.
    """
    if _is_forked:
        raise forked()


def talks_to_a_server() -> None:
    """Note that this process has a connection to a server of Spark Connect."""
    global _talks_to_a_server
    _talks_to_a_server = True


def left_to_parent(held: H) -> H:
    """Return `held`, which talks to Spark when it ends, and lives for ever in processes that are forked meanwhile.

    An iterator would tell Spark, on the socket of the parent, to send no more; a frame, to forget its rows (4.3).
    """
    _of_parent.add(held)
    return held


def _after_fork() -> None:
    global _is_forked
    pyspark = sys.modules.get("pyspark")
    context = getattr(pyspark, "SparkContext", None)  # It may be half imported.
    _is_forked = _talks_to_a_server or (context is not None and context._gateway is not None)
    for held in _of_parent:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))


os.register_at_fork(after_in_child=_after_fork)
