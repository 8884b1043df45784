"""Sources: the origins of the items of a stream.

Each is a `dstream.spi.Source` or a `StreamSource`, which never ends; `dstream docs write-a-source` adds another
in 30 lines.

- `filesystem`: `text_files`, `json_lines`, `files`, `watch_files`.
- `tabular_files`: `csv_rows`, `parquet_rows`, `avro_records`.
- `sql`: `sql_rows`, `sql_changes`.
- `topics`: `kafka`.
- `sockets`: `socket_lines`.
- `collections`: `imap`, `icache`, `ilist`, and their journals, as `imap_journal`.
- `functions`: your own, by `source_from`, `stream_source_from`, `from_processor`, `stream_from_processor`.
- `memory`: `items`, `stream_of`, and the clock-driven `item_stream` and `long_stream`.

The factories of `dstream.Stream` use `Items`, `Range`, `Iterate` and `Generate`.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dstream.connectors.functions import SimpleEvent
    from dstream.connectors.kafka.consumers import KafkaRecord
    from dstream.connectors.memory import Generate, Items, ItemsSplit, Iterate, Range
    from dstream.sources.collections import icache, icache_journal, ilist, imap, imap_journal
    from dstream.sources.filesystem import files, json_lines, text_files, watch_files
    from dstream.sources.functions import from_processor, source_from, stream_from_processor, stream_source_from
    from dstream.sources.memory import item_stream, items, long_stream, stream_of
    from dstream.sources.sockets import socket_lines
    from dstream.sources.sql import sql_changes, sql_rows
    from dstream.sources.tabular_files import avro_records, csv_rows, parquet_rows
    from dstream.sources.topics import kafka

__all__ = [
    "Generate",
    "Items",
    "ItemsSplit",
    "Iterate",
    "KafkaRecord",
    "Range",
    "SimpleEvent",
    "avro_records",
    "csv_rows",
    "files",
    "from_processor",
    "icache",
    "icache_journal",
    "ilist",
    "imap",
    "imap_journal",
    "item_stream",
    "items",
    "json_lines",
    "kafka",
    "long_stream",
    "parquet_rows",
    "socket_lines",
    "source_from",
    "sql_changes",
    "sql_rows",
    "stream_from_processor",
    "stream_of",
    "stream_source_from",
    "text_files",
    "watch_files",
]

_HOMES = {
    "Generate": "dstream.connectors.memory",
    "Items": "dstream.connectors.memory",
    "ItemsSplit": "dstream.connectors.memory",
    "Iterate": "dstream.connectors.memory",
    "KafkaRecord": "dstream.connectors.kafka.consumers",
    "Range": "dstream.connectors.memory",
    "SimpleEvent": "dstream.connectors.functions",
    "avro_records": "dstream.sources.tabular_files",
    "csv_rows": "dstream.sources.tabular_files",
    "files": "dstream.sources.filesystem",
    "from_processor": "dstream.sources.functions",
    "icache": "dstream.sources.collections",
    "icache_journal": "dstream.sources.collections",
    "ilist": "dstream.sources.collections",
    "imap": "dstream.sources.collections",
    "imap_journal": "dstream.sources.collections",
    "item_stream": "dstream.sources.memory",
    "items": "dstream.sources.memory",
    "json_lines": "dstream.sources.filesystem",
    "kafka": "dstream.sources.topics",
    "long_stream": "dstream.sources.memory",
    "parquet_rows": "dstream.sources.tabular_files",
    "socket_lines": "dstream.sources.sockets",
    "source_from": "dstream.sources.functions",
    "sql_changes": "dstream.sources.sql",
    "sql_rows": "dstream.sources.sql",
    "stream_from_processor": "dstream.sources.functions",
    "stream_of": "dstream.sources.memory",
    "stream_source_from": "dstream.sources.functions",
    "text_files": "dstream.sources.filesystem",
    "watch_files": "dstream.sources.filesystem",
}
"""The modules of the names; each is loaded when a name of it is requested."""


if not TYPE_CHECKING:  # A type checker would take it for every name.

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            from dstream.suggestions.packages import no_such_name  # lazily: only a mistaken name needs it

            raise no_such_name("sources", name, sys._getframe(1))
        # A name that the module has is found without a call of this function.
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
