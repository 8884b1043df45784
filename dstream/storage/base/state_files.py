"""Files of the state of a job in a folder or an object store, below `jobs/<id>/state`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dstream.errors import IllegalStateError
from dstream.spi.records import StateFile
from dstream.storage.base.folders import NamedFolder, Trust
from dstream.storage.base.options import check_record
from dstream.storage.codec.pickles import Pickles, check_are_loaded, for_state

__all__ = ["LakeStateFiles"]


@dataclass(frozen=True, slots=True)
class LakeStateFiles:
    """The files of one job, as a value that travels.

    Attributes:
        folder: that of the storage, by the name of the state.
        place: the path of the state in it.
        pickles: which pickles are loaded, as it was judged where the job began.
    """

    folder: NamedFolder
    place: str
    pickles: Pickles

    @staticmethod
    def of(trust: Trust, job: str) -> LakeStateFiles:
        """Look at who could write into the folder, and return the files in it.

        Raises:
            IllegalStateError: it is a symbolic link.
            TypeError: no pickles are loaded from here.
        """
        place = f"jobs/{job}/state"
        check_record(place)
        title = f"the state of the job {job}"
        try:
            pickles = trust.in_folders(place)
        except OSError as error:
            raise IllegalStateError(f"{title} is not read: {error}") from error
        check_are_loaded(pickles, title)
        return LakeStateFiles(NamedFolder(trust.folder, title), place, pickles)

    @property
    def title(self) -> str:
        """What errors call it."""
        return f"{self.folder.title} in {self.folder.url}/{self.place}"

    def write(self, name: str, data: bytes) -> None:
        """Write a new file."""
        with self.folder.writing(f"{self.place}/{name}") as file:
            file.write(data)

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return a part of a file."""
        return self.folder.read_part(f"{self.place}/{name}", offset, length)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self.folder.delete(f"{self.place}/{name}")

    def found(self) -> Iterator[StateFile]:
        """List all files."""
        start = len(self.place) + 1
        return (StateFile(file.path[start:], file.written_at) for file in self.folder.found(self.place))

    def dump(self, value: Any) -> bytes:
        """Pickle a value."""
        return for_state(self.pickles).dump(value)

    def load(self, data: bytes) -> Any:
        """Load a pickle."""
        return for_state(self.pickles).load(data)
