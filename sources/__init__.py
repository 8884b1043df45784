"""Where the items of a stream come from.

Files: `text_files`, `json_lines`, `csv_rows`, `parquet_rows`. Brokers: `kafka`. Collections: `imap`, `icache`,
`ilist`. Memory: `items`; `Items`, `Range`, `Iterate`, `Generate`, which the factories of `dstream.Stream` use. Each one
is a `dstream.spi.Source`; `docs/how-to/write-a-source.md` adds another in 30 lines.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sources.memory import Generate, Items, ItemsSplit, Iterate, items
from sources.ranges import Range

if TYPE_CHECKING:
    from sources.csv_files import csv_rows
    from sources.jsonlines import json_lines
    from sources.kafka_ranges import KafkaRecord
    from sources.kafka_topics import kafka
    from sources.parquet import parquet_rows
    from sources.stored import icache, ilist, imap
    from sources.text import text_files

__all__ = [
    "Generate",
    "Items",
    "ItemsSplit",
    "Iterate",
    "KafkaRecord",
    "Range",
    "csv_rows",
    "icache",
    "ilist",
    "imap",
    "items",
    "json_lines",
    "kafka",
    "parquet_rows",
    "text_files",
]

_LATER = {
    "KafkaRecord": "sources.kafka_ranges",
    "csv_rows": "sources.csv_files",
    "icache": "sources.stored",
    "ilist": "sources.stored",
    "imap": "sources.stored",
    "json_lines": "sources.jsonlines",
    "kafka": "sources.kafka_topics",
    "parquet_rows": "sources.parquet",
    "text_files": "sources.text",
}
"""Where the sources of files and collections stand. They come when they are asked for: `import dstream` needs none."""


if not TYPE_CHECKING:  # A type checker would take it for every name.

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module 'sources' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_LATER[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted(__all__)
