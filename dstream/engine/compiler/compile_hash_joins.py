"""Hash joins: the right side comes to the caller's process, if it is not too large, and goes to all tasks of the left.

Nothing of the left side moves, so its items keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dstream.engine.compiler.called_functions import called_by
from dstream.engine.compiler.compiling import Compiling, compile_node
from dstream.engine.graph import output_ports
from dstream.engine.graph.decided import Decided
from dstream.engine.graph.decisions import Ask, Done, Move, Outcome, Report, SendToAll, Several
from dstream.engine.graph.vertices import Items, Vertex, piped
from dstream.engine.kernels.lookup_tables import RightSide
from dstream.engine.worker.rows import ITEMS
from dstream.engine.worker.sent_payloads import Sent
from dstream.engine.worker.sent_tables import LookUp, WriteRightSide
from dstream.failures import naming
from dstream.plan.core_of_pairs import HashJoin

__all__ = ["Broadcast"]


@compile_node.register
def _(node: HashJoin, inputs: Sequence[Items], compiling: Compiling) -> Items:
    left, right = inputs
    return (
        compiling.decide(
            Broadcast(
                node, left, right, RightSide.of(node, compiling.facts.broadcast_limit), called_by(node, compiling.facts)
            )
        ),
    )


@dataclass(frozen=True, eq=False)
class Broadcast:
    """A right side on its way to all tasks: computed and measured, then brought here, then sent.

    Attributes:
        go_on: what to do with what was asked for last.
        computed: writes the right side.
    """

    node: HashJoin
    left: Items
    right: Items
    side: RightSide
    decided: Sequence[Decided] = ()
    go_on: Callable[[Broadcast, Any], Move] | None = None
    computed: tuple[Vertex, ...] = ()

    counts = False

    @property
    def inputs(self) -> tuple[Items, ...]:
        return self.left, self.right

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[Several, ...]) -> Move:
        left, right = inputs
        step, does = self.node.step, "writes what of the right side goes to every task"
        vertex = Vertex(right, WriteRightSide(self.side), step, is_kept=True, does=does)
        measured = replace(self, left=left, right=right, go_on=Broadcast._measured)
        purpose = f"the right side is computed, and measured: at most {self.side.limit:,} bytes"
        return Ask(measured, vertex, "bytes", output_ports.ITEMS, step, purpose, outcomes=(Outcome(((ITEMS, 0),)),))

    def next(self, report: Any) -> Move:
        assert self.go_on is not None, "whoever is told something has asked for it"
        return self.go_on(self, report)

    def _measured(self, report: Report) -> Move:
        with naming(self.node.step):
            self.side.check(sum(size for _, size in report.rows))
        come = replace(self, go_on=Broadcast._come)
        purpose = "the right side comes to this process"
        return Ask(come, report.vertex, "rows", output_ports.ITEMS, self.node.step, purpose)

    def _come(self, report: Report) -> Move:
        sending = replace(self, go_on=Broadcast._sent, computed=(report.vertex,))
        return SendToAll(sending, tuple(row.payload for row in report.rows))

    def _sent(self, sent: Sent) -> Move:
        note = "each process has the whole right side, as a table"
        return Done(piped(self.left, self.node, LookUp(self.node, sent), note, self.decided, beside=self.computed))
