"""Hints for unknown names of contexts: `ctx.textFile`, `ctx.parallelize`, `ctx.streem`."""

from __future__ import annotations

from dstream.suggestions.streams import meant_by

__all__ = ["no_such_name"]


_TEXTS = "read(text_files(path))"
_SOURCES = (
    "avro_records",
    "csv_rows",
    "files",
    "from_processor",
    "icache",
    "ilist",
    "imap",
    "items",
    "json_lines",
    "kafka",
    "parquet_rows",
    "socket_lines",
    "source_from",
    "sql_rows",
    "text_files",
)
_MEANT = {
    "broadcast": "a variable that your function captures",
    "cache": "get_cache(name)",
    "createdataframe": "stream(items), from_df(df)",
    "emptyrdd": "stream([])",
    "fromarrow": "from_df(df)",
    "fromiterable": "stream(items)",
    "frompandas": "from_df(df)",
    "frompolars": "from_df(df)",
    "list": "get_list(name)",
    "load": "read(source)",
    "map": "get_map(name)",
    "of": "stream(items)",
    "parallelize": "stream(items)",
    "accumulator": "get_counter(name)",
    "counter": "get_counter(name)",
    "getatomiclong": "get_counter(name)",
    "longaccumulator": "get_counter(name)",
    "queue": "get_queue(name)",
    "range": "stream(range(start, stop))",
    "readcsv": "read(csv_rows(path))",
    "readjson": "read(json_lines(path))",
    "readparquet": "read(parquet_rows(path))",
    "readtext": _TEXTS,
    "set": "get_set(name)",
    "shutdown": "close()",
    "sparkcontext": "spark.sparkContext",
    "sql": "from_df(ctx.spark.sql(query))",
    "stop": "close()",
    "table": "from_df(ctx.spark.table(name))",
    "textfile": _TEXTS,
    "wholetextfiles": _TEXTS,
    **{name.replace("_", ""): f"read({name}(...))" for name in _SOURCES},
}
"""By their `plain` form: without underscores, in small letters."""


def no_such_name(cls: type, name: str) -> str:
    """Say that a context has no attribute of this name, and which one is probably meant."""
    meant = "" if name.startswith("_") else meant_by(cls, name, _MEANT)
    return f"a Context has no {name!r}" + (f"; use {meant}" if meant else "")
