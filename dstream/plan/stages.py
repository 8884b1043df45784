"""`Stages`: the jobs, stages and shuffles of a plan, as a value for pictures.

`dstream.explain.stages` makes one for an engine, and the renderers in `dstream.explain` read nothing else. An `Amount`
is a number that is perhaps known only when the plan runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from dstream.base.records import record
from dstream.plan.steps import SourceLocation

__all__ = [
    "NOTHING",
    "ONE",
    "SEVERAL_PARTITIONS",
    "Amount",
    "Call",
    "Exchange",
    "ExchangeKind",
    "Job",
    "Stage",
    "Stages",
    "exactly",
    "total",
]


ExchangeKind = Literal["pipe", "kept", "sent", "shuffle", "written"]
"""The transfer of items between stages: within a task; by a later job that reads them where they were stored; by a
broadcast from the caller's process; by a shuffle; or as the user wrote it, in a drawing that does not show how the plan
runs."""


SEVERAL_PARTITIONS = "if there is more than one partition"
"""The condition of most parts of a plan that are not sure."""


@record
class Amount:
    """A number that may be known only when the plan runs.

    Attributes:
        least: it is not below this.
        most: it is not above this; None: unknown.
        words: what decides it, such as "one for each core".

    Example:
        >>> from dstream.plan.stages import Amount
        >>> str(Amount(2, 2)), str(Amount(1, 6)), str(Amount(1, None))
        ('2', '1 to 6', '1 or more')
    """

    least: int
    most: int | None
    words: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the range is a single number."""
        return self.least == self.most

    def __add__(self, other: Amount) -> Amount:
        most = None if self.most is None or other.most is None else self.most + other.most
        return Amount(self.least + other.least, most)

    def up_to(self, most: Amount) -> Amount:
        """Return the smaller one of the two."""
        known = [bound for bound in (self.most, most.most) if bound is not None]
        return Amount(min(self.least, most.least), min(known, default=None))

    def or_none(self) -> Amount:
        """Return the amount of an event that may also not happen."""
        return replace(self, least=0)

    def __str__(self) -> str:
        if self.is_known:
            return _written(self.least)
        if self.most is None:
            return f"{_written(self.least)} or more"
        return f"{_written(self.least)} to {_written(self.most)}"

    def of(self, one: str, many: str = "") -> str:
        """Write the amount with its unit: `1 job`, `2 to 3 jobs`, and the decision it depends on."""
        name = one if self.most == 1 else many or f"{one}s"
        return f"{self} {name}" if self.is_known or not self.words else f"{self} {name} ({self.words})"


def _written(number: int) -> str:
    """Write a number; of one that no machine could count to, only its size."""
    # Python refuses to write an int of more than 4,300 digits (3.11).
    digits = int(number.bit_length() * math.log10(2))
    return f"{number:,}" if digits < 20 else f"10^{digits}"


NOTHING = Amount(0, 0)
ONE = Amount(1, 1)


def exactly(number: int) -> Amount:
    """Return an amount that is known."""
    return Amount(number, number)


def total(amounts: Iterable[Amount]) -> Amount:
    """Add amounts."""
    return sum(amounts, NOTHING)


@record
class Call:
    """One call of the user in a stage.

    Attributes:
        label: the call as the user wrote it.
        where: the source location of that call.
        note: how it runs: such as in the caller's process, or how tasks evaluate it.
        why: why tasks evaluate it so, in sentences; empty without a reason.
    """

    label: str
    where: SourceLocation | None = None
    note: str = ""
    why: str = ""


@record
class Exchange:
    """The exchange of items between two stages.

    Attributes:
        source: the number of the stage that emits them, its index in `Stages.stages`.
        why: why they move, and how.
        is_sure: False if it may be left out.
        condition: when it is not left out, if it is not sure.
    """

    source: int
    how: ExchangeKind
    why: str = ""
    is_sure: bool = True
    condition: str = SEVERAL_PARTITIONS


@record
class Stage:
    """Calls that run together, item by item, in the same tasks.

    Attributes:
        calls: its calls, in the order in which they run.
        inputs: the sources of its items; none for one that reads a source.
        tasks: the number of tasks, one for each partition; None in a graph as written.
        is_ordered: whether the items that leave it have an encounter order.
        jobs: the numbers of the jobs in which it runs, indexes into `Stages.jobs`.
        notes: what happens to the items in addition to the calls.
        folded: the number of stages that this one replaces in a shortened drawing; 0 for a stage of the plan.
        name: the user's name for it; empty: it is shown by its number.
    """

    calls: tuple[Call, ...]
    inputs: tuple[Exchange, ...]
    tasks: Amount | None = None
    is_ordered: bool = True
    jobs: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    folded: int = 0
    name: str = ""


@record
class Job:
    """Work that starts by itself and ends before the next job starts.

    Attributes:
        title: its purpose.
        amount: the number of the engine's jobs: several waves if it stops as soon as it has enough.
    """

    title: str
    amount: Amount


@record
class Stages:
    """The stages that a plan will run as, or those of the user's own graph.

    Attributes:
        engine: the name of the engine, such as "Spark with 2 cores"; empty for a graph as written.
        end: the call that ends the plan, or the title of a graph as written.
        outcome: how the result reaches the caller; empty for a graph as written.
        stages: each after those that it reads from.
        jobs: in the order in which they run.
        job_count: the number of the engine's jobs.
        shuffles: the number of shuffles.
        python_stages: the number of Python stages, over all jobs.
        notes: notes on the whole plan, such as its settings.
    """

    engine: str
    end: Call
    outcome: str
    stages: tuple[Stage, ...]
    jobs: tuple[Job, ...]
    job_count: Amount
    shuffles: Amount
    python_stages: Amount
    notes: tuple[str, ...] = ()
