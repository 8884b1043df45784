"""Two streams side by side: what stands at equal places goes on together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count, islice, zip_longest
from typing import Any

from dstream.engine.kernels.core_operations import Task
from dstream.engine.kernels.join_tasks import two_sides
from dstream.engine.kernels.spilling import Run
from dstream.failures import naming
from dstream.plan.core_of_pairs import Together, Zip
from dstream.plan.steps import Step

__all__ = ["SideBySide", "zipped_batches"]


@dataclass(frozen=True)
class SideBySide:
    """What becomes of two streams; what the operation is without its inputs."""

    how: Together
    fill: Any
    step: Step

    @staticmethod
    def of(node: Zip) -> SideBySide:
        """Return that of an operation."""
        return SideBySide(node.how, node.fill, node.step)

    def items(self, lefts: Iterator[Any], rights: Iterator[Any], before: int = 0) -> Iterator[Any]:
        """Give what becomes of two sides, of which the left one is read first.

        Args:
            lefts: the items of one side.
            rights: those of the other.
            before: how many pairs stand before these, for a message.
        """
        match self.how:
            case "shortest":
                return zip(lefts, rights, strict=False)
            case "longest":
                return zip_longest(lefts, rights, fillvalue=self.fill)
            case "interleaved":
                return _in_turn(lefts, rights)
        return _strictly(lefts, rights, before, self.step)


def _in_turn(lefts: Iterator[Any], rights: Iterator[Any]) -> Iterator[Any]:
    for left in lefts:
        yield left
        for right in rights:
            yield right
            break
        else:
            yield from lefts
    yield from rights


def _strictly(lefts: Iterator[Any], rights: Iterator[Any], before: int, step: Step) -> Iterator[Any]:
    for pairs in count(before):
        left, right = next(lefts, _END), next(rights, _END)
        if left is _END and right is _END:
            return
        if left is _END or right is _END:
            longer, shorter = ("right", "left") if left is _END else ("left", "right")
            with naming(step):
                raise ValueError(f"the {longer} stream is longer: the {shorter} one ended after {_counted(pairs)}")
        yield left, right


_END = object()


def _counted(number: int) -> str:
    return "1 item" if number == 1 else f"{number:,} items"


def zipped_batches(
    side_by_side: SideBySide, targets: int, wanted: int, batches: Iterator[tuple[int, list[Any]]], task: Task
) -> Iterator[Any]:
    """Put the two sides together that met in one partition, the left one first, which is held, past the bound on disk.

    Args:
        side_by_side: what becomes of them.
        targets: how many partitions there are; batches of the right side have the targets behind those.
        wanted: how many places there are in all partitions.
        batches: (target, items).
        task: where it runs.
    """
    target = 0
    for head in islice(batches, 1):
        target, batches = head[0] % targets, chain((head,), batches)
    first, second = two_sides(targets, batches)
    held: list[Any] = []
    run = Run()
    for _, items in first:
        held += items
        if task.bound.exceeded():
            run.extend(held)
            held = []
            task.bound.spilled()
    rights = chain.from_iterable(items for _, items in second)
    # Places go to the targets in stretches, so the first one of a target is known.
    yield from side_by_side.items(chain(run, held), rights, -(-target * wanted // targets))
