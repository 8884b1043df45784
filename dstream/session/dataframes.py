"""Arguments of `from_df` and `from_streaming_df`: tables of this process, DataFrames of Spark, classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dstream.base.showing import repeated
from dstream.errors import UnsupportedError
from dstream.failures import shown
from dstream.plan import Step, Table, call_site
from dstream.spi import Source

__all__ = ["from_df_label", "is_table_here", "items_of_columns", "table_node", "table_rows"]


def is_table_here(df: object) -> bool:
    """Return whether `df` is a table in this process: a pandas DataFrame, or an object with Arrow columns."""
    # A method that DataFrames of Spark have; their class would have to be imported.
    if hasattr(df, "mapInArrow"):
        return False
    return hasattr(df, "__arrow_c_stream__") or (hasattr(df, "itertuples") and hasattr(df, "columns"))


def table_rows(df: Any, kind: Any) -> Source[Any]:
    """Return the rows of a table of this process as a source, each as a dictionary or a `kind`."""
    from dstream.connectors.dataframes import rows_of_table, table_of  # lazily: the sources are imported on first use

    return rows_of_table(table_of(df, kind), kind, from_df_label(df, kind))


def table_node(df: Any, kind: Any, engine: str) -> Table:
    """Return the node of the rows of a DataFrame of Spark."""
    made = items_of_columns(df, kind)
    if engine == "local":
        raise UnsupportedError("the local engine has no DataFrames of Spark: connect() with the Spark engine")
    return Table(df, made, step=Step(from_df_label(df, kind), call_site()))


def items_of_columns(df: Any, kind: Any) -> Any:
    """Return a function that makes a `kind` of each row of a Spark DataFrame; None: rows are not converted."""
    columns = _columns_of(df)
    if kind is None:
        return None
    from dstream.connectors.dataframes import items_of_table  # lazily: the sources are imported on first use

    return items_of_table(kind, columns, from_df_label(df, kind))


def _columns_of(df: Any) -> list[str]:
    """Return the names of the columns of `df` if it is a Spark DataFrame; Spark is not loaded for that."""
    columns = getattr(df, "columns", None)
    if not hasattr(df, "mapInArrow") or not isinstance(columns, list):
        hint = ": stream(...) takes the items of an iterable" if isinstance(df, Iterable) else ""
        raise TypeError(
            "df must be a DataFrame of Spark or pandas, or have Arrow's __arrow_c_stream__, not "
            f"{type(df).__name__}{hint}"
        )
    if twice := repeated(columns):
        raise ValueError(f"the DataFrame has more than one column {twice}: rename them before")
    return columns


def from_df_label(df: object, kind: Any) -> str:
    """Return the call of `from_df` in short."""
    name = getattr(kind, "__qualname__", shown(kind)).rpartition("<locals>.")[2]
    return f"from_df({type(df).__name__}{'' if kind is None else f', {name}'})"
