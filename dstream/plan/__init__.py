"""Plans: what a stream will do, as immutable values, in two families.

`nodes` holds what the fluent methods make, `nodes_by_key` those by key, `ends` those that a
plan ends in. `rewrite` turns them into operations of `core`, which are all that engines know. `walk`
visits both without recursion, `properties` answers what holds for a plan, `stages` says what it will
run as, `show` writes and draws it. `failure_boundary`, `failure_messages` and `replaying` make words of
a failure where a terminal operation ends; `capture_checks` checks what functions take along.

Names imported from here are for those who write plans. Core operations have the same names in `core`;
engines import them from there, and nothing from here.
"""

from dstream.plan.core import Core
from dstream.plan.ends import Collect, Columns, End, ForEach, ForEachPartition, Loop, Partitions, ToList, Write
from dstream.plan.failure_boundary import explained
from dstream.plan.nodes import (
    Cache,
    Concat,
    Configure,
    DropWhile,
    Filter,
    FlatMap,
    Gather,
    Limit,
    Map,
    MapMulti,
    Node,
    Parallel,
    Peek,
    Read,
    Shuffle,
    Skip,
    Sorted,
    Table,
    TakeWhile,
    Union,
    Unordered,
)
from dstream.plan.nodes_by_key import CoGroup, Distinct, Join, Pairing, PartitionBy
from dstream.plan.nodes_of_failures import Recover
from dstream.plan.properties import check, configuration, is_bounded, is_ordered, known_size, parallelism
from dstream.plan.recalling import Cached, Found, nothing_kept, recalled
from dstream.plan.rewrite import rewrite
from dstream.plan.show.chain import describe
from dstream.plan.steps import Step, shown_function, unchanged
from dstream.plan.walk import fold, inputs_first, last_step, topological
from dstream.plan.where import Where, call_site

__all__ = [
    "Cache",
    "Cached",
    "CoGroup",
    "Collect",
    "Columns",
    "Concat",
    "Configure",
    "Core",
    "Distinct",
    "DropWhile",
    "End",
    "Filter",
    "FlatMap",
    "ForEach",
    "ForEachPartition",
    "Found",
    "Gather",
    "Join",
    "Limit",
    "Loop",
    "Map",
    "MapMulti",
    "Node",
    "Pairing",
    "Parallel",
    "PartitionBy",
    "Partitions",
    "Peek",
    "Read",
    "Recover",
    "Shuffle",
    "Skip",
    "Sorted",
    "Step",
    "Table",
    "TakeWhile",
    "ToList",
    "Union",
    "Unordered",
    "Where",
    "Write",
    "call_site",
    "check",
    "configuration",
    "describe",
    "explained",
    "fold",
    "inputs_first",
    "is_bounded",
    "is_ordered",
    "known_size",
    "last_step",
    "nothing_kept",
    "parallelism",
    "recalled",
    "rewrite",
    "shown_function",
    "topological",
    "unchanged",
]
