"""`NoTable`: a collection whose content becomes no table."""

from __future__ import annotations

from abc import abstractmethod
from typing import NoReturn

from dstream.distributed.collection import Collection
from dstream.errors import UnsupportedError
from dstream.spi import MapStore

__all__ = ["NoTable"]


class NoTable(Collection[MapStore]):
    """What counters and queues have in common."""

    @abstractmethod
    def _why_no_table(self) -> str:
        """Say why, and what to do instead."""
        ...

    def to_arrow(self) -> NoReturn:
        """Refuse: the content is no table.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(self._why_no_table())

    def to_df(self) -> NoReturn:
        """Refuse, as `to_arrow`.

        Raises:
            UnsupportedError: always.
        """
        self.to_arrow()

    def to_pandas(self) -> NoReturn:
        """Refuse, as `to_arrow`.

        Raises:
            UnsupportedError: always.
        """
        self.to_arrow()
