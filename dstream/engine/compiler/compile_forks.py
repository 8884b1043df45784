"""Plans with several ends: which of them one job feeds, and what that job is.

Writes that hang on one fork by steps that need one item only are fed by the tasks that compute the items of the fork,
if nothing else reads these. Every other end is a graph of its own; forks that several graphs read are kept as the items
of a `cache()` are, so that they are computed once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple, cast

from dstream.engine.compiler.compile_inputs import ops_on_workers
from dstream.engine.compiler.compiling import Compiling, compile_end
from dstream.engine.graph.decided import Decided
from dstream.engine.graph.results import Ending, Last, Separated
from dstream.engine.graph.vertices import Vertex, piped
from dstream.engine.worker.sinks import Branch, WriteEach
from dstream.plan.core import Chain, Core, Hint, Write
from dstream.plan.core_of_forks import Fork, Several
from dstream.plan.steps import Op
from dstream.plan.walk import topological
from dstream.spi import Writer

__all__ = ["Part", "calls_on_branches", "parts_of"]


class Part(NamedTuple):
    """What of a plan with several ends is one graph.

    Attributes:
        end: one of its ends, or several that one job feeds.
        numbers: their places among all ends.
    """

    end: Write | Several
    numbers: tuple[int, ...]


def parts_of(several: Several) -> list[Part]:
    """Return the graphs of a plan, in the order of their first ends."""
    readers = Counter(id(upstream) for each in topological(several) for upstream in each.inputs())
    together: dict[int, list[int]] = defaultdict(list)
    for number, end in enumerate(several.ends):
        fork = _fork_of(end, readers)
        together[id(end if fork is None else fork)].append(number)
    return [_part(several, tuple(numbers)) for numbers in sorted(_fed_together(together, readers))]


def _fed_together(together: dict[int, list[int]], readers: Counter[int]) -> Iterator[tuple[int, ...]]:
    """Give the numbers of the ends of each graph: those of a fork, if all that read it are among them."""
    for found, numbers in together.items():
        if len(numbers) == readers[found]:
            yield tuple(numbers)
        else:
            yield from ((number,) for number in numbers)


def _part(several: Several, numbers: tuple[int, ...]) -> Part:
    ends = tuple(several.ends[number] for number in numbers)
    return Part(ends[0] if len(ends) == 1 else Several(ends, step=several.step), numbers)


def _fork_of(end: Write, readers: Counter[int]) -> Fork | None:
    """Return the fork that a write hangs on by steps that nothing else reads and that need one item only."""
    if end.collector is not None:
        return None
    node = end.upstream
    while isinstance(node, Chain | Hint) and readers[id(node)] == 1:
        node = node.upstream
    return node if isinstance(node, Fork) else None


@compile_end.register
def _(end: Several, compiling: Compiling) -> Ending:
    fork = _upstreams(end.ends[0])[-1]
    assert isinstance(fork, Fork), "what one job feeds hangs on a fork"
    branches = [_ops(each, compiling) for each in end.ends]
    sink = WriteEach(
        tuple(
            Branch(ops, cast(Writer, each.writer), each.step) for each, (ops, _) in zip(end.ends, branches, strict=True)
        )
    )
    decided = tuple(each for _, of_branch in branches for each in of_branch)
    items = piped(compiling.items_of(fork.upstream), fork, None, "each task hands its items to one sink after another")
    return Last(
        Vertex(items, sink, fork.step, notes=tuple(calls_on_branches(end)), decided=decided), Separated(len(end.ends))
    )


def calls_on_branches(end: Several) -> list[str]:
    """Return what stands between the fork and each end, and the end, as the user wrote it."""
    return ["".join(node.label() for node in (*_upstreams(each)[-2::-1], each)) for each in end.ends]


def _ops(end: Write, compiling: Compiling) -> tuple[tuple[Op, ...], tuple[Decided | None, ...]]:
    """Return the steps between the fork and an end, and what was decided of each."""
    chains = [node for node in reversed(_upstreams(end)) if isinstance(node, Chain)]
    found = [ops_on_workers(node, compiling) for node in chains]
    return tuple(op for ops, _, _ in found for op in ops), tuple(each for *_, decided in found for each in decided)


def _upstreams(end: Write) -> list[Core]:
    """Return what an end reads from, up to the fork."""
    line: list[Core] = [end.upstream]
    while isinstance(line[-1], Chain | Hint):
        line.append(line[-1].upstream)
    return line
