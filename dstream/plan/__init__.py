"""Plans: streams and pipelines as immutable values, as nodes and as core operations.

`nodes`, `keyed_nodes`, `stage_nodes` and `pipeline_nodes` contain the nodes of the fluent methods, `ends` those of
terminal operations, `graphs` the graphs of processors. `rewrite` turns nodes into core operations, which are all that
engines know, with `translation` for one node alone; `binding` binds a plan to a context, `timestamps` adapts it to
unbounded items. `walk` visits nodes and operations without recursion, `properties` derives order, size and placement,
`stages` is the value that pictures show, `chain` the plan as a string. `failure_messages` and `replay` explain a
failure at the end of a terminal operation; `capture_checks` and `captures` check the captured variables of functions.

Names imported from here are for authors of plans. Core operations have the same names in `operations`; engines import
them from there, and nothing from here.
"""

from __future__ import annotations

from dstream.plan.chain import describe
from dstream.plan.ends import (
    Collect,
    Columns,
    End,
    ForEach,
    ForEachPartition,
    Loop,
    Partitions,
    ToList,
    Write,
    explained,
)
from dstream.plan.keyed_nodes import CoGroup, Distinct, Join, Pairing, PartitionBy
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
    Recover,
    Shuffle,
    Skip,
    Sorted,
    Table,
    TakeWhile,
    Union,
    Unordered,
)
from dstream.plan.operations.streams import Core
from dstream.plan.properties import check, configuration, is_bounded, is_ordered, known_size, parallelism
from dstream.plan.rewrite import rewrite
from dstream.plan.steps import SourceLocation, Step, call_site, unchanged
from dstream.plan.walk import (
    CacheContent,
    CacheLookup,
    fold,
    inputs_first,
    last_step,
    nothing_kept,
    recalled,
    topological,
)
from dstream.values.functions import shown_function

__all__ = [
    "Cache",
    "CacheContent",
    "CacheLookup",
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
    "SourceLocation",
    "Step",
    "Table",
    "TakeWhile",
    "ToList",
    "Union",
    "Unordered",
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
