"""Messages of failures: the cause, the step in the plan, and advice.

Three notes, always in this order, from the exception, the plan, the step and the item.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from dstream import errors
from dstream.errors import EngineError
from dstream.failures import (
    MISSING,
    Failure,
    FailureMessage,
    Origin,
    is_told,
    known_of,
    near,
    origin_of,
    source_line,
    told,
)
from dstream.failures.attribution import is_ours
from dstream.plan.operations.calls import FlatMap, ForEach, Map, MapMulti, WithService
from dstream.plan.operations.ends import Collect, ForEachPartition, Write
from dstream.plan.operations.keyed import Distinct
from dstream.plan.operations.sort_limit import Sorted
from dstream.plan.operations.streams import Node, Read
from dstream.plan.steps import SourceLocation, Step
from dstream.plan.walk import topological
from dstream.values.user_functions import shown_function

__all__ = ["described", "happened_otherwise", "to_do"]


def described(error: Exception, root: Node, call: str, place: SourceLocation | None) -> Exception:
    """Return `error` with its three notes, whose `failure` can replay the step; earlier notes are retained.

    It is a copy of `error` if that object describes another raise.

    Args:
        error: an exception that leaves a terminal operation.
        root: the last node of the plan that ran.
        call: the terminal operation, such as `to_list`.
        place: the source location of that call.
    """
    known = known_of(error) or Failure(None)
    if known.account is not None:
        if is_told(error):
            return error
        known = Failure(None)  # The account describes another raise of the same object.
    node = _failed(root, known.step)
    # An exception of a stream inside of a function on a worker has no frames in this process: the outer function did
    # not cause it.
    of_inner = None if known.inner is None else known.inner.origin
    known = dataclasses.replace(known, origin=known.origin or of_inner or origin_of(error))
    notes = (
        f"What happened: {_what(error, known, node)}",
        f"Where: {_where(known, root, node, call, place)}",
        f"What to do: {to_do(error, known, node)}",
    )
    function, instead = _again(known, node)
    error = told(error, dataclasses.replace(known, account=FailureMessage(notes, function, instead, _is_inside())))
    _write(error, known, notes)
    return error


def _is_inside() -> bool:
    """Return whether a function of another stream runs this one: then the engine of that one is further up."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not (is_ours(frame) and frame.f_globals["__name__"].startswith(_RUN_FUNCTIONS)):
        frame = frame.f_back
    return frame is not None


_RUN_FUNCTIONS = (
    "dstream.arguments",
    "dstream.base.",
    "dstream.collectors.",
    "dstream.connectors.",
    "dstream.engine.",
    "dstream.failures.attribution",
    "dstream.gatherers.",
    "dstream.operators.",
    "dstream.processors.",
    "dstream.spi.",
    "dstream.values.",
)


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
    function = None if node is None else node.function()
    if function is not None and not happened_otherwise(error, known, node):
        return f"{shown_function(function)} raised {type(error).__name__}{on_worker}"
    told = happened_otherwise(error, known, node)
    subject = "the run of this pipeline" if known.step is None else known.step.label
    return (told or f"{subject} ended with {type(error).__name__}") + on_worker


_LONGEST_LINE = 120


def _raised(origin: Origin) -> str:
    text = _cut(origin.text or source_line(origin.file, origin.line), _LONGEST_LINE)
    line = f', in "{text}"' if text else ""
    cause = f" (it came from {_cause(origin.cause)})" if origin.cause is not None else ""
    return f"{origin.function} raised {origin.kind} at {near(origin.file, origin.line)}{line}{cause}"


def _cause(origin: Origin) -> str:
    return f"{origin.kind} at {near(origin.file, origin.line)}"


def _where(known: Failure, root: Node, node: Node | None, call: str, location: SourceLocation | None) -> str:
    called = f".{call}(){_at(location)}"
    chain = _chain(root, node)
    if known.step is None:
        first = f"no single step is to blame; the pipeline was run by {called}"
    else:
        first = f"step {known.step.position} of {known.step.total}, {known.step.label}{_at(known.step.where)}"
        first += _on(known)
    inner = [] if known.inner is None else _inner(known.inner)
    return "\n".join([first, *inner, *(f"    {line}" for line in _shown_chain(chain, node))])


def _at(location: SourceLocation | None) -> str:
    return "" if location is None else f" at {near(location.file, location.line)}"


def _on(known: Failure) -> str:
    if known.given is not None:
        return f", {known.given}"
    return "" if known.shown_item is None else f", on the item {known.shown_item}"


def _inner(inner: Failure) -> list[str]:
    """Return a line each on the failures in streams that the user's function ran itself."""
    lines = []
    found: Failure | None = inner
    while found is not None and found.step is not None:
        step = found.step
        lines.append(f"    in it, step {step.position} of {step.total}, {step.label}{_at(step.where)}{_on(found)}")
        found = found.inner
    return lines


def _chain(root: Node, node: Node | None) -> list[Node]:
    """Return the calls from the source to the end of the plan, along the path through `node`."""
    readers: dict[int, Node] = {}
    for reader in topological(root):
        for upstream in reader.inputs():
            # Of several readers the first one: one path through the plan is enough to show.
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


_BEFORE = 4
_AFTER = 3
_LONGEST_CALL = 70


def _shown_chain(chain: Sequence[Node], node: Node | None) -> list[str]:
    """Return one call per line with its source location, the failing one marked, distant ones folded away."""
    at = next((number for number, each in enumerate(chain) if each is node), len(chain) - 1)
    first, last = max(at - _BEFORE, 0), min(at + _AFTER + 1, len(chain))
    # A line that replaces one call would be as long as the call.
    first, last = 0 if first == 1 else first, len(chain) if last == len(chain) - 1 else last
    shown = [(_cut(each.named_label(), _LONGEST_CALL), each) for each in chain[first:last]]
    width = max(len(label) for label, _ in shown)
    lines = []
    for label, each in shown:
        mark = ">" if each is node else " "
        location = "" if each.step.where is None else near(each.step.where.file, each.step.where.line)
        lines.append(f"{mark} {label.ljust(width)}  {location}".rstrip())
    before = [f"  ... {first} more calls ..."] if first else []
    after = [f"  ... {len(chain) - last} more calls ..."] if last < len(chain) else []
    return [*before, *lines, *after]


def _cut(text: str, longest: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _again(known: Failure, node: Node | None) -> tuple[Any, str]:
    """Return a replay of the step on its item, or the reason why there is none."""
    function = None if node is None else node.replay()
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
    """Append the notes to those of the user's code, and remove those of a stream inside of a function."""
    inner = () if known.inner is None or known.inner.account is None else known.inner.account.notes
    before = (note for note in getattr(error, "__notes__", ()) if note not in inner)
    error.__dict__["__notes__"] = [*before, *notes]  # An exception may refuse attributes, and notes.


# The first class that fits decides, so a class is listed before its bases: `ColumnsDifferError` is an `EngineError`.
_HAPPENED: dict[type[Exception], str] = {
    errors.SourceError: "the source could not be read",
    errors.SinkError: "the sink could not be written",
    errors.NullElementError: "a None came to a place that takes none",
    errors.UnstableKeyError: "a key cannot be grouped safely: its hash or equality does not survive the way to "
    "another process",
    errors.CollectionDestroyedError: "the collection that this pipeline reads or writes was destroyed",
    errors.CacheNotExistsError: "the cache was never configured",
    errors.SerializationError: "something cannot travel between this process and the workers",
    errors.ColumnsDifferError: "functions gave something else over columns than Python does",
    errors.EngineError: "the engine or the storage could not go on, for a reason outside of your functions",
    errors.UnsupportedError: "this pipeline holds something that this engine does not run",
    errors.SetupError: "the engine could not start on this machine",
}

_TO_DO: dict[type[Exception], str] = {
    errors.SourceError: "check that what it reads is there and complete, and that every worker can reach it",
    errors.SinkError: "check that what it writes into is there and takes such items, and that all workers reach it",
    errors.NullElementError: "leave the None out with .filter(lambda item: item is not None), or map it to a value, "
    "before this step",
    errors.UnstableKeyError: "use a key that is a str, a number, a tuple of such, or a frozen dataclass: "
    "convert it in the key function",
    errors.CollectionDestroyedError: "get the collection again from the context, and fill it again",
    errors.CacheNotExistsError: "configure it once with ctx.get_cache(name, ttl=...) or (name, max_idle=...)",
    errors.SerializationError: "make such an object inside the function, or let the function capture plain values "
    "that you take out of it before",
    errors.ColumnsDifferError: 'connect(columns="off") calls each function; please report the difference, a defect '
    "of dstream, or of a source that gives columns",
    errors.EngineError: "mend what the message says, then run it again; on Spark, "
    "dstream.failure(error).remote_traceback has Spark's own error",
    errors.UnsupportedError: "`dstream docs limits` lists what is missing and what to use instead",
    errors.SetupError: "do what the message says, then connect() again",
}


def happened_otherwise(error: Exception, known: Failure, node: Node | None) -> str:
    """Return the event where no line of the user's own raised `error`; nothing if only its type is known."""
    if _is_too_large(error, node):
        return "the right side of a hash join is too large to go to every task"
    for kind, words in _HAPPENED.items():
        if isinstance(error, kind):
            return words
    if isinstance(error, errors.IllegalStateError) and _CLOSED in str(error):
        return "the context that this stream belongs to was closed"
    if isinstance(error, errors.IllegalStateError):
        return "this operation could not go on with the items that it was given"
    if isinstance(node, Read):
        return f"the source could not be read: {type(error).__name__}"
    if isinstance(node, WithService) and known.item is MISSING and known.item_text is None:
        return f"its service ended with {type(error).__name__}"
    if isinstance(error, TypeError):
        return _of_a_type_error(str(error), node)
    return ""


def _is_about_a_record(error: Exception, node: Node | None) -> bool:
    """Return whether a record did not become an item; for one in another encoding the message has advice."""
    is_wrong = isinstance(error.__cause__, ValueError) and not isinstance(error.__cause__, UnicodeError)
    is_of_a_source = isinstance(error, errors.SourceError) and isinstance(node, Read) and hasattr(node.source, "on_bad")
    return is_wrong and is_of_a_source and not str(error).startswith(_OF_A_FILE)


def _is_too_large(error: Exception, node: Node | None) -> bool:
    return node is not None and bool(node.broadcast_inputs()) and isinstance(error, errors.UnsupportedError)


_CLOSED = "context is closed"
_OF_A_FILE = "cannot read "
"""The beginning of errors of files that cannot be read at all, such as no Parquet: no record is to blame."""
_AT_THE_END = "was pickled, at the end of an epoch"
_ITEM = re.compile(
    r"^(?:an item|a group) cannot travel between processes: (?:.*cannot pickle '(\w+)' object)?", re.DOTALL
)
_WANTS_TWO = re.compile(r"\(\) missing 1 required positional argument: ")
_GIVEN = re.compile(r"^(an int is|a number is) needed here|^flat_map\(\) needs a function")
"""The beginning of errors of checks of a function's results: these are no exceptions of the function itself."""


_AWAITED = "the function gave a result that has to be awaited"


def _of_a_type_error(message: str, node: Node | None) -> str:
    function = None if node is None or not message.startswith(_AWAITED) else node.function()
    if function is not None:
        return f"{shown_function(function)} gave a result that has to be awaited"
    match node:
        case Sorted(key=None):
            return "two items cannot be compared with each other"
        case Sorted() if _WANTS_TWO.search(message):
            return "the key function of sorted() was called with one item, and it wants two"
        case Sorted(key=key):
            return f"{shown_function(key)} gave two keys that cannot be compared with each other"
        case Map(fn=fn) | FlatMap(fn=fn) | MapMulti(fn=fn) if _GIVEN.search(message):
            return f"{shown_function(fn)} gave something that .{_method(node)}() does not take"
        case FlatMap() if _method(node) == "flatten" and message.startswith("flatten() takes"):
            return "an item that came to .flatten() is no iterable"
        case Collect() if _method(node) in ("min", "max") and not _WANTS_TWO.search(message):
            return "two items, or their keys, cannot be compared with each other"
    return ""


def _method(node: Node) -> str:
    """Return the name of the method that the user called."""
    return node.label().removeprefix(".").partition("(")[0]


def to_do(error: Exception, known: Failure, node: Node | None) -> str:
    """Return advice for the user."""
    if known.advice is not None:
        return known.advice
    if _is_too_large(error, node):
        return "use join(), whose sides may be of any size, or raise broadcast_limit if each worker can hold that much"
    if type(error) is TypeError and str(error).startswith(_AWAITED):
        return str(error).partition("): ")[2]
    if known.given is not None and known.given.endswith(_AT_THE_END):
        return "keep plain values in the state, and make such an object where it is used, or take it from a Service"
    if isinstance(error, errors.SerializationError) and (item := _ITEM.match(str(error))):
        return _of_an_item(item[1])
    if _is_about_a_record(error, node):
        source = getattr(node, "source", None)
        takes = "give the source on_bad='skip' or into=..., or " if hasattr(source, "options") else ""
        return f"correct the record, or {takes}put .ignore(ValueError) behind it"
    if known.origin is None or known.step is None:
        for kind, words in _TO_DO.items():
            if isinstance(error, kind):
                return words
    if isinstance(error, errors.IllegalStateError) and (known.origin is None or "on a Spark worker" in str(error)):
        return _of_a_state(error)
    if isinstance(error, ImportError) and known.step is None:
        return "install the module on the workers, or put it beside your script, from where it is sent to them"
    if isinstance(node, Read) and known.item is MISSING:
        return "check that the source is there and complete, and that every worker can read it"
    if known.origin is None and isinstance(node, Sorted) and _WANTS_TWO.search(str(error)):
        return "sorted() takes a key function of one item; functools.cmp_to_key makes one of a comparator"
    if known.origin is None and isinstance(node, Sorted):
        return "give sorted() a key= whose results can be compared with each other, such as str or a tuple of one shape"
    if isinstance(node, Collect | Sorted) and _WANTS_TWO.search(str(error)):
        return (
            "a key function takes one item; functools.cmp_to_key makes one of a comparator, "
            "a function of two items that gives a negative number, 0 or a positive one"
        )
    if known.origin is None and isinstance(node, FlatMap) and _method(node) == "flatten":
        return "make each item an iterable before this step, as .map(lambda item: [item]) does, or filter it out"
    # A user's exception need not have a message.
    return _of_a_function(known, node, str(error) if type(error) is TypeError else "")


def _of_an_item(kind: str) -> str:
    """Return advice on an item that cannot be pickled."""
    match kind:
        case "generator":
            return "use flat_map() where map() is given a function that yields: its items travel, a generator cannot"
        case "coroutine":
            return "use gather(map_concurrent(n, fn)) where map() is given an async function: it awaits the results"
        case "async_generator":
            return "gather its items in a list, in an async function, and use gather(map_concurrent(n, fn)).flatten()"
    return "map() such an item to plain values that you take out of it, such as a str, a number or a tuple of them"


def _of_a_state(error: errors.IllegalStateError) -> str:
    if _CLOSED in str(error):
        return "connect() again and build the stream on the new context, or run it inside of the with block"
    if "Duplicate key" in str(error):
        return "give the collector a merge function that makes one value of two, such as max or operator.add"
    if "on a Spark worker" in str(error):
        return "read what the function needs before, in the driver, and let it capture the plain values"
    return "change the pipeline as the message says"


_WANTS_MORE = re.compile(r"\(\) missing \d+ required positional arguments?: ")
_IN_PARTS = (
    "{name} takes {n} arguments, and a step gives it one item: .starmap(...) in place of .map(...) calls it with the "
    "parts of each tuple; elsewhere take the parts inside, as in {step}(lambda item: item[0] ...)"
)


def _of_a_function(known: Failure, node: Node | None, message: str) -> str:
    function = None if node is None else node.function()
    name = _named(shown_function(function)) if function is not None else _name(known)
    if _WANTS_MORE.search(message) and isinstance(known.item, tuple) and _takes(function, len(known.item)):
        return _IN_PARTS.format(name=name, n=len(known.item), step=known.step.label.partition("(")[0] or ".map")
    has_lines = function is None or hasattr(function, "__code__") or known.origin is not None
    handle = f"handle it in {name}" if has_lines else f"handle it in a function of your own around {name}"
    if known.item is not MISSING and node is not None and node.replay() is not None:
        stops = f", where a debugger stops inside {name}" if has_lines else ""
        return (
            f"look at this item: {handle}, or filter it out before this step; "
            f"dstream.failure(error).replay() runs the step on it in this process{stops}"
        )
    if known.item_text is not None:
        return f"look at this item: {handle}, or filter it out before this step; the whole of it is on the worker only"
    if known.item is not MISSING and isinstance(node, Collect | Write):
        return f"look at this item: map() it to what {name} takes, or filter it out, before this step"
    return _without_item(known, node, name)


def _takes(function: object, count: int) -> bool:
    """Return whether a function of the user's has as many parameters as a tuple has members."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_argcount == count > 1


def _without_item(known: Failure, node: Node | None, name: str) -> str:
    if known.step is None:
        return "look at the line above, and at the functions of the steps that it names"
    if isinstance(node, ForEachPartition):
        return f"handle it in {name}, which gets a whole partition; a .peek(print) before it shows the items"
    if isinstance(node, WithService):
        return "look at its service, and at what that needs where it is made and destroyed, such as a server"
    if isinstance(node, Sorted | Distinct):
        return f"give .{type(node).__name__.lower()}() keys of one kind; a .peek(print) before it shows the items"
    if isinstance(node, Collect | Write | ForEach):
        return f"look at what {name} was given; it takes more than one item, so none can be replayed alone"
    if isinstance(node, FlatMap | Map):
        return f"look at what {name} was given; a .peek(print) before this step shows the items"
    return f"look at {name}; a .peek(print) before this step shows the items"


def _name(known: Failure) -> str:
    if known.origin is None:
        return "the step"
    return known.origin.function.replace("a lambda", "the lambda")


def _named(function: str) -> str:
    return "the lambda" if function == "lambda" else function
