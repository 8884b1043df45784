"""Comprehensions, functions that builtins call, `try`, `raise` and loops, as expressions that a loop evaluates."""

from __future__ import annotations

import json
import operator
import sys
import types
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, IntEnum
from itertools import repeat
from typing import Any

import pytest

from dstream.engine.compiler.evaluation import step_evaluation
from dstream.expressions import Attribute, Constant, Expression
from dstream.expressions.effects import ChangedInPlace
from dstream.expressions.reader import Unreadable, read
from dstream.operators.rows.loops import run_chain
from dstream.plan.steps import Op, Step, StepEvaluation

_RANK = {"a": 3, "b": 1}
_WORDS = ("a", "b")
_FEW = ["a", "bc"]


class Status(Enum):
    OPEN = "a"
    PAID = "b"


class Level(IntEnum):
    LOW = 1


class Coded(Enum):
    ANY = "a"

    @classmethod
    def _missing_(cls, value: object) -> Coded:
        return cls.ANY


def _of_script(*fns: Callable[..., Any]) -> list[Any]:
    """Return functions that are pickled by value, as those of a script are, with the names of this module."""
    names = {**vars(sys.modules[__name__]), "__name__": "__main__"}
    return [types.FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__, fn.__closure__) for fn in fns]


def _tried(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return -1


def _tried_first(text: str) -> object:
    try:
        number = int(text)
    except (ValueError, TypeError):
        return "none"
    return 6 / number


def _tried_in_order(text: str) -> object:
    try:
        found = 1 / int(text)
    except ZeroDivisionError:
        found = 0.5
    except ArithmeticError:
        return "arithmetic"
    except ValueError:
        pass
    else:
        return found + 1
    return (text, len(text))


def _caught_by_a_handler(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return [][0]


def _raising(text: str) -> str:
    if text == "7":
        raise KeyError(text, "seven")
    return text


def _raising_inside(text: str) -> str:
    try:
        return _raising(text)
    except KeyError:
        return "caught"


def _weighted(text: str) -> int:
    total = 0
    for place, weight in enumerate((3, 5, 7)):
        if len(text) % weight == place:
            continue
        total += len(text) % weight
        if total > 4:
            break
    else:
        total *= 100
    return total


def _summed(text: str) -> float:
    total = 0.5
    for part in text.split():
        if part != "x":
            total -= len(part)
    return total


def _joined(text: str) -> str:
    made = ">"
    for left, right in zip(text, text[2:], strict=False):
        made += left + right
    return made


def _shadowed(text: str) -> list[Any]:
    parts = text.split()
    return [parts for parts in parts if [text for text in parts]]  # noqa: C416


def _nested(text: str) -> list[Any]:
    return [(left, right) for left in text.split() for right in left if right != "-" if left]


def _assigned(text: str) -> list[Any]:
    return [half for part in text.split() if (half := len(part) // 2) if half > 0]


def _let_inside(text: str) -> list[Any]:
    return [part for part in _twice(text) if part]


def _twice(text: str) -> list[str]:
    part = text.strip()
    return [part, part]


def _loop_over_dict(text: str) -> object:
    for name, rank in _RANK.items():
        if name in text:
            return rank
    return None


def _appended(text: str) -> object:
    found = []
    for part in text.split():
        if part:
            found.append(part.upper())  # noqa: PERF401
    return (found, len(found))


def _graded(text: str) -> str:
    for least, grade in [(5, "A"), (1, "B")]:
        if len(text) >= least:
            return grade
    return "C"


def _before_a_condition(text: str) -> object:
    limit = 6 // len(text)
    return [part for part in text if limit]


def _before_a_try(text: str) -> object:
    number = int(text)
    try:
        return 1 / number
    except ValueError:
        return "caught"


def _ended_by_an_inner_else(text: str) -> int:
    rounds = 0
    for first in (1, 2, 3):
        for second in (1, 2):
            if len(text) == second:
                break
        else:
            break
        rounds += first
    else:
        rounds += 100
    return rounds


def _continued_in_an_inner_else(text: str) -> int:
    rounds = 0
    for first in (1, 2, 3):
        for second in (1, 2):
            if len(text) == second * first:
                break
        else:
            if first == 2:
                continue
            rounds += 10
        rounds += first
    return rounds


READ = [
    *(_ended_by_an_inner_else, _continued_in_an_inner_else),
    *(_before_a_condition, _before_a_try),
    *(_appended, _graded),
    *(_tried, _tried_first, _tried_in_order, _caught_by_a_handler, _raising, _raising_inside, _weighted, _summed),
    *(_joined, _shadowed, _nested, _assigned, _let_inside, _loop_over_dict),
    lambda text: {part: len(part) for part in text.split()},
    lambda text: {len(part) for part in text.split()},
    lambda text: sum(len(part) for part in text.split()),
    lambda text: max(text.split(), key=len),
    lambda text: max((len(part) for part in text.split()), default=-1),
    lambda text: min(text.split(), key=lambda part: (part[-1], len(part))),
    lambda text: sorted(text.split(), key=_RANK.get),
    lambda text: sorted(text.split(), key=len, reverse=True),
    lambda text: sorted(enumerate(text.split()), key=operator.itemgetter(1)),
    lambda text: list(map(int, text.split())),
    lambda text: tuple(filter(None, text.split(" "))),
    lambda text: list(filter(lambda part: part > "5", reversed(text.split()))),
    lambda text: any(word in text for word in _WORDS),
    lambda text: all(word in text for word in _FEW if word != "bc"),
    lambda text: any(text.startswith(name) and rank > 1 for name, rank in _RANK.items()),
    lambda text: next((part for part in text.split() if len(part) > 1), "none"),
    lambda text: next((word for word in _WORDS if word in text), None),
    lambda text: ", ".join(part.upper() for part in text.split()),
    lambda text: dict(part.split("-") for part in text.split() if part.count("-") == 1),
    lambda text: dict(zip(text, range(3), strict=False)),
    lambda text: {text: 1, "a": 2, **_copied(text), "b": 3},
    lambda text: [*text, 1, *text.split()],
    lambda text: (*text, 2),
    lambda text: {*text, text},
    lambda text: json.loads(text),
    lambda text: json.dumps({"b": text, "a": 1}, sort_keys=True),
    lambda text: type(text) is str and type(len(text)) in (int, bool),
    lambda text: type(text).__name__,
    lambda text: type(text) != str,  # noqa: E721
    lambda text: Status(text),
    lambda text: Status(text).name,
    lambda text: Status(text) is Status.PAID,
    lambda text: (Status.OPEN, len(text) > Level.LOW, len(text) + Level.LOW, f"{Level.LOW}"),
    lambda text: Decimal(sum(len(part) for part in text.split())) / 3,
    lambda text: round(len(text) / 3, ndigits=1),
    lambda text: text.split(maxsplit=1),
    lambda text: sum([1.5 for _ in text], start=2),
    lambda text: len(_FEW) + len(text),
    lambda text: [word for word in _FEW if word in text],
    lambda text: (lambda: 0)() if text is None else text,
]
_TEXTS = ["a", "b", "7", "0", "", "x y 12", "bc a-b", "-7", "q-1 z-2", "Zß", '{"a": [1, NaN]}', "4 9 1"]


def _copied(text: str) -> dict[str, int]:
    return {text: 5}


@pytest.mark.parametrize("fn", _of_script(*READ[:-1]), ids=lambda fn: str(fn.__code__.co_firstlineno))
def test_expressions_give_the_results_and_errors_of_functions(fn: Callable[[Any], Any]) -> None:
    """Also the item that failed, with the line of the user."""
    assert isinstance(read(fn), Expression), read(fn)

    for item in [*_TEXTS, 5, None, ["a", "b c"]]:
        assert _outcome(_op(fn, inlined=True), item) == _outcome(_op(fn, inlined=False), item), item


def _op(fn: Callable[[Any], Any], *, inlined: bool) -> Op:
    expression: Any = read(fn)
    return Op("map", fn, None, Step("map", None, 1, 3), evaluation=StepEvaluation(expression, is_inlined=inlined))


def _outcome(op: Op, item: Any) -> object:
    try:
        return [(type(each), repr(each)) for each in run_chain([op], [item])]
    except Exception as error:
        frames, traceback = [], error.__traceback__
        while traceback is not None:
            frames.append(traceback.tb_lineno if traceback.tb_frame.f_code is op.fn.__code__ else 0)
            traceback = traceback.tb_next
        return type(error), str(error), frames and max(frames), error.__context__ is None


def _changes_an_item(item: Any) -> Any:
    found = item[0]
    found += [1]
    return found


def _changes_a_choice(item: Any) -> Any:
    found = item[0] or 5
    found += item[1]
    return found


def _looks_at_the_error(text: str) -> object:
    try:
        return int(text)
    except ValueError as error:
        return str(error)


def _does_more_inside(text: str) -> object:
    try:
        number = int(text)
        return 1 / number
    except ValueError:
        return 0


def _at_last(text: str) -> object:
    try:
        return int(text)
    finally:
        len(text)


class _Own(ValueError):
    pass


def _own_exception(text: str) -> object:
    try:
        return int(text)
    except _Own:
        return 0


def _own_inside(text: str) -> object:
    try:
        return _raises_its_own(text)
    except ValueError:
        return 0


def _raises_its_own(text: str) -> object:
    raise _Own(text)


def _looks_meanwhile(text: str) -> object:
    total = 0
    for part in text.split():
        total += len(part) + total
    return total


def _appended_to_itself(text: str) -> object:
    found = []
    for part in text.split():
        found.append((part, len(found)))
    return found


def _appended_behind(text: str) -> object:
    part, found = "none", []
    found = []
    for part in text.split():
        found.append(part)
    return part, found


def _variable_before_and_behind(text: str) -> object:
    part, total = "none", 0
    total = 0
    for part in text.split():
        total += len(part)
    return part, total


def _variable_behind(text: str) -> object:
    total = 0
    for part in text.split():
        total += len(part)
    return part, total


def _walrus_behind(text: str) -> object:
    found = [half for part in text.split() if (half := len(part))]
    return found, half


def _walrus_before_and_behind(text: str) -> object:
    half = -1
    found = [half for part in text.split() if (half := len(part)) > 1]
    return found, half


def _walrus_of_a_sum(text: str) -> object:
    text = text.strip()
    found = sum(1 for part in text.split() if (text := part))
    return found, text


def _walrus_of_any(text: str) -> object:
    last = 0
    found = any(last > len(text) for weight in (1, 2, 3) if (last := weight) > 1)
    return found, last


def _walrus_of_a_loop(text: str) -> object:
    last, total = 0, 0
    total = 0
    for part in text.split():
        if (last := len(part)) > 2:
            total += last
    return total, last


def _walrus_of_a_loop_that_appends(text: str) -> object:
    last, found = -1, []
    found = []
    for part in text.split():
        if (last := len(part)) > 1:
            found.append(last)
    return found, last


def _walrus_of_a_nested_one(text: str) -> object:
    last = 0
    found = [sum(1 for each in part if (last := each)) for part in text.split()]
    return found, last


def _walrus_in_one_branch(text: str) -> object:
    if text > "b":
        last = 0
    found = [last for part in text.split() if (last := len(part))]
    return found, last


def _walrus_in_a_try(text: str) -> object:
    last = "none"
    try:
        found = [int(part) for part in text.split() if (last := part)]
    except ValueError:
        return last
    return found


def _many_ways(text: str) -> object:
    total = 0
    for weight in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15):
        if len(text) % weight:
            total += 1
        else:
            total += 2
    return total


UNREAD = [
    *(_own_exception, _variable_behind, _walrus_behind),
    *(_walrus_before_and_behind, _walrus_of_a_sum, _walrus_of_any, _walrus_of_a_nested_one),
    *(_walrus_in_one_branch, _walrus_in_a_try),
    lambda text: max(text, key=lambda part: (any(1 for each in part if (_WORDS := each)), _WORDS)),
    lambda text: map(str, text),
    lambda text: zip(text, text, strict=True),
    lambda text: [part for part in map(str, text, text)],  # noqa: C416
    lambda text: next(iter(text)),
    lambda text: sorted(text, key=_of_any),
    lambda text: [part for (part, (first, second)) in text],
    lambda text: Coded(text),
    lambda text: Coded.ANY,
    lambda text: [own(part) for own in text for part in text],
    lambda text: operator.iadd(text, [1]),
    lambda text: list(repeat(text, 2)),
    lambda text: type(text) is Status,
]


def _of_any(value: Any) -> Any:
    yield value


def test_members_of_plain_enumerations_are_constants() -> None:
    """The value of one that does not travel with the function is that of the class which a worker imports."""
    assert read(lambda x: Level.LOW) == Constant(Level.LOW)
    assert read(lambda x: Level.LOW.value) == Attribute(Constant(Level.LOW), "value")
    assert Constant(Level.LOW) != Constant(1)


@pytest.mark.parametrize("fn", _of_script(*UNREAD), ids=lambda fn: str(fn.__code__.co_firstlineno))
def test_functions_that_do_more_are_called(fn: Callable[[Any], Any]) -> None:
    """They change something, look at an exception, keep an iterator, or are too long with each way written out."""
    assert isinstance(read(fn), Unreadable)


STATEMENTS = [
    *(_looks_at_the_error, _does_more_inside, _at_last, _looks_meanwhile, _many_ways),
    *(_appended_to_itself, _appended_behind, _variable_before_and_behind),
    *(_walrus_of_a_loop, _walrus_of_a_loop_that_appends),
]


@pytest.mark.parametrize("fn", _of_script(*STATEMENTS), ids=lambda fn: str(fn.__code__.co_firstlineno))
def test_statements_give_the_results_and_errors_of_functions(fn: Callable[[Any], Any]) -> None:
    """Where a loop changes variables that have a value before, between and behind its rounds."""
    test_expressions_give_the_results_and_errors_of_functions(fn)


@pytest.mark.parametrize("fn", _of_script(_changes_an_item, _changes_a_choice))
def test_a_value_of_an_item_is_changed_by_no_operator(fn: Callable[[Any], Any]) -> None:
    """A list is left to the function, as it is; a number is no other one before than behind."""
    op, item = _op(fn, inlined=True), [["a"], ["b"]]

    with pytest.raises(ChangedInPlace):
        list(run_chain([op], [item]))

    assert item == [["a"], ["b"]]
    assert _outcome(op, (3, 4)) == _outcome(_op(fn, inlined=False), (3, 4))
    assert not step_evaluation(op, read(fn)).is_inlined  # type: ignore[arg-type]


def test_an_exception_of_a_class_of_the_users_is_raised_by_the_function() -> None:
    """Its class may run code when one is made, or be caught by what catches another one."""
    (raises,) = _of_script(_raises_its_own)
    op = Op("map", raises, None, Step("map", None, 1, 3))

    assert not step_evaluation(op, read(raises)).is_inlined  # type: ignore[arg-type]
    assert isinstance(read(_own_inside), Unreadable)
