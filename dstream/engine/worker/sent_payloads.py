"""Payloads that all workers need, and how a task gets one: with its function, in a broadcast, or from a file."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["InBroadcast", "InFile", "InFunction", "Sent"]


class Sent(Protocol):
    """Payloads that were sent to all workers."""

    @property
    def name(self) -> str:
        """Their name, unlike that of any others."""
        ...

    def payloads(self) -> Sequence[Any]:
        """Return them, on a worker."""
        ...


@dataclass(frozen=True)
class InFunction:
    """A few bytes, which travel with the function that needs them."""

    name: str
    few: tuple[bytes, ...]

    def payloads(self) -> Sequence[Any]:
        return self.few


@dataclass(frozen=True)
class InBroadcast:
    """A broadcast variable of Spark, of which each executor has the bytes once."""

    name: str
    broadcast: Any

    def payloads(self) -> Sequence[Any]:
        payloads: Sequence[Any] = self.broadcast.value
        # A broadcast holds its value for as long as the process lives (PySpark 4.3). The table that is made of it is
        # enough; if it is wanted again, it is in a file of the executor, unless Spark encrypts its files.
        if hasattr(self.broadcast, "_path"):
            self.broadcast.__dict__.pop("_value", None)
        return payloads


@dataclass(frozen=True)
class InFile:
    """A file that Spark Connect has sent to the server, which gives it to the executors of its session."""

    name: str

    def payloads(self) -> Sequence[Any]:
        from pyspark import SparkFiles

        with open(SparkFiles.get(self.name), "rb") as file:
            payloads: Sequence[Any] = pickle.load(file)
        return payloads
