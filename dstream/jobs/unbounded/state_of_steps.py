"""`StatesOfSteps`: where the loop gets the state of steps for an epoch, and what it does with what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from dstream.errors import IllegalStateError
from dstream.jobs.unbounded.log_record import LogRecord
from dstream.spi.epochs import StepReceipt, StepState

__all__ = ["NoStates", "StatesOfSteps"]


class StatesOfSteps(Protocol):
    """The state of all steps of a job, as of the last record."""

    def restore(self, records: Sequence[LogRecord]) -> None:
        """Become what these records say, of which the first has a whole index or is the first of the job.

        Raises:
            IllegalStateError: the state is that of other steps.
        """
        ...

    def of(self, step: str, epoch: int) -> StepState:
        """Return the state of a step as tasks of an epoch get it."""
        ...

    def after(self, receipts: Iterable[StepReceipt]) -> StatesOfSteps:
        """Return what holds once an epoch with these receipts is committed; this one stays as it is."""
        ...

    def deadlines(self, step: str) -> tuple[int | None, float | None]:
        """Return what the shards of a step wait for: the least watermark, and the least reading of the clock."""
        ...

    def changes(self) -> Mapping[str, Any]:
        """Return what the epoch changed that led to this, as plain data, by the names of steps."""
        ...

    def index(self) -> Mapping[str, Any]:
        """Return where all of it is, as plain data, by the names of steps."""
        ...


class NoStates:
    """The state of a plan without steps over epochs."""

    def restore(self, records: Sequence[LogRecord]) -> None:
        """Do nothing, unless there was state.

        Raises:
            IllegalStateError: the last epoch had steps that this plan does not have.
        """
        if records and records[-1].steps:
            lost = ", ".join(map(repr, records[-1].steps))
            raise IllegalStateError(f"the job has state of the steps {lost}, and this pipeline has no such steps")

    def of(self, step: str, epoch: int) -> StepState:
        """Refuse: there are none."""
        raise AssertionError(f"there is no step {step!r}")

    def after(self, receipts: Iterable[StepReceipt]) -> NoStates:
        """Return the same."""
        return self

    def deadlines(self, step: str) -> tuple[int | None, float | None]:
        """Return that nothing waits."""
        return None, None

    def changes(self) -> Mapping[str, Any]:
        """Return nothing."""
        return {}

    def index(self) -> Mapping[str, Any]:
        """Return nothing."""
        return {}
