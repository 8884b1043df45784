"""`ItemWriter`: the part of a job that writes items in the tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_staging import StagedRows
from dstream.storage.lake.lake_tables import ROWS_IN_GROUP, DataWriter, Layout, in_parts, write_parts
from dstream.storage.portions import Portions

__all__ = ["ItemWriter"]


@dataclass(frozen=True, slots=True)
class ItemWriter:
    """Writes the items of a task into one new file, which nobody sees before the commit.

    Attributes:
        folder: where the file goes.
        layout: its columns; a type that is open is decided by the first items.
        prefix: how the names of this job's files begin.
        begun: the newest commit when the job began.
    """

    folder: Folder
    layout: Layout
    prefix: str
    begun: int

    def check_item(self, item: Any) -> None:
        """Refuse an item that the list does not take."""
        self.layout.codec.checked(None, item)

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        """Write the items in their order; give one receipt, or none if there are no items."""
        return ((begun, types, tuple(file), None) for begun, types, file, _ in self.rows(items))

    def rows(self, items: Iterator[Any]) -> Iterator[StagedRows]:
        """Do the same; give what the receipt says."""
        portions = Portions(items, ROWS_IN_GROUP)
        part = portions.take()
        if not part:
            return
        layout = replace(self.layout, codec=self.layout.codec.decided_by([], part))
        if not portions.has_more():
            parts = in_parts(partial(_batch, layout), part)
            yield StagedRows(self.begun, layout.codec.to_json(), write_parts(self.folder, parts, 0, self.prefix))
            return
        with DataWriter(self.folder, layout.schema, 0, self.prefix) as writer:
            while part:
                for batch in in_parts(partial(_batch, layout), part):
                    writer.write(batch)
                    portions.learn(batch.num_rows, batch.nbytes)
                    del batch
                part.clear()
                part = portions.take()
        yield StagedRows(self.begun, layout.codec.to_json(), writer.file)


def _batch(layout: Layout, items: Sequence[Any]) -> Any:
    for item in items:
        layout.codec.checked(None, item)
    return layout.items(items)
