"""Plans: streams and pipelines as immutable values, as nodes and as core operations.

`operations` contains the operations: what the user called, and what engines run. `rewrite` turns the one plan into the
other, `timestamps` adapts it to unbounded items. `walk` visits operations and opens plans, without recursion,
`properties` derives order, size and placement, `stages` is the value that pictures show, `chain` the plan as a string,
`graphs` and `processor_graph` the graphs of processors, `steps` the calls of functions. `boundary` and
`failure_messages` explain a failure at the end of a terminal operation; `capture_checks` and `captures` check the
captured variables of functions.
"""

from __future__ import annotations

from dstream.plan.boundary import explained
from dstream.plan.chain import describe
from dstream.plan.operations.calls import Filter, FlatMap, ForEach, Map, MapMulti, Peek, Recover, Shuffle
from dstream.plan.operations.elementwise import Gather
from dstream.plan.operations.ends import (
    Collect,
    Columns,
    End,
    ForEachPartition,
    Loop,
    Partitions,
    ToList,
    Write,
)
from dstream.plan.operations.keyed import Distinct, PartitionBy
from dstream.plan.operations.pairs import CoGroup, Join, Pairing
from dstream.plan.operations.sort_limit import DropWhile, Limit, Skip, Sorted, TakeWhile
from dstream.plan.operations.streams import Cache, Concat, Configure, Node, Parallel, Read, Table, Union, Unordered
from dstream.plan.properties import check, configuration, is_bounded, is_ordered, known_size, parallelism
from dstream.plan.rewrite import rewrite
from dstream.plan.steps import NO_CALL, SourceLocation, Step, call_site, called, here, unchanged
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
from dstream.values.user_functions import shown_function

__all__ = [
    "NO_CALL",
    "Cache",
    "CacheContent",
    "CacheLookup",
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
    "called",
    "check",
    "configuration",
    "describe",
    "explained",
    "fold",
    "here",
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
