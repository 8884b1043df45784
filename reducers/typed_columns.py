"""The columns of a file whose values have types: what is known of them so far, and which item does not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dstream.values.blaming import failed_on, shown
from reducers.file_formats import ColumnTypes
from reducers.item_columns import ItemColumns, Wanted
from reducers.scalar_forms import Form, Misfit

__all__ = ["TypedColumns"]


class TypedColumns:
    """Columns, from the first item of a file on.

    Attributes:
        forms: of each column, by name; empty until there is an item, unless they are given.
    """

    def __init__(self, wanted: Wanted | None) -> None:
        self._columns = ItemColumns(wanted)
        self.forms: dict[str, Form] = {} if wanted is None else _by_name(wanted)

    def taken(self, items: Sequence[Any]) -> list[Sequence[Any]]:
        """Return the values of the items, column by column; the forms take them.

        Raises:
            TypeError: an item has other columns, or a value does not fit its column.
        """
        columns = self._columns.of(items)
        self.forms = self.forms or _by_name(self._columns.begin(items[0]))
        for (name, form), values in zip(self.forms.items(), columns, strict=True):
            self.forms[name] = _of_each(name, form, values, items, lambda known, found: known.taking(found))
        return columns

    def arrays(self, columns: Sequence[Sequence[Any]], items: Sequence[Any]) -> list[Any]:
        """Return the values of the items, which were taken, as arrays of Arrow.

        Raises:
            TypeError: a value does not fit its column.
        """
        return [
            _of_each(name, form, values, items, lambda known, found: known.array(found))
            for (name, form), values in zip(self.forms.items(), columns, strict=True)
        ]

    def types(self) -> ColumnTypes:
        """Return what is known of the columns, in words."""
        return {name: form.words for name, form in self.forms.items()}

    def refuse_what_changed(self, before: dict[str, Form], items: Sequence[Any]) -> None:
        """Refuse items that tell more of a column than the file says which was begun without them.

        Raises:
            TypeError: a column had nothing but None so far.
        """
        for name, form in self.forms.items():
            if before[name].words != form.words:
                error = TypeError(
                    f"the column {name!r} becomes one of {form.words} here, and the file was begun when it had nothing "
                    "but None or what is empty: say its type, with a class in columns="
                )
                failed_on(error, items[0])
                raise error


def _by_name(wanted: Wanted) -> dict[str, Form]:
    return dict(zip(wanted.names, wanted.forms, strict=True))


def _of_each(name: str, form: Form, values: Sequence[Any], items: Sequence[Any], what: Callable[..., Any]) -> Any:
    """Do something with all values of a column; if one of them does not fit, say which."""
    try:
        return what(form, values)
    except Misfit:
        for value, item in zip(values, items, strict=True):
            try:
                form = form.taking([value])
                form.array([value])
            except Misfit as misfit:
                error = TypeError(f"the column {name!r} has no place for {_kind(value)}: {misfit}")
                failed_on(error, item)
                raise error from None
        raise


def _kind(value: Any) -> str:
    return f"{type(value).__qualname__} {shown(value)}"
