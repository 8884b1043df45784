"""Files of columns: what Parquet and Avro have in common. Items wait until there are enough bytes of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

from reducers.file_formats import ColumnTypes
from reducers.item_columns import Wanted
from reducers.scalar_forms import Form, Misfit, Moment
from reducers.typed_columns import TypedColumns

__all__ = ["ColumnContent"]


class ColumnContent(ABC):
    """Collects rows of one file, and writes them in groups. The types of the columns are fixed with the first group.

    Attributes:
        file: takes the bytes.
        codec: how they are compressed.
    """

    def __init__(
        self, wanted: Wanted | None, file: IO[bytes], codec: str, limit: int, held: int, known: dict[str, Form]
    ) -> None:
        self.file = file
        self.codec = codec
        self._columns = TypedColumns(wanted)
        self._limit = limit
        self._most_held = held
        self._known = known
        self._waiting: list[list[Any]] = []
        self._held = 0
        self._size = 0
        self._begun: dict[str, Form] | None = None

    @abstractmethod
    def begin(self, forms: dict[str, Form], schema: Any) -> None:
        """Write what stands before the first group."""

    @abstractmethod
    def write_group(self, rows: Any) -> None:
        """Write a table of rows."""

    @abstractmethod
    def end(self) -> None:
        """Write what stands behind the last group."""

    def write(self, items: Sequence[Any]) -> int:
        """Take the first items, as many as fit.

        Raises:
            TypeError: an item has other columns, or a value does not fit its column.
        """
        columns = self._columns.taken(items)
        arrays = self._columns.arrays(columns, items)
        if self._begun is not None:
            self._columns.refuse_what_changed(self._begun, items)
        self._known.update({name: form for name, form in self._columns.forms.items() if not _is_open(form)})
        count = self._fitting(arrays)
        if count:
            arrays = [array[:count] for array in arrays]
            self._waiting.append([_settled(array, values) for array, values in zip(arrays, columns, strict=True)])
            grown = _bytes(arrays)
            self._held += grown
            self._size += grown
        if self._held >= self._most_held:
            self._write_waiting()
        return count

    def _fitting(self, arrays: list[Any]) -> int:
        """Return how many rows fit; of an empty file at least one."""
        count = len(arrays[0])
        while self._size + _bytes([array[:count] for array in arrays]) > self._limit:
            count //= 2
            if count == 0:
                return 0 if self._size else 1
        return count

    def _write_waiting(self) -> None:
        import pyarrow as pa

        if self._begun is None:
            self._use_what_is_known()
        forms = self._columns.forms
        schema = pa.schema([(name, form.arrow) for name, form in forms.items()])
        if self._begun is None:
            self.begin(forms, schema)
            self._begun = dict(forms)
        if self._waiting:
            pieces = [_fitted(each, list(forms.values()), schema) for each in self._waiting]
            self.write_group(pa.Table.from_batches(pieces))
        self._waiting, self._held = [], 0

    def _use_what_is_known(self) -> None:
        """Give columns without a type that of another file of the task, as `partition_by` makes one of None alone."""
        for place, (name, form) in enumerate(self._columns.forms.items()):
            other = self._known.get(name, form)
            if _is_open(form) and other != form:
                with suppress(Misfit):  # Then the commit says that the files do not fit.
                    for piece in self._waiting:
                        other.taking(piece[place] if isinstance(piece[place], Sequence) else [])
                    self._columns.forms[name] = other

    def finish(self) -> ColumnTypes:
        """Write what waits, and the end."""
        if self._waiting or self._begun is None:
            self._write_waiting()
        self.end()
        return self._columns.types()

    @abstractmethod
    def discard(self) -> None:
        """Leave the file as it is: it will be removed."""


def _bytes(arrays: list[Any]) -> int:
    return sum(array.nbytes for array in arrays)


def _settled(array: Any, values: Sequence[Any]) -> Any:
    """Return an array or, where it holds nothing yet whose type is known, the values that it was made of.

    Arrow casts lists of None wrongly (pyarrow 26: to their own type), so what becomes known later is made anew.
    """
    return array if _is_settled(array.type) else values[: len(array)]


def _is_settled(kind: Any) -> bool:
    import pyarrow as pa

    inner = (kind.field(place).type for place in range(kind.num_fields))
    return not pa.types.is_null(kind) and all(map(_is_settled, inner))


def _is_open(form: Form) -> bool:
    """Say whether its values have not shown what a column is of."""
    return form == Moment(None) or not _is_settled(form.arrow)


def _fitted(parts: Sequence[Any], forms: Sequence[Form], schema: Any) -> Any:
    """Return a piece of rows in the types that the columns have now."""
    import pyarrow as pa

    arrays = [
        part.cast(form.arrow) if isinstance(part, pa.Array) else form.array(part)
        for part, form in zip(parts, forms, strict=True)
    ]
    return pa.record_batch(arrays, schema)
