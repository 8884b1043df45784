"""What an exception says when it leaves a terminal operation: what happened, where in the plan, what to do.

Three notes, always in this order. `failure_advice` has the words for each kind of error; this module puts
together what is known: the exception, the plan, the step and the item.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from dstream.errors import EngineError
from dstream.failures import (
    MISSING,
    Account,
    Failure,
    Origin,
    is_told,
    known_of,
    near,
    origin_of,
    source_line,
    told,
)
from dstream.failures.whose_code import is_ours
from dstream.plan.failure_advice import happened_otherwise, to_do
from dstream.plan.nodes import Node
from dstream.plan.replaying import again, function_of
from dstream.plan.steps import Step, shown_function
from dstream.plan.walk import topological
from dstream.plan.where import Where

__all__ = ["tell"]

_BEFORE = 4
_AFTER = 3
_LONGEST_CALL = 70
_LONGEST_LINE = 120


def tell(error: Exception, root: Node, call: str, place: Where | None) -> Exception:
    """Return `error` with its three notes, whose `failure` can replay the step; what was told already stays.

    It is a copy of `error` if that object tells of another raise.

    Args:
        error: an exception that leaves a terminal operation.
        root: the last node of the plan that ran.
        call: the terminal operation, such as `to_list`.
        place: where the user called it.
    """
    known = known_of(error) or Failure(None)
    if known.account is not None:
        if is_told(error):
            return error
        known = Failure(None)  # It tells of another raise of the same object.
    node = _failed(root, known.step)
    # What a stream inside of a function raised on a worker has no frames here: the function around it is not to blame.
    of_inner = None if known.inner is None else known.inner.origin
    known = dataclasses.replace(known, origin=known.origin or of_inner or origin_of(error))
    notes = (
        f"What happened: {_what(error, known, node)}",
        f"Where: {_where(known, root, node, call, place)}",
        f"What to do: {to_do(error, known, node)}",
    )
    function, instead = _again(known, node)
    error = told(error, dataclasses.replace(known, account=Account(notes, function, instead, _is_inside())))
    _write(error, known, notes)
    return error


def _is_inside() -> bool:
    """Say whether a function of another stream runs this one: then the engine of that one is further up."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not (is_ours(frame) and frame.f_globals["__name__"].startswith(_RUN_FUNCTIONS)):
        frame = frame.f_back
    return frame is not None


_RUN_FUNCTIONS = ("dstream.engine.", "collectors.", "dstream.gatherers.", "dstream.values.", "dstream.spi.")


def _failed(root: Node, step: Step | None) -> Node | None:
    """Return the user's node of a step."""
    if step is None:
        return None
    calls = [each for each in topological(root) if each.label()]
    return calls[step.position - 1] if 0 < step.position <= len(calls) else None


def _what(error: Exception, known: Failure, node: Node | None) -> str:
    came = known.remote_traceback is not None and not isinstance(error, EngineError)
    on_worker = ", on a Spark worker" if came else ""
    if known.origin is not None:
        return _raised(known.origin) + on_worker
    function = None if node is None else function_of(node)
    if function is not None and not happened_otherwise(error, known, node):
        return f"{shown_function(function)} raised {type(error).__name__}{on_worker}"
    told = happened_otherwise(error, known, node)
    subject = "the run of this pipeline" if known.step is None else known.step.label
    return (told or f"{subject} ended with {type(error).__name__}") + on_worker


def _raised(origin: Origin) -> str:
    text = _cut(origin.text or source_line(origin.file, origin.line), _LONGEST_LINE)
    line = f', in "{text}"' if text else ""
    cause = f" (it came from {_cause(origin.cause)})" if origin.cause is not None else ""
    return f"{origin.function} raised {origin.kind} at {near(origin.file, origin.line)}{line}{cause}"


def _cause(origin: Origin) -> str:
    return f"{origin.kind} at {near(origin.file, origin.line)}"


def _where(known: Failure, root: Node, node: Node | None, call: str, place: Where | None) -> str:
    called = f".{call}(){_at(place)}"
    chain = _chain(root, node)
    if known.step is None:
        first = f"no single step is to blame; the pipeline was run by {called}"
    else:
        first = f"step {known.step.position} of {known.step.total}, {known.step.label}{_at(known.step.where)}"
        first += _on(known)
    inner = [] if known.inner is None else _inner(known.inner)
    return "\n".join([first, *inner, *(f"    {line}" for line in _shown_chain(chain, node))])


def _at(place: Where | None) -> str:
    return "" if place is None else f" at {near(place.file, place.line)}"


def _on(known: Failure) -> str:
    if known.given is not None:
        return f", {known.given}"
    return "" if known.shown_item is None else f", on the item {known.shown_item}"


def _inner(inner: Failure) -> list[str]:
    """Say in one line each what failed in the streams that the user's function ran itself."""
    lines = []
    found: Failure | None = inner
    while found is not None and found.step is not None:
        step = found.step
        lines.append(f"    in it, step {step.position} of {step.total}, {step.label}{_at(step.where)}{_on(found)}")
        found = found.inner
    return lines


def _chain(root: Node, node: Node | None) -> list[Node]:
    """Return the calls from the source to the end of the plan, along the way that passes `node`."""
    readers: dict[int, Node] = {}
    for reader in topological(root):
        for upstream in reader.inputs():
            readers.setdefault(id(upstream), reader)
    start = node or root
    before, found = [start], start
    while found.inputs():
        found = found.inputs()[0]
        before.append(found)
    after, found = [], start
    while id(found) in readers:
        found = readers[id(found)]
        after.append(found)
    return [each for each in [*reversed(before), *after] if each.label()]


def _shown_chain(chain: Sequence[Node], node: Node | None) -> list[str]:
    """Write one call for each line, its place behind it, a mark before the failing one; far ones are folded away."""
    at = next((number for number, each in enumerate(chain) if each is node), len(chain) - 1)
    first, last = max(at - _BEFORE, 0), min(at + _AFTER + 1, len(chain))
    first, last = 0 if first == 1 else first, len(chain) if last == len(chain) - 1 else last
    shown = [(_cut(each.named_label(), _LONGEST_CALL), each) for each in chain[first:last]]
    width = max(len(label) for label, _ in shown)
    lines = []
    for label, each in shown:
        mark = ">" if each is node else " "
        place = "" if each.where is None else near(each.where.file, each.where.line)
        lines.append(f"{mark} {label.ljust(width)}  {place}".rstrip())
    before = [f"  ... {first} more calls ..."] if first else []
    after = [f"  ... {len(chain) - last} more calls ..."] if last < len(chain) else []
    return [*before, *lines, *after]


def _cut(text: str, longest: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _again(known: Failure, node: Node | None) -> tuple[Any, str]:
    """Return what runs the step on its item again, or why nothing does."""
    function = None if node is None else again(node)
    if known.step is None:
        return None, "no single step is to blame"
    named = f"step {known.step.position} of {known.step.total}, {known.step.label}"
    if known.item is MISSING and known.item_text is not None:
        return (
            None,
            f"the item of {named} was too large to come from the worker, or cannot be pickled: {known.item_text}",
        )
    if known.item is MISSING:
        given = f"; it happened {known.given}" if known.given else ""
        return None, f"it happened in {named}, where no single item is known to be to blame{given}"
    if function is None:
        return None, f"it happened in {named}, which runs no function on a single item; the item was {known.shown_item}"
    return function, ""


def _write(error: Exception, known: Failure, notes: Sequence[str]) -> None:
    """Put the notes behind those that the user's own code made; those of a stream inside of a function go."""
    inner = () if known.inner is None or known.inner.account is None else known.inner.account.notes
    before = (note for note in getattr(error, "__notes__", ()) if note not in inner)
    error.__dict__["__notes__"] = [*before, *notes]  # An exception may refuse attributes, and notes.
