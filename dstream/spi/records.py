"""`Records` and `StateFiles`: job records and job state beside the collections of a storage.

Every storage has records, as `Storage.records`. One conformance suite, `tests/storage/conformance/test_records.py`,
tests the contract of each. Every storage has state files as `Storage.state_files`, or an error that gives the reason
why not. They are sent pickled to tasks, which write and read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

__all__ = ["Record", "Records", "StateFile", "StateFiles"]


class Record(NamedTuple):
    """The contents of a name.

    Attributes:
        version: 1 for the first, then one more with each replacement.
        data: what was written.
    """

    version: int
    data: bytes


class Records(Protocol):
    """Small named values that any process may read and replace; each replacement has the next version.

    A name is one or several parts of 1 to 64 of the characters a-z, 0-9 and -, with a slash between them. A write that
    was acknowledged survives a SIGKILL of any process. Readers and writers see all that was acknowledged before they
    began, and never half of it.

    Every method raises an IllegalStateError if the stored bytes are not what was written, and an
    EngineError if the storage fails; both name the record. A TypeError or ValueError reports a wrong argument.
    """

    def read(self, name: str) -> Record | None:
        """Return the record under a name; None if there is none."""
        ...

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Write the next version of a record, unless another process has written it.

        Args:
            name: the name of the record.
            data: at most 64 MB.
            version: 1 for a record that must not exist yet; otherwise the version that was read plus 1.

        Returns:
            False if the record does not have the version before this one, so that nothing was changed. Of several
            concurrent writers of the same version, one gets True.

        Raises:
            EngineError: the storage fails, and whether this was written is not known; `read` returns what is stored.
        """
        ...

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with `prefix`, sorted."""
        ...

    def remove(self, name: str) -> None:
        """Remove a record; its next version is 1 again. A missing record is no error."""
        ...

    def forget(self, name: str) -> None:
        """Remove a record without a trace, as one of many that are written once each.

        A writer that was paused for long may then still write its version 1, as if the record had never existed: only
        for names that have a meaning only if another record refers to them. A missing record is no error.
        """
        ...


class StateFile(NamedTuple):
    """A stored file, whether an index names it or not.

    Attributes:
        name: as passed to `write`.
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
        """The title of all these files in errors, such as `the state of the job sales`."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Write a file of a name that was never used. A process that dies meanwhile may leave a part of it.

        The name is published only after this has returned, so no reader sees a part.
        """
        ...

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return `length` bytes of a file, or fewer where it ends.

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
        """Load the result of `dump`.

        Raises:
            TypeError: a class in it is not allowed in this storage, or does not exist.
        """
        ...
