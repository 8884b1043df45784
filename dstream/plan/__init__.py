"""The logical plan: what a stream will do, as immutable nodes.

`nodes` holds the nodes that the fluent methods make, `core` those that an engine must know,
`rewrite` turns the first into the second, `walk` visits a plan without recursion, `properties`
answers what holds for it, `show` writes it as text.
"""

from dstream.plan.nodes import (
    Collect,
    Concat,
    Configure,
    Distinct,
    DropWhile,
    Filter,
    FlatMap,
    ForEachPartition,
    Limit,
    Map,
    MapMulti,
    Node,
    Parallel,
    Peek,
    Read,
    Skip,
    Sorted,
    TakeWhile,
    Unordered,
    Write,
    unchanged,
)
from dstream.plan.properties import check, configuration, is_bounded, is_ordered, parallelism
from dstream.plan.rewrite import Chain, Op, Top, rewrite
from dstream.plan.show import describe
from dstream.plan.steps import Step
from dstream.plan.walk import fold, inputs_first, topological
from dstream.plan.where import Where, call_site

__all__ = [
    "Chain",
    "Collect",
    "Concat",
    "Configure",
    "Distinct",
    "DropWhile",
    "Filter",
    "FlatMap",
    "ForEachPartition",
    "Limit",
    "Map",
    "MapMulti",
    "Node",
    "Op",
    "Parallel",
    "Peek",
    "Read",
    "Skip",
    "Sorted",
    "Step",
    "TakeWhile",
    "Top",
    "Unordered",
    "Where",
    "Write",
    "call_site",
    "check",
    "configuration",
    "describe",
    "fold",
    "inputs_first",
    "is_bounded",
    "is_ordered",
    "parallelism",
    "rewrite",
    "topological",
    "unchanged",
]
