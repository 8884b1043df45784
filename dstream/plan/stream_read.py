"""`StreamRead`: a source without an end as a `Read` holds it; an epoch reads ranges of it in its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from dstream.errors import IllegalStateError
from dstream.spi import Split, StreamSource
from dstream.spi.service import OpenedLater
from dstream.spi.sink import Collections

__all__ = ["StreamRead"]


@dataclass(frozen=True, slots=True)
class StreamRead:
    """The source of a stage that never ends.

    Attributes:
        source: a `StreamSource`, or what becomes one when a context opens it.
    """

    source: Any

    ordered = True
    bounded = True
    """Each epoch reads ranges that end."""
    in_caller = False

    @property
    def stream(self) -> StreamSource[Any]:
        """Return the source, once it is open."""
        assert isinstance(self.source, StreamSource), "a context opens the plan before a job runs"
        return self.source

    def opened(self, context: Collections) -> StreamRead:
        """Return the same with a source that is open."""
        return StreamRead(self.source.opened(context)) if isinstance(self.source, OpenedLater) else self

    def splits(self, parallelism: int) -> Iterable[Split[Any]]:
        """Refuse: the loop of a job puts the ranges of an epoch in the place of this source.

        Raises:
            IllegalStateError: always.
        """
        return _refuse()

    def __repr__(self) -> str:
        return str(getattr(self.source, "label", self.source))


def _refuse() -> NoReturn:
    raise IllegalStateError("items without an end are read by jobs, range by range")
