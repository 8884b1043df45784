"""What the driver knows of a file that a task has written, from its receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dstream.errors import IllegalStateError
from dstream.spi import Receipt
from reducers.file_formats import ColumnTypes
from reducers.folder_state import FOLDER, STAGED, FolderState
from reducers.places import HIDDEN

__all__ = ["Staged", "check_staged", "checked_receipt"]


@dataclass(frozen=True, slots=True)
class Staged:
    """What a task wrote.

    Attributes:
        name: of the file, below the hidden folder.
        size: in bytes.
        folder: below the target, with a slash at its end; empty for the target itself.
        columns: what stands in the file.
        items: how many; -1 in a receipt of a run before this was counted.
    """

    name: str
    size: int
    folder: str
    columns: ColumnTypes
    items: int

    def receipt(self) -> list[Receipt]:
        """Return what `checked_receipt` makes this of."""
        return [self.name, self.size, self.folder, dict(self.columns), self.items]


def checked_receipt(receipt: Receipt, folder: FolderState) -> Staged:
    """Return the parts of a receipt. It may have been kept anywhere, so it is input, and leads nowhere else."""
    match receipt:
        case [str(name), int(size), str(below), dict(columns), *count] if STAGED.fullmatch(name) and FOLDER.fullmatch(
            below
        ):
            kinds = {str(column): str(kind) for column, kind in columns.items()}
            return Staged(name, size, below, kinds, next((each for each in count if isinstance(each, int)), -1))
    raise IllegalStateError(f"{folder.path}: nothing was changed, since {receipt!r} is no receipt of a file")


def check_staged(staged: Sequence[tuple[str, int]], folder: FolderState) -> None:
    """Look whether what tasks wrote is there, by name and size.

    Raises:
        IllegalStateError: it is not, or not as it was written.
    """
    for name, size in staged:
        try:
            found = folder.place.size(f"{HIDDEN}/{name}")
        except FileNotFoundError as error:
            raise IllegalStateError(
                f"{folder.path}: nothing was changed, since what a task wrote is no more, or is on another machine: "
                "the folder must be one that all machines share"
            ) from error
        if found != size:
            raise IllegalStateError(
                f"{folder.path}: nothing was changed, since a task wrote {size:,} bytes, and {found:,} are there"
            )
