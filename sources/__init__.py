"""Where the items of a stream come from.

Files: `text_files`, `json_lines`, `csv_rows`, `parquet_rows`. Memory: `Items`, `Range`, `Iterate`,
`Generate`, which the factories of `dstream.Stream` use. Each one is a `dstream.spi.Source`;
`docs/how-to/write-a-source.md` adds another in 30 lines.
"""

from sources.csv_files import csv_rows
from sources.jsonlines import json_lines
from sources.memory import Generate, Items, ItemsSplit, Iterate
from sources.parquet import parquet_rows
from sources.ranges import Range
from sources.text import text_files

__all__ = [
    "Generate",
    "Items",
    "ItemsSplit",
    "Iterate",
    "Range",
    "csv_rows",
    "json_lines",
    "parquet_rows",
    "text_files",
]
