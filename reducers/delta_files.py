"""Files of a table of Delta: Parquet, and of each column its type as Delta calls it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from reducers.column_forms import UNKNOWN
from reducers.file_formats import ColumnTypes, Compression
from reducers.item_columns import ItemColumns, Wanted
from reducers.parquet_files import PARQUET_CODECS, ParquetContent
from reducers.scalar_forms import Form, Moment

__all__ = ["DeltaContent", "DeltaFormat"]


@dataclass(frozen=True, slots=True)
class DeltaFormat:
    """Files that are read through the log of their table.

    Attributes:
        wanted: the columns; unset, those of the first item of each file.
        compression: of the columns in the file; unset, the one that all programs read.
        partitions: the columns that name folders; the log has them, and not the file.
    """

    wanted: Wanted | None
    compression: Compression | None
    partitions: tuple[str, ...] = ()

    suffix = ".parquet"
    piece = 16_384

    @property
    def is_known(self) -> bool:
        """Whether the columns are known without an item."""
        return self.wanted is not None

    def columns(self) -> ColumnTypes:
        """Return the columns that are known without an item; none if the type of one is not."""
        names, forms = (self.wanted.names, self.wanted.forms) if self.wanted is not None else ((), ())
        columns = {name: type_in_delta(name, form) for name, form in zip(names, forms, strict=True)}
        return columns if all(columns.values()) else {}

    def content(self, file: IO[bytes], limit: int, held: int, known: dict[str, Any]) -> DeltaContent:
        """Begin a file; the limit is that of its values in memory."""
        made = DeltaContent(self.wanted, file, PARQUET_CODECS[self.compression], limit, held, known)
        made.partitions = self.partitions
        return made

    def check_item(self, item: Any) -> None:
        """Refuse an item that has no such columns."""
        ItemColumns(self.wanted).of([item])


class DeltaContent(ParquetContent):
    """One file. A column that has nothing but None so far is left out, which readers take for None."""

    partitions: tuple[str, ...] = ()
    _left_out: tuple[str, ...] = ()

    def begin(self, forms: dict[str, Form], schema: Any) -> None:
        """Begin the file.

        Raises:
            TypeError: a column has a name or a type that Delta has not.
        """
        self._types(forms)
        self._left_out = (*self.partitions, *(name for name, form in forms.items() if not _is_shown(form)))
        super().begin(forms, self._kept(schema))

    def _kept(self, schema: Any) -> Any:
        import pyarrow as pa

        kept = [column for column in schema if column.name not in self._left_out]
        if not kept:
            raise TypeError("a file of Delta needs a column that is neither one of partition_by nor None in all items")
        return pa.schema(kept)

    def write_group(self, rows: Any) -> None:
        """Write a row group."""
        super().write_group(rows.drop_columns([name for name in self._left_out if name in rows.column_names]))

    def finish(self) -> ColumnTypes:
        """Write what waits, and the metadata."""
        super().finish()
        return self._types(self._columns.forms)

    def write(self, items: Sequence[Any]) -> int:
        """Take the first items, as many as fit."""
        taken = super().write(items)
        for name in self.partitions:
            if name not in self._columns.forms:
                raise TypeError(f"partition_by of format='delta' names columns, and {name!r} is none of them")
        return taken

    def _types(self, forms: dict[str, Form]) -> ColumnTypes:
        return {name: type_in_delta(name, form) for name, form in forms.items()}


def _is_shown(form: Form) -> bool:
    return form not in (UNKNOWN, Moment(None))


def type_in_delta(name: str, form: Form) -> str:
    """Return the type of a column as Delta calls it; empty if no value has shown it.

    Raises:
        TypeError: Delta has no such type, or no such name.
    """
    from dstream.values.delta_format import delta_field

    _check_name(name)
    if not _is_shown(form):
        return ""
    try:
        kind = delta_field(name, form.arrow)["type"]
    except KeyError:
        raise TypeError(f"the column {name!r} is one of {form.words}, for which Delta has no type: {_BEFORE}") from None
    _check_names(kind)
    return kind if isinstance(kind, str) else json.dumps(kind, sort_keys=True)


_BEFORE = "map() the items to numbers or texts before, or say types that are open with a class in columns="


def _check_names(kind: Any) -> None:
    if isinstance(kind, dict):
        for field in kind.get("fields", ()):
            _check_name(field["name"])
            _check_names(field["type"])
        _check_names(kind.get("elementType"))


def _check_name(name: str) -> None:
    if not name or set(name) & set(" ,;{}()\n\t="):
        raise TypeError(
            f"Delta has no blanks, none of ,;{{}}()= and no line breaks in names of columns, as in {name!r}"
        )
