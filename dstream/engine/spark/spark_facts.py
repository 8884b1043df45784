"""What Spark knows that a graph depends on: its cores, and its setting for sides of joins that travel."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dstream.engine.compiler import Facts
from dstream.engine.spark.cluster import Cluster
from dstream.plan.core import Core
from dstream.plan.properties import parallelism

__all__ = ["BROADCAST", "LARGEST_SMALL_SIDE", "bytes_of", "facts_of", "largest_small_side"]

LARGEST_SMALL_SIDE = 4 * 2**20
"""How many bytes of one side of a join may travel with the function that joins it, to every task."""

BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
"""Spark's own setting: how many bytes its joins send to every task; below 0, none. A lower bound counts here too."""

_ITEMS_OF_A_SMALL_PIECE = 16_384


def facts_of(root: Core, cluster: Cluster, *, in_small_pieces: bool) -> Facts:
    """Return what the graph of a plan depends on.

    Args:
        root: the last core operation.
        cluster: where it runs, with the settings of the run.
        in_small_pieces: what the caller holds is divided so that a task gives few items, for a loop in the caller.
    """
    asked, cores = parallelism(root) or (1 if cluster.is_one_task else None), cluster.cores
    bound = largest_small_side({BROADCAST: cluster.setting(BROADCAST)})
    few = _ITEMS_OF_A_SMALL_PIECE if in_small_pieces and asked is None else None
    return Facts(asked or cores, cores, bound, few, cluster.broadcast_limit, cluster.column_mode)


def largest_small_side(settings: Mapping[str, str]) -> int:
    """Return how many bytes of one side of a join may travel to every task; below 0, none."""
    return min(LARGEST_SMALL_SIDE, bytes_of(settings[BROADCAST])) if BROADCAST in settings else LARGEST_SMALL_SIDE


def bytes_of(text: str) -> int:
    """Return a size as Spark writes it, `10485760b` or `4m`, in bytes; -1 if it says nothing."""
    found = re.match(r"\s*(-?\d+)\s*([kmgtp]?)", text.lower())
    return int(found[1]) << 10 * " kmgtp".index(found[2] or " ") if found else -1
