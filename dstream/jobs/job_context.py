"""`JobContext`: what a job needs of the context that it was submitted to."""

from __future__ import annotations

from typing import Protocol

from dstream.spi import Runtime, Storage

__all__ = ["JobContext"]


class JobContext(Runtime, Protocol):
    """An engine, and a storage."""

    def renew_engine(self) -> None:
        """Let go of an engine that has lost what it runs on, such as Java; the next run starts another one."""
        ...

    def elsewhere(self, storage: str) -> JobContext:
        """Return the same with another storage."""
        ...

    def running_storage(self) -> Storage:
        """Return the storage, opened if it was not.

        Raises:
            IllegalStateError: the context is closed.
        """
        ...
