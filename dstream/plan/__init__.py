"""The logical plan: what a stream will do, as immutable nodes.

`nodes` holds the nodes that the fluent methods make, `join_nodes` those of two streams, `ends` those
that a plan ends in; `rewrite` turns them into the dozen that engines know, `walk` visits a plan without
recursion, `properties` answers what holds for it, `stages` says what it will run as, `show` writes
and draws it. `failure_boundary`, `failure_messages` and `replaying` make words of a failure where a terminal operation
ends; `capture_checks` checks what functions take along.
"""

from dstream.plan.caches_and_tables import Cache, Cached, CacheIdentity, Found, Recall, Table, nothing_kept, recalled
from dstream.plan.ends import Collect, Columns, End, ForEach, ForEachPartition, Loop, Partitions, ToList, Write
from dstream.plan.failure_boundary import explained
from dstream.plan.guards_of_steps import Called, Guard, Recover, calls_for_each_item
from dstream.plan.join_nodes import CoGroup, Join, Pairing
from dstream.plan.nodes import (
    Concat,
    Configure,
    Distinct,
    DropWhile,
    Filter,
    FlatMap,
    Gather,
    Limit,
    Map,
    MapMulti,
    Node,
    Parallel,
    PartitionBy,
    Peek,
    Read,
    Skip,
    Sorted,
    TakeWhile,
    Union,
    Unordered,
    unchanged,
)
from dstream.plan.properties import (
    bounded_nodes,
    check,
    configuration,
    is_bounded,
    is_ordered,
    is_ordered_after,
    known_size,
    ordered_nodes,
    parallelism,
)
from dstream.plan.rewrite import Chain, Op, Top, rewrite
from dstream.plan.show.chain import describe
from dstream.plan.steps import Step, shown_function
from dstream.plan.walk import fold, inputs_first, last_step, step_of, topological
from dstream.plan.where import Where, call_site

__all__ = [
    "Cache",
    "CacheIdentity",
    "Cached",
    "Called",
    "Chain",
    "CoGroup",
    "Collect",
    "Columns",
    "Concat",
    "Configure",
    "Distinct",
    "DropWhile",
    "End",
    "Filter",
    "FlatMap",
    "ForEach",
    "ForEachPartition",
    "Found",
    "Gather",
    "Guard",
    "Join",
    "Limit",
    "Loop",
    "Map",
    "MapMulti",
    "Node",
    "Op",
    "Pairing",
    "Parallel",
    "PartitionBy",
    "Partitions",
    "Peek",
    "Read",
    "Recall",
    "Recover",
    "Skip",
    "Sorted",
    "Step",
    "Table",
    "TakeWhile",
    "ToList",
    "Top",
    "Union",
    "Unordered",
    "Where",
    "Write",
    "bounded_nodes",
    "call_site",
    "calls_for_each_item",
    "check",
    "configuration",
    "describe",
    "explained",
    "fold",
    "inputs_first",
    "is_bounded",
    "is_ordered",
    "is_ordered_after",
    "known_size",
    "last_step",
    "nothing_kept",
    "ordered_nodes",
    "parallelism",
    "recalled",
    "rewrite",
    "shown_function",
    "step_of",
    "topological",
    "unchanged",
]
