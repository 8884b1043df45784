"""The tables of hash joins that this process of the workers holds."""

from __future__ import annotations

from dstream.engine.kernels.lookup_tables import LookupTable, table_of
from dstream.engine.worker.sent_payloads import Sent
from dstream.plan.steps import Step

__all__ = ["table_made_once", "tables_of_run"]

_run = ""
_tables: dict[str, LookupTable] = {}


def tables_of_run(run: str) -> None:
    """Keep the tables of one run of a plan, and let go of those of any other.

    A process of the workers serves one run after another. Two runs at once that share it make theirs more often.
    """
    global _run
    if run != _run:
        _run = run
        _tables.clear()


def table_made_once(sent: Sent, step: Step) -> LookupTable:
    """Return the table of a right side; the first task of this process that needs it makes it."""
    if sent.name not in _tables:
        _tables[sent.name] = table_of(sent.payloads(), step)
    return _tables[sent.name]
