"""`Step`: the label and source location of a call; `Op`: a call for each item, with its `Guard`s."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from dstream.base.functions import refuse_awaitable
from dstream.base.records import record
from dstream.base.showing import cell_of
from dstream.failures import blame, is_ours, naming
from dstream.failures.attribution import each
from dstream.values.user_functions import shown_function

if TYPE_CHECKING:
    from dstream.expressions import Expression

__all__ = [
    "NO_CALL",
    "Delivery",
    "EarlyCheck",
    "Emitted",
    "Guard",
    "KeyInColumns",
    "Op",
    "PairFunction",
    "SourceLocation",
    "Step",
    "StepEvaluation",
    "Treatment",
    "call_site",
    "called",
    "column_steps",
    "entry_point",
    "here",
    "no_key",
    "one_key",
    "place_of_open_pairs",
    "resolving",
    "shown_function",
    "unchanged",
]


class SourceLocation(NamedTuple):
    """A location in the user's code.

    Attributes:
        cell: the number of the notebook cell, which a worker cannot determine; None for any other file.
    """

    file: str
    line: int
    cell: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.cell is None else f"cell {self.cell}, line {self.line}"


def _where(frame: FrameType) -> SourceLocation:
    file = frame.f_code.co_filename
    return SourceLocation(file, frame.f_lineno, cell_of(file))


def call_site() -> SourceLocation | None:
    """Return the location in the user's code that called dstream, or None if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame):
            return _where(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def entry_point() -> tuple[str, SourceLocation | None]:
    """Return the name of the function by which the user's code called dstream, and the location of that call."""
    frame = sys._getframe(1)
    name = frame.f_code.co_name
    while frame is not None:
        if not is_ours(frame):
            return name, _where(frame)
        name = frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return name, None


@record
class Step:
    """One step of the user's chain.

    Attributes:
        label: the call as the user wrote it, such as `.map(parse)`; empty: the user wrote none; `.`, until steps have
            numbers: the call that its operation shows.
        where: the source location of that call.
        position: its number in the chain, from 1; 0: `rewrite` has not counted the steps yet.
        total: the number of steps of the chain.
        stage: the name that the user gave to the stage of a pipeline which ends here, until it is part of the label.
    """

    label: str = "."
    where: SourceLocation | None = None
    position: int = 0
    total: int = 0
    stage: str | None = None

    @property
    def is_unnamed(self) -> bool:
        """Whether the name of the call is in its operation only."""
        return self.label == "."

    def __str__(self) -> str:
        location = f" at {self.where}" if self.where else ""
        return f"step {self.position} of {self.total}: {self.label}{location}"

    def guard(self, fn: Callable[[Any], Any], *, is_predicate: bool = False) -> Callable[[Any], Any]:
        """Return `fn` so that its exceptions, and that of the truth of a predicate, name this step and the item."""
        return _Guarded(self, fn, is_predicate)


NO_CALL = Step("")
"""The step of an operation that the user wrote no call for."""


def here() -> Step:
    """Return the step of the call that the user has just written, whose operation shows it."""
    return Step(where=call_site())


def called(name: str, *given: Any, where: SourceLocation | None = None) -> Step:
    """Return the step of the call of a method that the user has just written.

    Args:
        name: the name of the method.
        given: its arguments: functions, or strings as they are shown.
        where: the source location of the call; None: it is determined from the stack.
    """
    shown = [each if isinstance(each, str) else shown_function(each) for each in given if each is not unchanged]
    return Step(f".{name}({', '.join(shown)})", where or call_site())


@record
class _Guarded:
    """A function whose exceptions name a step and the item."""

    step: Step
    fn: Callable[[Any], Any]
    is_predicate: bool

    def __call__(self, item: Any) -> Any:
        try:
            result = self.fn(item)
            # This runs for each item, and a look at the type is much cheaper than the check.
            if type(result) not in _USUAL:
                refuse_awaitable(result)
                return bool(result) if self.is_predicate else result
            return result
        except StopIteration as error:
            # What iterates would take it for the end of the items.
            failed = RuntimeError(f"{shown_function(self.fn)} raised StopIteration")
            blame(failed, self.step, item)
            raise failed from error
        except Exception as error:
            blame(error, self.step, item)
            raise


_USUAL = frozenset({bool, int, float, str, bytes, tuple, type(None)})
"""The types of most keys and of most results of predicates."""

Treatment = Literal["ignored", "resolved", "sent"]


class Delivery(Protocol):
    """Takes dead letters to where they go, in the caller's process."""

    @property
    def label(self) -> str:
        """The destination, as the user wrote it."""
        ...

    def __call__(self, letters: Iterable[Any]) -> None:
        """Commit `letters`, all of them or none."""
        ...

    def report(self, report: Callable[[], object]) -> None:
        """Call `report`, which writes to the user that letters were sent, after they were sent."""
        ...


@record
class Guard:
    """The treatment of items that a step fails on.

    Attributes:
        kinds: the exceptions that it handles.
        treatment: what happens to a failed item.
        fn: takes the item and the exception; returns the replacement.
        kind: the type of the replacement: None for any, `int` or `float`.
        delivery: takes the dead letters.
        step: how the user's call names itself.
        of: the step that it looks after.
    """

    kinds: tuple[type[Exception], ...]
    treatment: Treatment
    fn: Callable[[Any, Exception], Any] | None
    kind: type | None
    delivery: Delivery | None
    step: Step
    of: Step

    @property
    def channel(self) -> int:
        """The number of its channel to the driver."""
        return self.step.position

    def on_a_worker(self) -> Guard:
        """Return the guard without the parts that are used in the driver only."""
        return replace(self, delivery=None)


def resolving(guards: Iterable[Guard]) -> Iterator[tuple[Step, Any]]:
    """Yield the functions of guards that replace an item, with their calls."""
    return ((guard.step, guard.fn) for guard in guards if guard.fn is not None)


@record
class StepEvaluation:
    """The evaluation of a step's function: decided by the compiler, shown by `explain()`, followed by tasks.

    Attributes:
        expression: the result of the function, if the compiler could read it.
        obstacle: why the step takes no columns, in words that follow "since"; None if it takes them.
        is_inlined: a loop over items evaluates the expression instead of calling the function.
        operators: how many operators and calls the expression has, as a measure of its cost.
        is_verified: the results of columns are compared with those of the function.
        conditions: what must be true of the data to run over columns, in words that follow "if".
    """

    expression: Expression | None = None
    obstacle: str | None = "its function is called"
    is_inlined: bool = False
    operators: int = 0
    is_verified: bool = False
    conditions: tuple[str, ...] = ()


_CALLED = StepEvaluation()


@record
class Op:
    """One element-wise step of a `Chain`.

    Attributes:
        action: `"map"`, `"filter"`, `"flat_map"`, `"peek"`, or `"count"`, whose function takes how many items passed.
            `"unpair"` lets the item of a pair `(timestamp, item)` go on, until `"pair"` brings the timestamp back.
        kind: None, or `int` or `float`: what each result must be.
        guards: what happens to items that it fails on.
        evaluation: how tasks evaluate `fn`; they call it, unless the compiler has decided otherwise.
    """

    action: str
    fn: Callable[[Any], Any]
    kind: type | None
    step: Step
    guards: tuple[Guard, ...] = ()
    evaluation: StepEvaluation = _CALLED

    def steps(self) -> list[Step]:
        """Return the calls of the user that it runs."""
        return [self.step, *(guard.step for guard in self.guards if guard.step.label)]


def column_steps(ops: Iterable[Op]) -> list[Op]:
    """Return the first steps of a chain, up to one that takes no columns; none if none of them does anything there."""
    first = list(takewhile(lambda op: op.evaluation.obstacle is None, ops))
    first = first[: place_of_open_pairs(first)]
    return first if any(op.evaluation.expression is not None or op.action == "pair" for op in first) else []


def place_of_open_pairs(ops: Sequence[Op]) -> int | None:
    """Return the index of the step that takes pairs apart without a later step that restores them; None: there is none.

    After steps between the two, a loop would not find the timestamps.
    """
    around = [index for index, op in enumerate(ops) if op.action in ("pair", "unpair")]
    return around[-1] if around and ops[around[-1]].action == "unpair" else None


@record
class EarlyCheck:
    """Refuses an item that an end will refuse, in the name of that end.

    Attributes:
        check: raises what the end would raise; writes nothing.
        step: of the end.
    """

    check: Callable[[Any], object]
    step: Step

    def at(self, item: Any) -> None:
        """Check an item."""
        with naming(self.step):
            each(self.check, [item])


@record
class KeyInColumns:
    """The form of keys that may be stored in columns.

    Attributes:
        expression: the result of the key function, if the compiler could read it and columns support it.
        is_verified: the keys in columns are compared with those of Python.
    """

    expression: Expression | None
    is_verified: bool


@record
class Emitted:
    """`map_multi` as a `flat_map`: the items that `fn` emits, as a list."""

    fn: Callable[[Any, Callable[[Any], None]], object]

    def __call__(self, item: Any) -> list[Any]:
        emitted: list[Any] = []
        if (result := self.fn(item, emitted.append)) is not None:
            refuse_awaitable(result)
        return emitted


PairFunction = Literal["key", "value", "swap", "on_value", "if_value", "key_by", "starred", "instant", "end_of_frame"]
"""The work of a function of dstream's around one of the user's, by the attribute `around` of its class.

`on_value` returns an entry with `fn` of its value, `if_value` a tuple of the entry or of nothing, `key_by` the entry of
`fn(item)` and the item, `starred` `fn(*item)`, `instant` the timestamp `fn(item)`, `end_of_frame` the end of the frame
of its `window` that has that timestamp.
"""


def no_key(item: Any) -> None:
    """Return None: the key of an item where all items match each other."""


def one_key(item: Any) -> int:
    """Return the one key of all items, a value that columns can store, as None is not."""
    return 0


def unchanged(item: Any) -> Any:
    """Return `item`: the function of a step that only checks or converts."""
    return item
