"""The contracts between the parts of dstream, and towards third parties.

`collector` says how items become a result, `source` where they come from, `stream_source` where they come from without
an end, `sink` where they go, `store` where distributed collections live, `gatherer` what happens between items,
`engine_contract` who runs a plan.
"""

from dstream.spi.collector import AggregateOperation, Characteristics, Collector, Keyed, identity
from dstream.spi.engine_contract import Engine, Running, RunStatus, Runtime
from dstream.spi.gatherer import Downstream, Gatherer
from dstream.spi.in_columns import InColumns, added_ints
from dstream.spi.in_parallel import AtEnd, ByPlace, Calling, InParallel, ItemWise, Outcome, Place, RunningValue
from dstream.spi.integration import Integration
from dstream.spi.processor_ends import ProcessorSink, ProcessorSource, ProcessorStreamSource
from dstream.spi.records import Record, Records
from dstream.spi.service import OpenedLater, Service
from dstream.spi.sink import (
    Collections,
    Grouped,
    MapWriter,
    Receipt,
    Reducer,
    Sink,
    Target,
    WriteJob,
    Writer,
)
from dstream.spi.source import (
    ArrowRows,
    Counted,
    Held,
    InArrow,
    InBlocks,
    Misread,
    OfRecords,
    SizedSource,
    Source,
    Split,
    SplitOfRecords,
)
from dstream.spi.store import (
    UNCHANGED,
    EntrySplit,
    ItemSplit,
    Kind,
    ListStore,
    ListView,
    MapStore,
    Options,
    Splice,
    Storage,
    Unchanged,
    Update,
)
from dstream.spi.stream_source import (
    Identified,
    Identity,
    Offset,
    Reached,
    Streamable,
    StreamSource,
    TimedSplit,
    Timestamped,
    TimestampedBeside,
)

__all__ = [
    "UNCHANGED",
    "AggregateOperation",
    "ArrowRows",
    "AtEnd",
    "ByPlace",
    "Calling",
    "Characteristics",
    "Collections",
    "Collector",
    "Counted",
    "Downstream",
    "Engine",
    "EntrySplit",
    "Gatherer",
    "Grouped",
    "Held",
    "Identified",
    "Identity",
    "InArrow",
    "InBlocks",
    "InColumns",
    "InParallel",
    "Integration",
    "ItemSplit",
    "ItemWise",
    "Keyed",
    "Kind",
    "ListStore",
    "ListView",
    "MapStore",
    "MapWriter",
    "Misread",
    "OfRecords",
    "Offset",
    "OpenedLater",
    "Options",
    "Outcome",
    "Place",
    "ProcessorSink",
    "ProcessorSource",
    "ProcessorStreamSource",
    "Reached",
    "Receipt",
    "Record",
    "Records",
    "Reducer",
    "RunStatus",
    "Running",
    "RunningValue",
    "Runtime",
    "Service",
    "Sink",
    "SizedSource",
    "Source",
    "Splice",
    "Split",
    "SplitOfRecords",
    "Storage",
    "StreamSource",
    "Streamable",
    "Target",
    "TimedSplit",
    "Timestamped",
    "TimestampedBeside",
    "Unchanged",
    "Update",
    "WriteJob",
    "Writer",
    "added_ints",
    "identity",
]


def __dir__() -> list[str]:
    return sorted(__all__)
