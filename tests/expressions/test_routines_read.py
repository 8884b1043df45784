"""Functions of several statements, as what Python runs for each row."""

from __future__ import annotations

import dataclasses
import linecache
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from dstream.expressions import Expression, Routine
from dstream.expressions.reader import Unreadable, read
from dstream.operators.rows.loops import run_chain
from dstream.plan.steps import Op, Step, StepEvaluation

_ALL: list[str] = []
_KNOWN = {"a": 1, "b": 2}


@dataclasses.dataclass(frozen=True)
class Pair:
    first: str
    second: int = 7


@dataclasses.dataclass
class Checked:
    first: str

    def __post_init__(self) -> None:
        _ALL.append(self.first)


def _counts(text: str) -> Any:
    counts: dict[str, int] = {}
    for sign in text:
        counts[sign] = counts.get(sign, 0) + 1
        counts[sign] += 1
    return counts


def _by_default(text: str) -> Any:
    counts = defaultdict(int)
    for sign in text:
        counts[sign] += len(sign)
    return dict(counts)


def _grouped(text: str) -> Any:
    groups: dict[str, list[str]] = {}
    for word in text.split():
        groups.setdefault(word[0], []).append(word)
    return groups


def _tried(text: str) -> Any:
    try:
        first, second = text.split(",")
        return first, int(second)
    except (ValueError, KeyError) as error:
        return f"{type(error).__name__}: {error}"


def _changed_before_it_failed(text: str) -> Any:
    total = 1
    try:
        total = len(text)
        total += int(text)
    except ValueError:
        pass
    else:
        total *= 100
    finally:
        text = "end"
    return total, text


def _in_a_loop(text: str) -> Any:
    part = ""
    for part in text.split(","):
        try:
            number = int(part)
        except ValueError:
            continue
        if number > 5:
            break
    else:
        return None
    return part == text


def _found(text: str) -> Any:
    for part in text.split(","):
        if part.isdigit():
            return part
    return None


def _same_list(text: str) -> Any:
    first = second = [text]
    first.append(text)
    return first, second


def _matched(text: str) -> Any:
    match text.split(","):
        case ["a" | "b" as letter, str(number)] if number:
            return letter, number
        case [_]:
            text = "one"
    return text


def _rebound(text: str) -> Any:
    if text.startswith("a"):
        text = text[1:]
        for sign in text:
            text = sign
    return text


def _defined(text: str) -> Any:
    sign = "-"

    def joined(words: list[str]) -> str:
        if not words:
            return "none"
        return sign.join(words)

    first = joined(text.split(","))
    sign = "+"
    return first, joined(text.split(",")), [joined([word]) for word in text.split(",")]


def _finally_alone(text: str) -> Any:
    found = []
    try:
        try:
            found.append(int(text))
        finally:
            found.append(text)
        try:
            return _KNOWN[text]
        finally:
            pass
    except (ValueError, KeyError) as error:
        return found, str(error)


def _raised_again(text: str) -> Any:
    try:
        try:
            return _KNOWN[text]
        except KeyError as error:
            if text == "x":
                raise
            raise ValueError(f"no {error}") from error
    except ValueError as error:
        return repr(error)


def _sorted(text: str) -> Any:
    words = text.split(",")
    words.sort(key=lambda word: (-len(word), word))
    words[0] = words[-1]
    return words


def _of_the_item(text: str) -> Any:
    total = text
    total += "!"
    for sign in text:
        total += sign
    return total


def _by_keyword(text: str, *, sign: str = "+", times: int = 2) -> str:
    return text + sign * times


def _third(text: str) -> str:
    return text + "3"


def _second(text: str) -> str:
    return _third(text) + "2"


_FUNCTIONS: list[Callable[[Any], Any]] = [
    *(_counts, _by_default, _grouped, _tried, _changed_before_it_failed, _in_a_loop, _found, _same_list, _matched),
    *(_finally_alone, _of_the_item, _rebound, _defined, _raised_again, _sorted),
    lambda text: _by_keyword(text, sign="!"),
    lambda text: _second(text) + "1",
    lambda text: Counter(text.split(",")).most_common(1),
    lambda text: re.sub("[a-z]", lambda found: found.group().upper(), text),
    lambda text: [found.group() for found in re.finditer("[0-9]+", text)],
    lambda text: text.translate({97: "e"}),
    lambda text: Pair(*text.split(",")[:2]),
    lambda text: Pair(**{"first": text, "second": len(text)}),  # noqa: PIE804
    lambda text: dataclasses.asdict(Pair(text)),
]


@pytest.mark.parametrize("fn", _FUNCTIONS)
@pytest.mark.parametrize("text", ["a,12", "12,x,7", "a", "", "abc a", "x", "7", "b,", "a,b"])
def test_statements_give_what_python_gives(fn: Callable[[Any], Any], text: str) -> None:
    """Also where they raise, with the error and the message of the function itself."""
    expression = read(fn)
    assert isinstance(expression, Expression), expression

    found, expected = _outcome(lambda: list(run_chain([_op(fn, expression)], [text]))), _outcome(lambda: [fn(text)])

    assert (found, repr(found)) == (expected, repr(expected))


def _op(fn: Any, expression: Expression) -> Op:
    return Op("map", fn, None, Step("map", None, 0, 1), evaluation=StepEvaluation(expression, None, True))


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:
        return type(error), str(error)


def test_an_assert_raises_its_message() -> None:
    """The message is evaluated where it fails alone."""
    text = "def asserted(text):\n    assert text != 'a', f'not {text}'\n    assert text\n    return text\n"
    linecache.cache["<asserting>"] = len(text), None, text.splitlines(keepends=True), "<asserting>"
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<asserting>", "exec"), names)

    for item in ("a", "", "b"):
        test_statements_give_what_python_gives(names["asserted"], item)


def test_one_container_with_two_names_is_one_in_the_result() -> None:
    """A tuple has the same list twice."""
    expression = read(_same_list)
    assert isinstance(expression, Routine)

    ((first, second),) = run_chain([_op(_same_list, expression)], ["a"])

    assert first is second


def _changes_its_item(tags: Any) -> Any:
    tags.append("x")
    return tags


def _changes_in_the_next_round(words: Any) -> Any:
    found = []
    for word in words:
        found.append("x")
        found = word
    return found


def _changes_a_member(item: Any) -> Any:
    found = {"tags": item}
    found["tags"].append("x")
    return found


def _adds_to_a_member(item: Any) -> Any:
    found = {}
    found["tags"] = item
    found["tags"] += item
    return found


def _changes_the_script(text: str) -> Any:
    _ALL.append(text)
    return text


def _keeps_the_exception(text: str) -> Any:
    try:
        first, second = text
    except ValueError as error:
        return error
    return first, second


def _changes_by_two_names(item: Any) -> Any:
    found = []
    other = found
    other.append(item)
    found[0].append("x")
    return found


def _in_one_branch(text: str) -> Any:
    if text:
        found = {text}
        found.add("x")
    return found


def _checked(row: Any) -> Any:
    return Checked(**row)


def _without_a_value(text: str) -> Any:
    for part in text.split(","):
        last = part
    return last


def _catches_all(text: str) -> Any:
    try:
        first, second = text
        return first + second
    except:  # noqa: E722
        return 0


def _captures_what_a_comprehension_hides(text: str) -> Any:
    sign = "-"

    def signed(word: str) -> str:
        return word + sign

    return [signed(word) for word in text for sign in "+"]


def _hides_that_it_changes(item: Any) -> Any:
    found = item
    try:
        found += [7]
    finally:
        return found  # noqa: B012


def _assigned_at_the_end(text: str) -> Any:
    try:
        sign = text
    finally:
        found = [1 for part in text if (sign := part)]
    return sign, found


def _copies_a_dict(item: Any) -> Any:
    found = item.copy()
    found["tags"].append("x")
    return found


def _deletes_in_a_loop(text: str) -> Any:
    error = None
    for part in text:
        try:  # noqa: SIM105
            int(part)
        except ValueError as error:  # noqa: F841
            pass
    return error


def _deletes_inside(text: str) -> Any:
    try:
        return int(text), len(text)
    except ValueError as error:
        for part in text:
            try:  # noqa: SIM105
                int(part)
            except ValueError as error:  # noqa: F841
                pass
        return str(error)


def _adds_inside(item: Any) -> Any:
    out: list[Any] = []

    def add() -> int:
        out.append(item)
        return 1

    n = add()
    out[0].append("x")
    return out, n


def _loops(number: int) -> int:
    while number > 5:
        number -= 5
    return number


def _alone(number: int) -> int:
    return _alone(number - 1) if number else 0


@pytest.mark.parametrize(
    ("fn", "reason"),
    [
        (_changes_its_item, "changes tags, which may be a part of an item"),
        (_changes_in_the_next_round, "changes found, which may be a part of an item"),
        (_changes_a_member, "changes what found contains"),
        (_adds_to_a_member, "changes what found contains"),
        (_changes_by_two_names, "changes what found contains"),
        (_in_one_branch, "uses found before it has a value"),
        (_checked, "unpacks arguments with **"),
        (_changes_the_script, "calls _ALL.append"),
        (_keeps_the_exception, "does more with an exception than to show it"),
        (_without_a_value, "uses last before it has a value"),
        (_catches_all, "catches all exceptions"),
        (_captures_what_a_comprehension_hides, "calls signed where a variable has a name that it captures"),
        (_hides_that_it_changes, "changes a variable inside of a try with finally"),
        (_assigned_at_the_end, "uses sign before it has a value"),
        (_copies_a_dict, "changes what found contains"),
        (_deletes_in_a_loop, "gives error another value than an exception"),
        (_deletes_inside, "gives error another value than an exception"),
        (_adds_inside, "changes out, which may be a part of an item"),
        (_loops, "has a loop"),
        (_alone, "calls itself"),
    ],
)
def test_other_statements_are_not_read(fn: Callable[[Any], Any], reason: str) -> None:
    """Functions that change an item or a captured container, or that show what a copy of them would not."""
    found = read(fn)

    assert isinstance(found, Unreadable)
    assert found.reason.startswith(reason), found.reason


def test_a_class_of_a_pattern_may_have_another_name() -> None:
    """It is one of the script that the columns do not know."""
    text = """Text = str
def matched(text):
    try:
        match text:
            case Text():
                return "text"
        return "other"
    except Exception:
        return "failed"
"""
    linecache.cache["<matching>"] = len(text), None, text.splitlines(keepends=True), "<matching>"
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<matching>", "exec"), names)
    expression = read(names["matched"])
    assert isinstance(expression, Expression)

    assert list(run_chain([_op(names["matched"], expression)], ["a", 1])) == ["text", "other"]
