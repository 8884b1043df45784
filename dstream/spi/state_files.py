"""`StateFiles`: where the state of one job stands, as files that are written once and never changed.

Every storage has them as `Storage.state_files`, or says why not. They travel pickled to tasks, which write and read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

__all__ = ["StateFile", "StateFiles"]


class StateFile(NamedTuple):
    """A file that stands there, whether anybody names it or not.

    Attributes:
        name: as it was given to `write`.
        written_at: when, in seconds since 1970.
    """

    name: str
    written_at: float


class StateFiles(Protocol):
    """The files of the state of one job.

    A name is a relative path: parts of the characters a-z, 0-9 and - with a slash between them. What `write` has
    returned from survives what the storage was connected to survive. Every method raises an EngineError if the storage
    fails; it names the job and the file.
    """

    @property
    def title(self) -> str:
        """What errors call all of it, such as `the state of the job sales`."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Write a file of a name that was never used. A process that dies meanwhile may leave a part of it.

        Nobody knows the name before this has returned, so nobody reads a part.
        """
        ...

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return so many bytes of a file, or fewer where it ends.

        Raises:
            FileNotFoundError: there is no such file.
        """
        ...

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone is no error."""
        ...

    def found(self) -> Iterator[StateFile]:
        """List all files; it may take long."""
        ...

    def dump(self, value: Any) -> bytes:
        """Pickle a value, as far as this storage would load it again.

        Raises:
            TypeError: the value cannot be pickled, or would not be loaded.
        """
        ...

    def load(self, data: bytes) -> Any:
        """Load what `dump` returned.

        Raises:
            TypeError: a class in it is not loaded from this storage, or is not there.
        """
        ...
