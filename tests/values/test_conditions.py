"""`where` and the conditions that it makes: values that can be called, printed, pickled and combined."""

from __future__ import annotations

import functools
import math
import operator
import pickle
import re
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream import Entry, where


class City(NamedTuple):
    name: str
    size: int | None = None


@dataclass
class Person:
    name: str | None
    age: int | None = None
    city: City | None = None


ADA, ALAN = Person("Ada", 36, City("London", 9)), Person("Alan", 41, City("Oslo"))

CONDITIONS = {
    "where('age') == 36": (where("age") == 36, [True, False]),
    "where('age') != 36": (where("age") != 36, [False, True]),
    "where('age') < 41": (where("age") < 41, [True, False]),
    "where('age') <= 41": (where("age") <= 41, [True, True]),
    "where('age') > 36": (where("age") > 36, [False, True]),
    "where('age') >= 36": (where("age") >= 36, [True, True]),
    "(where('age') >= 30) & (where('age') <= 36)": (where("age").between(30, 36), [True, False]),
    "where('name').is_in(['Ada', 'Emmy'])": (where("name").is_in(["Ada", "Emmy"]), [True, False]),
    "where('city.name') == 'Oslo'": (where("city.name") == "Oslo", [False, True]),
    "where('city.size').is_none()": (where("city.size").is_none(), [False, True]),
    "where('name').like('A_a')": (where("name").like("A_a"), [True, False]),
    "where('name').ilike('a%N')": (where("name").ilike("a%N"), [False, True]),
    "where('name').regex('A[dx]a')": (where("name").regex("A[dx]a"), [True, False]),
    "~(where('age') == 36)": (~(where("age") == 36), [False, True]),
    "(where('age') == 36) | (where('age') == 41)": ((where("age") == 36) | (where("age") == 41), [True, True]),
}


@pytest.mark.parametrize("shown", CONDITIONS)
def test_a_condition_holds_for_some_items_and_is_shown_as_its_call(shown):
    """Of objects, of entries that hold them, and after a way through pickle."""
    condition, expected = CONDITIONS[shown]
    copy = pickle.loads(pickle.dumps(condition))

    assert repr(condition) == shown
    for asked in (condition, copy):
        assert [asked(ADA), asked(ALAN)] == [asked(Entry("k", ADA)), asked(Entry("k", ALAN))] == expected
    assert (copy == condition, hash(copy) == hash(condition)) == (True, True)


def test_this_and_the_key():
    """`this` is the value itself, `__key` the key of an entry."""
    entry = Entry(City("Oslo", 1), 5)
    conditions = [where("this") == 5, where("__key.name") == "Oslo", where("__key") == ("Oslo", 1)]

    assert [condition(entry) for condition in conditions] == [True, True, True]
    with pytest.raises(TypeError, match=r"'__key'\) needs entries of a map, not int"):
        (where("__key") == 5)(5)


def test_a_mapping_without_the_key_has_none_there():
    """As in JSON; an object without the attribute is an error, which names the field."""
    assert (where("age").is_none()({}), (where("a.b.c") == 1)({"a": None})) == (True, False)
    with pytest.raises(AttributeError, match=re.escape("where('city.nam'): City has no field 'nam'")):
        (where("city.nam") == "Oslo")(ADA)


NONE = Person(None)
OPEN = [
    where("age") == 1, where("age") != 1, where("age") < 1, where("age") >= 1, where("age").between(1, 2),
    where("age").is_in([1]), where("name").like("%"), where("name").regex(".*"), where("city.name") == "x",
]  # fmt: skip


@pytest.mark.parametrize("condition", OPEN, ids=repr)
def test_none_satisfies_neither_a_condition_nor_its_opposite(condition):
    """As in SQL; with a condition that is known, `|` and `&` decide where that is possible."""
    known, unknown = where("age").is_none(), ~where("age").is_none()

    assert [condition(NONE), (~condition)(NONE), (condition & known)(NONE)] == [False, False, False]
    assert [(condition | known)(NONE), (~(condition & unknown))(NONE)] == [True, True]


def test_equal_to_none_means_is_none():
    """`== None` and `!= None` are not open."""
    conditions = [where("age") == None, where("age") != None]  # noqa: E711 - what is tested

    assert [[condition(item) for item in (NONE, ADA)] for condition in conditions] == [[True, False], [False, True]]


def test_a_nan_equals_nothing():
    """As in Python, also the very same object in a list."""
    nan = math.nan

    assert [(where("this") == nan)(nan), where("this").is_in([nan, 1.0])(nan)] == [False, False]
    assert where("this").is_in([nan, 1.0])(1) is True


def test_is_in_takes_what_has_no_hash():
    """Values and fields may be lists; a field may equal what is no list itself."""
    assert where("this").is_in([[1], 2])([1]) is True
    assert where("this").is_in([1, 2])([1]) is False


def test_like_takes_characters_for_themselves():
    """Backslashes free `%` and `_` of their meaning; signs of regular expressions have none; lines are characters."""
    samples = {r"50\%": "50%", "a.c": "a.c", "a%": "a\nb", r"\\%": r"\x"}

    assert [where("this").like(pattern)(text) for pattern, text in samples.items()] == [True] * 4
    assert [where("this").like(r"50\%")("505"), where("this").like("a.c")("abc")] == [False, False]


def test_thousands_of_conditions_are_one_level():
    """They are neither built nor asked by recursion, and are pickled."""
    many = functools.reduce(operator.or_, [where("this") == n for n in range(5000)])

    assert pickle.loads(pickle.dumps(many))(4999) is True
    assert len(many.parts) == 5000


REFUSED = {
    "path": (lambda: where(5), TypeError, "takes the name of a field"),
    "empty path": (lambda: where("a..b"), ValueError, "takes the name of a field"),
    "None": (lambda: where("a") < None, ValueError, r"where\('a'\) is compared with None"),
    "None among": (lambda: where("a").is_in([1, None]), ValueError, "compared with None"),
    "field": (lambda: where("a") == where("b"), TypeError, "with a value, not with where"),
    "text": (lambda: where("a").is_in("NO"), TypeError, "several values"),
    "number": (lambda: where("a").is_in(5), TypeError, "several values"),
    "like": (lambda: where("a").like(5), TypeError, r"like\(\) takes a pattern"),
    "regex": (lambda: where("a").regex("("), ValueError, r"regex\('\('\) takes a pattern"),
    "and": (lambda: (where("a") == 1) and 5, TypeError, "combine conditions with &"),
    "chain": (lambda: 1 < where("a") < 5, TypeError, "between"),
    "not": (lambda: not where("a"), TypeError, "is a field, not a condition"),
    "lambda": (lambda: (where("a") == 1) & len, TypeError, "combined with another one"),
    "parentheses": (lambda: where("a") > 1 & where("b"), TypeError, "needs parentheses"),
}


@pytest.mark.parametrize("label", REFUSED)
def test_what_is_no_condition_is_refused_where_it_is_written(label):
    """Rather than where the data is, or never."""
    call, kind, words = REFUSED[label]
    with pytest.raises(kind, match=words):
        call()


def test_what_cannot_be_compared_is_an_error_that_names_the_value():
    """It is never taken for a no."""
    with pytest.raises(TypeError, match=re.escape("where('name') > 5, on the value 'Ada': '>' not supported")):
        (where("name") > 5)(ADA)
    with pytest.raises(TypeError, match="looks at texts, and the value 36 is none"):
        where("age").like("3%")(ADA)


NUMBERS = st.integers(0, 3)
LEAVES = st.one_of(
    st.tuples(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), NUMBERS),
    st.tuples(st.just("in"), st.lists(NUMBERS, max_size=2)),
)
TREES = st.recursive(LEAVES, lambda inner: st.tuples(st.sampled_from("&|~"), inner, inner), max_leaves=6)
SYMBOLS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt}


def condition_of(tree):
    """Return a tree as a condition on `n`."""
    match tree:
        case ("&" | "|" as symbol, left, right):
            return {"&": operator.and_, "|": operator.or_}[symbol](condition_of(left), condition_of(right))
        case ("~", inner, _):
            return ~condition_of(inner)
        case ("in", values):
            return where("n").is_in(values)
        case (symbol, number):
            return {**SYMBOLS, ">=": operator.ge}[symbol](where("n"), number)


def truth(tree, n):
    """Say what SQL says: 1 for true, 0 for false, a half for what is not known."""
    match tree:
        case ("&", left, right):
            return min(truth(left, n), truth(right, n))
        case ("|", left, right):
            return max(truth(left, n), truth(right, n))
        case ("~", inner, _):
            return 1 - truth(inner, n)
        case ("in", values):
            return 0.5 if n is None else n in values
        case (symbol, number):
            return 0.5 if n is None else {**SYMBOLS, ">=": operator.ge}[symbol](n, number)


@given(TREES, st.none() | NUMBERS)
@settings(max_examples=200, deadline=None)
def test_any_condition_says_what_sql_says(tree, n):
    """Kleene's logic: what is not known is neither true nor false."""
    assert condition_of(tree)({"n": n}) is (truth(tree, n) == 1)
