"""Items that rows of a table become: what `parquet_rows` makes of the same table, or refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.errors import SourceError
from dstream.spi import Misread
from dstream.values import BadRecord
from dstream.values.blaming import shown
from sources.arrow_items import names_read
from sources.arrow_values import UnreadRow
from sources.forms import FormOfItem, Unfit
from sources.kinds import BINARY, form_of, missing_columns
from sources.quick_makers import maker_of_rows
from sources.record_files import OnMisread

__all__ = ["TableItems", "fail", "items_of_table", "misread_row"]


def items_of_table(kind: Any, columns: Sequence[str], call: str) -> TableItems:
    """Return what makes a `kind` of each row of a table with these columns.

    Args:
        kind: a dataclass, a named tuple, a TypedDict or a pydantic model.
        columns: all that there are.
        call: names the table in messages.

    Raises:
        TypeError: it is none of these, has a field of a type that no value of a table becomes, or one without a column
            and without a default.
    """
    form = form_of(kind, BINARY)
    if missing := missing_columns(form, columns):
        there = f"; there are {', '.join(columns)}" if columns else ""
        raise TypeError(f"{call}: the table has no column for {', '.join(missing)} of {form.expected}{there}")
    # A table says by a column how many rows it has, also where no field has one.
    return TableItems(form, tuple(names_read(form, columns) or columns[:1]), call)


@dataclass(frozen=True, slots=True)
class TableItems:
    """Makes items of rows. It travels to workers.

    Attributes:
        form: what each becomes.
        names: those of the columns that are read.
        call: how the user has named the table.
    """

    form: FormOfItem
    names: tuple[str, ...]
    call: str

    def made(
        self,
        batches: Iterable[Sequence[Sequence[Any]] | UnreadRow],
        first: int | None = None,
        misread: OnMisread | None = None,
    ) -> Iterator[Any]:
        """Give the items of some rows.

        Args:
            batches: the values of each column, as Parquet has them, of some rows after another.
            first: the number of the first row; None: rows come in no order.
            misread: gives what takes the place of a row that becomes no item; None: it is an error.

        Raises:
            SourceError: a row becomes no item.
        """
        misread = misread or fail
        make, number = maker_of_rows(self.form, self.names), first
        for columns in batches:
            if isinstance(columns, UnreadRow):
                yield from misread(misread_row(self.call, number, columns.row, columns.problem))
                number = None if number is None else number + 1
                continue
            for values in zip(*columns, strict=True):
                try:
                    made = make(values)  # A failure would name what is called `item`, which is the one before.
                except Unfit as error:
                    row = dict(zip(self.names, values, strict=True))
                    yield from misread(misread_row(self.call, number, row, error))
                else:
                    yield made
                number = None if number is None else number + 1


def misread_row(call: str, number: int | None, row: dict[str, Any], problem: Unfit) -> Misread:
    """Return what is said of a row that becomes no item.

    Args:
        call: names the table.
        number: of the row, from 1; None: rows come in no order.
        row: its values by their columns.
        problem: what is wrong.
    """
    place = "" if number is None else f", row {number:,}"
    seen = problem.plain()

    def error() -> SourceError:
        found = SourceError(f"{call}{place}: {problem.said('column')}: {shown(row)}")
        found.__cause__ = seen
        return found

    return Misread(seen, lambda: BadRecord(call, number or 0, repr(row)), error)


def fail(misread: Misread) -> Iterable[Any]:
    """Raise the error of a bad row."""
    raise misread.error()
