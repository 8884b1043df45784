"""Where the items of a stream come from.

Files: `text_files`, `json_lines`, `csv_rows`, `parquet_rows`, `avro_records`, `files`. Systems: `sql_rows`, `kafka`,
`socket_lines`. What never ends: `watch_files`, `imap_journal`, `sql_changes`. Collections: `imap`, `icache`, `ilist`.
Your own: `source_from`, `stream_source_from`, `from_processor`, `stream_from_processor`.
Memory and the clock: `items`, `stream_of`, `item_stream`, `long_stream`; `Items`, `Range`, `Iterate`, `Generate`, which
the factories of `dstream.Stream` use. Each one is a `dstream.spi.Source` or a `StreamSource`;
`dstream docs write-a-source` adds another in 30 lines.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sources.generated import Generate, Iterate
from sources.memory import Items, ItemsSplit, items
from sources.ranges import Range

if TYPE_CHECKING:
    from sources.avro import avro_records
    from sources.csv_files import csv_rows
    from sources.from_functions import source_from, stream_source_from
    from sources.from_processors import from_processor, stream_from_processor
    from sources.item_streams import item_stream, long_stream, stream_of
    from sources.journals import icache_journal, imap_journal
    from sources.jsonlines import json_lines
    from sources.kafka_ranges import KafkaRecord
    from sources.kafka_topics import kafka
    from sources.paced_items import SimpleEvent
    from sources.parquet import parquet_rows
    from sources.socket_source import socket_lines
    from sources.sql_changing import sql_changes
    from sources.sql_queries import sql_rows
    from sources.stored import icache, ilist, imap
    from sources.text import text_files
    from sources.watched_files import watch_files
    from sources.whole_files import files

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

_LATER = {
    "KafkaRecord": "sources.kafka_ranges",
    "SimpleEvent": "sources.paced_items",
    "avro_records": "sources.avro",
    "csv_rows": "sources.csv_files",
    "files": "sources.whole_files",
    "from_processor": "sources.from_processors",
    "icache": "sources.stored",
    "icache_journal": "sources.journals",
    "ilist": "sources.stored",
    "imap": "sources.stored",
    "imap_journal": "sources.journals",
    "item_stream": "sources.item_streams",
    "json_lines": "sources.jsonlines",
    "kafka": "sources.kafka_topics",
    "long_stream": "sources.item_streams",
    "parquet_rows": "sources.parquet",
    "socket_lines": "sources.socket_source",
    "source_from": "sources.from_functions",
    "sql_changes": "sources.sql_changing",
    "sql_rows": "sources.sql_queries",
    "stream_from_processor": "sources.from_processors",
    "stream_of": "sources.item_streams",
    "stream_source_from": "sources.from_functions",
    "text_files": "sources.text",
    "watch_files": "sources.watched_files",
}
"""Where the sources of files and collections stand. They come when they are asked for: `import dstream` needs none."""


if not TYPE_CHECKING:  # A type checker would take it for every name.

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            from dstream.spi.wrong_names import no_such_name  # here: only who mistakes a name needs it

            raise no_such_name("sources", name, sys._getframe(1))
        found = globals()[name] = getattr(import_module(_LATER[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted(__all__)
