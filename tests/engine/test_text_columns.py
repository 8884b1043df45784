"""What functions give over columns of texts is what they give in Python, or nothing."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dstream.base.memory import Bound
from dstream.base.pickling import dumps
from dstream.expressions import Argument, Choice, Constant, Indexed, Let, Local, Method
from dstream.expressions.reader import read
from dstream.expressions.tree import Expression
from dstream.keys import stable_hash
from dstream.operators.columns.capabilities import (
    STRING_METHODS,
    left_to_python,
    unsupported,
    unsupported_in_flat_map,
)
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.groups import groups_of_texts, merged_text_tables, parts_by_target, with_texts_together
from dstream.operators.columns.string_methods import METHODS
from dstream.operators.columns.string_runs import _OTHER_BLANKS, BLANKS, has_other_blanks
from dstream.operators.columns.strings import StringLists, Strings
from dstream.operators.columns.values import NotColumnar, TooFewRows, Tuples, column_of, items_of, rows_at, rows_of
from dstream.operators.rows.batches import loads, packed_columns
from dstream.values.bad_records import EncodedLines
from tests.differential.text_programs import function_of

_ASCII = ["", "the sea", " The\tSea ", "a,b,,c", "\x1cx\x1f", "12", "-7", "x_y z9", "\x0b\x0c", "aaa", "don't", "\0a\0"]
_ALL = [*_ASCII, "é", "İé ß", "a\u2019b", "日本 x", "🐳🐳", "straße"]

_OF_ONE_SIZE = ["É", "é", "Straße", "", "a\u2019b ÀÇ", "Жук жил", "日本 x", "x"]
"""Letters whose other case has as many bytes."""
_BLANKS = ["\u212a", "a\u2028b", "\xa0a\x85", "\u3000", "\u200bx ", "\u2003 é\x1c", "ΑΣ", "ΑΣ ΣΑ", "Σ", "İ"]

SAME: list[tuple[str, list[str]]] = [
    *[
        (f"x.{name}()", items)
        for name in ("lower", "upper", "strip", "lstrip", "rstrip", "split")
        for items in (_ASCII, _ALL, _OF_ONE_SIZE, _BLANKS)
    ],
    ("x.strip('é')", [*_ALL, "ê", "éxè"]),
    *[(f"len(x.{name}())", items) for name in ("lower", "upper") for items in (_ALL, _OF_ONE_SIZE)],
    *[(f"len({pattern}.findall(x + 'é')[-1])", _ALL) for pattern in ("WORDS", "SOME_BEYOND")],
    ("(x.replace('a', 'é') + 'É').lower()", _ALL),
    # Lengths and bounds show whether a result beyond ASCII is taken for one.
    *[
        (written.replace("TEXT", made), items)
        for written in ("len(TEXT)", "(TEXT)[1:]", "(TEXT).upper()")
        for made in (
            *("x.replace('a', 'é')", "x + x", "'é' if x < 'b' else x", "x if x < 'b' else x + 'é'"),
            *("x.split('a')[0]", "x.split('a')[-1]"),
        )
        for items in (_ASCII, _ALL)
    ],
    ("x.lower()", ["ΟΔΟΣ ΣΑ", "É"]),
    *[(f"x.{name}('a ')", _ALL) for name in ("strip", "lstrip", "rstrip")],
    *[
        (f"x.{name}()", items)
        for name in (
            *("capitalize", "casefold", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isnumeric"),
            *("isprintable", "isspace", "swapcase", "title"),
        )
        for items in (_ASCII, _ALL, _OF_ONE_SIZE, _BLANKS, ["²", "٣", "½", "12"])
    ],
    *[
        (f"x.{name}('{part}')", items)
        for name in ("count", "find", "removeprefix", "removesuffix")
        for part in ("a", "aa", "é", "the sea", " ")
        for items in (_ASCII, _ALL, ["aaaa", "aéaé", "éé"])
    ],
    ("len(x.swapcase())", _ALL),
    ("len(x.title())", _ALL),
    ("len(x.removeprefix('a'))", _ALL),
    ("x.find('a') + x.count('a')", _ALL),
    ("x.strip('')", _ALL),
    ("x.split(',')", _ALL),
    ("x.split('aa')", _ALL),
    ("str.split(x)", _ASCII),
    ("x.replace('a', 'bc')", _ALL),
    ("x.replace('aa', 'a')", _ALL),
    ("x.replace('a', '\\n')", _ALL),
    ("x.replace('\\u2019', '')", _ALL),
    *[
        (f"x[{bounds}]", items)
        for bounds in ("1:", ":2", "-2:", ":-1", "1:3", "3:1", "-3:2", "-100:100", ":", "2:-1", "0:0")
        for items in (_ASCII, _ALL)
    ],
    ("x[1:].strip()[:-1]", _ASCII),
    ("x + '!'", _ALL),
    ("'é' + x + x", _ALL),
    ("f'{x}-{len(x)}'", _ALL),
    ("str(len(x))", _ALL),
    ("len(x)", _ALL),
    ("len(x.split())", _ASCII),
    ("len(x.split(','))", _ALL),
    ("x.split(',')[0]", _ALL),
    ("x.split(',')[-1]", _ALL),
    *[(f"x {sign} 'don'", _ALL) for sign in ("==", "!=", "<", "<=", ">", ">=")],
    ("x < x.strip()", _ALL),
    ("'\\uffff' < x", _ALL),
    ("x.startswith('a')", _ALL),
    ("x.endswith('é')", _ALL),
    ("'a' in x", _ALL),
    ("'' in x", _ALL),
    ("'a' not in x", _ALL),
    ("x in ('12', 'é', 7)", [*_ALL, "7"]),
    ("not x", _ALL),
    ("bool(x.split())", _ASCII),
    ("x or 'none'", _ALL),
    ("x if x < 'b' else 'é'", _ALL),
    ("x if 'a' in x else x.strip('x')", _ALL),
    ("x and x + x", _ALL),
    ("int(x)", ["1", " 12 ", "1_000", "-7"]),
    ("float(x)", ["1", "inf", "1e3"]),
    ("LETTERS.findall(x)", _ALL),
    *[
        (f"{pattern}.findall(x)", items)
        for pattern in ("WORDS", "NO_COMMAS", "IN_ASCII", "ANY_CASE", "WORDS_AND_SIGNS", "SOME_BEYOND", "NO_WORDS")
        for items in (_ASCII, _ALL, _OF_ONE_SIZE, _BLANKS)
    ],
    ("re.findall(r'\\w+', x.lower())", _ALL),
    ("len(re.findall('[a-zé]+', x))", _ALL),
    ("(x, len(x), 1)", _ALL),
]


@pytest.mark.parametrize(("source", "items"), SAME)
def test_a_column_of_texts_gives_what_python_gives(source: str, items: list[str]) -> None:
    """Value and type of each, whether the texts stand in an array, or joined as in a file."""
    function = function_of(f"lambda x: {source}")
    expected = [(type(function(item)), function(item)) for item in items]
    joined = Strings(None, is_ascii="".join(items).isascii(), joined="".join(f"{item}\n" for item in items).encode())

    for column in (column_of(items), joined):
        found = evaluated(_expression(source), [column])

        assert [(type(each), each) for each in items_of(found)] == expected


@pytest.mark.parametrize("name", ["isspace", "isprintable", "isascii", "isalpha", "title", "swapcase", "capitalize"])
def test_newlines_in_texts_are_characters_like_others(name: str) -> None:
    """Only joined texts are divided by them."""
    items = ["\n", "a\nb", " \n", "é\n", ""]

    found = evaluated(_expression(f"x.{name}()"), [column_of(items)])

    assert items_of(found) == [getattr(each, name)() for each in items]


def _expression(source: str) -> Expression:
    found = read(function_of(f"lambda x: {source}"))
    assert isinstance(found, Expression)
    return found


WITHHELD: list[tuple[str, list[str], str]] = [
    ("x.split()", ["a\nb"], "newline"),
    ("LETTERS.findall(x)", ["a\nb"], "newline"),
    ("x.replace('', '-')", ["a"], "between"),
    ("x.split('')", ["a"], "empty separator"),
    ("x[::2]", ["abc"], "step"),
    ("x[::1.0]", ["abc"], "step"),
    ("x[1:2:True]", ["é"], "step"),
    ("x[len(x):]", ["abc"], "not the same"),
    *[(f"x[{bounds}]", [item], "no int") for bounds in (":2**70", "-2**70:", "1.5:") for item in ("abc", "éa")],
    *[(f"x.{name}('')", ["a"], "an empty part") for name in ("count", "find")],
    *[(f"x.{name}('\\ud800')", ["a"], "surrogate") for name in ("count", "find", "removeprefix", "removesuffix")],
    ("x.split(',')[1.0]", ["a,b"], "no int"),
    ("x in 'abc'", ["ab"], "no tuple"),
    ("x + len(x)", ["abc"], "beside something else|no \\+"),
    ("len(x) * 2**62", ["abc"], "64 bits"),
    ("x.split(',')[1]", ["a,b", "a"], "out of range"),
    ("x.split(',')[-2]", ["a,b", "a"], "out of range"),
    ("x + '\\ud800'", ["a"], "surrogate"),
    ("x == '\\ud800'", ["a"], "surrogate"),
    ("x in ('\\ud800', 'a')", ["a"], "surrogate"),
    ("x.startswith('\\ud800')", ["a"], "surrogate"),
    ("'\\ud800' in x", ["a"], "surrogate"),
    ("x + 1", ["a"], "no text"),
    ("x < 1", ["a"], "no text"),
    ("1 in x", ["a"], "no text"),
    ("x * 2", ["a"], "no \\*"),
    ("int(x)", ["0x10"], "ValueError"),
    ("x if x else 1", ["a", ""], "no text"),
    ("str(len(x) == 1)", ["a"], "digits"),
]


def test_each_method_that_columns_have_has_a_function() -> None:
    """The compiler has their names without loading Arrow; `findall` is called with its pattern first."""
    assert set(STRING_METHODS) == {*METHODS, "findall"}


@pytest.mark.parametrize(("source", "items", "reason"), WITHHELD)
@pytest.mark.usefixtures("nothing_by_python")
def test_texts_fall_back_where_a_column_cannot_give_the_same(source: str, items: list[str], reason: str) -> None:
    """What Python would do then, a column does not try."""
    with pytest.raises(NotColumnar, match=reason):
        evaluated(_expression(source), [column_of(items)])


def _making_long_texts(long: str) -> list[Callable[[str], Any]]:
    return [
        lambda x: x if x > "5" else long,
        lambda x: x + long,
        lambda x: f"{x}{long}",
        lambda x: x.replace("1", long),
        lambda x: len(x.replace("1", long)),
    ]


@pytest.mark.usefixtures("nothing_by_python")
@pytest.mark.parametrize("is_joined", [False, True])
@pytest.mark.parametrize("number", range(5))
def test_texts_that_take_much_memory_together_are_left_to_python(number: int, is_joined: bool) -> None:
    """Python makes one of them at a time; beyond 2 GB the places of Arrow wrapped."""
    short, long = (read(_making_long_texts("y" * size)[number]) for size in (10, 10_000))
    texts = [str(number) for number in range(33_000)]
    column = column_of(
        EncodedLines("".join(f"{text}\n" for text in texts).encode(), is_ascii=True) if is_joined else texts
    )

    with pytest.raises(NotColumnar, match="much memory"):
        evaluated(long, [column])  # type: ignore[arg-type]
    assert items_of(evaluated(short, [column])) == list(map(_making_long_texts("y" * 10)[number], texts))  # type: ignore[arg-type]


def test_slices_of_long_texts_take_no_place_for_each_byte() -> None:
    """In bytes they took 24 times what the texts have."""
    texts = [f"{number:01000000d}" for number in range(20)]
    column, slices = column_of(texts), [_expression(source) for source in ("x[1:]", "x[-3:]", "x[2:-2]", "x[:5]")]
    evaluated(slices[0], [column_of(["loads Arrow"])])

    tracemalloc.start()
    try:
        found = [evaluated(each, [column]) for each in slices]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 60_000_000
    expected = [[text[1:] for text in texts], [text[-3:] for text in texts], [text[2:-2] for text in texts]]
    assert [items_of(each) for each in found] == [*expected, [text[:5] for text in texts]]


def test_rows_of_lists_are_lists() -> None:
    """In any order, and where they travel; some are empty."""
    texts = ["a b", "", "c", "d e f", " "]
    lists = evaluated(_expression("x.split()"), [column_of(texts)])

    for places in ([0, 1, 2, 3, 4], [3, 4, 0], [1], [2, 2], []):
        found = rows_at(lists, np.array(places, np.intp))
        assert isinstance(found, StringLists)
        assert items_of(loads(dumps(found))) == items_of(found) == [texts[place].split() for place in places]


def test_words_stay_lists_in_the_rows_that_have_some() -> None:
    """As of `words[0] if words else "none"`."""
    words = Local(1)
    first = Let(Method(Argument(0), "split", ()), 1, Choice(words, Indexed(words, Constant(0)), Constant("none")))

    assert items_of(evaluated(first, [column_of(["a b", "", "c"])])) == ["a", "none", "c"]


@pytest.mark.usefixtures("nothing_by_python")
def test_what_arrow_refuses_is_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """As texts of more than two gigabytes."""

    def refuse(*arguments: Any) -> Any:
        raise pa.ArrowCapacityError("too long")

    monkeypatch.setattr(pc, "binary_join_element_wise", refuse)
    with pytest.raises(NotColumnar, match="ArrowCapacityError"):
        evaluated(_expression("x + x"), [column_of(["a"])])


@pytest.mark.parametrize("items", [["\ud800"], ["a", 1], ["a", None]])
def test_what_is_no_text_of_utf_8_makes_no_column(items: list[Any]) -> None:
    """Surrogates cannot be encoded."""
    with pytest.raises(NotColumnar):
        column_of(items)


def test_blanks_are_those_of_python() -> None:
    """In ASCII, and beyond it."""
    found = {chr(code) for code in range(0x110000) if chr(code).isspace()}

    assert found == {*BLANKS, *(each.decode() for each in _OTHER_BLANKS)}


def test_blanks_beyond_ascii_are_found_wherever_they_stand() -> None:
    """Also at both ends, in an array as in joined bytes; what only looks like one is none."""
    for code in (*_blanks_and_neighbours(), 0xE9, 0x1F433):
        character = chr(code)
        is_blank = character.isspace() and code > 127
        for text in (character, f"a{character}", f"{character}b", f"é{character}"):
            joined = Strings(None, is_ascii=False, joined=f"{text}\n".encode())
            assert has_other_blanks(joined) is is_blank
            assert has_other_blanks(Strings(joined.values, is_ascii=False)) is is_blank


def _blanks_and_neighbours() -> set[int]:
    blanks = {ord(each.decode()) for each in _OTHER_BLANKS}
    return blanks | {each + 1 for each in blanks} | {each - 1 for each in blanks}


@pytest.mark.parametrize(
    ("pattern", "is_read"),
    [
        *[(each, True) for each in (r"[a-z]+", r"\w+", r"[^,]+", r"[\w'-]+", r"\S+", r"[\]a]+")],
        *[(each, False) for each in (r"[a-z]*", "a+", "([a-z])+", "[a-z]+?", r"\b\w+", "[a-z]+|b", "[a-z]{2}", ".+")],
    ],
)
def test_patterns_of_one_class_of_characters_are_found(pattern: str, is_read: bool) -> None:
    """Each run is as long as it can be, which a plus behind one class says alone."""
    found = left_to_python(_expression_of_pattern(re.compile(pattern)))

    assert (found is None) is is_read


def _expression_of_pattern(pattern: re.Pattern[str]) -> Expression:
    found = read(pattern.findall)
    assert isinstance(found, Expression)
    return found


@pytest.mark.parametrize("pattern", [re.compile("[a-z]+", re.VERBOSE), re.compile(b"[a-z]+")])
def test_patterns_with_other_flags_and_of_bytes_are_left_to_python(pattern: Any) -> None:
    """They are seldom seen, and nobody has looked at them."""
    assert left_to_python(_expression_of_pattern(pattern)) is not None


@pytest.mark.parametrize(
    "source", ["x.zfill(3)", "x.split(',', 1)", "x.startswith(('a', 'b'))", "f'{x:>5}'", "f'{x!r}'"]
)
def test_what_columns_of_texts_cannot_do_is_known_before(source: str) -> None:
    """The drawing of a plan says it."""
    assert left_to_python(_expression(source)) is not None


def test_lists_are_no_items_of_columns() -> None:
    """A map that gives lists runs item by item; a flat_map takes them apart."""
    assert unsupported(_expression("x.split()")) == "columns hold no lists"
    assert unsupported_in_flat_map(_expression("x.lower()")) is not None
    assert unsupported_in_flat_map(_expression("x.lower().split()")) is None


def test_rows_of_texts_and_lists_are_chosen() -> None:
    """In order; lists become objects."""
    chosen = np.array([True, False, True])
    joined = Strings(None, is_ascii=True, joined=b"a\n\nb c\n")
    lists = evaluated(_expression("x.split()"), [joined])

    assert items_of(rows_of(joined, chosen)) == ["a", "b c"]
    assert isinstance(lists, StringLists)
    assert items_of(rows_of(lists, chosen)) == [["a"], ["b", "c"]]


@pytest.mark.parametrize("items", [["a", "", "é"], ["a\n", "b"], ["\n\0", "\x1f"], ["\n\0\x1f", "a"], []])
def test_texts_travel_as_they_are(items: list[str]) -> None:
    """Whatever characters they hold; they become a list where they are unpickled."""
    column = Strings(column_of(["x", *items, "y"]).values.slice(1, len(items)), is_ascii=False)  # type: ignore[union-attr]

    assert [each for _, data in packed_columns(column) for each in loads(data)] == items


def test_lists_travel_beside_other_columns() -> None:
    """As lists of their members."""
    texts = column_of(["a b", "", "c"])
    column = Tuples((evaluated(_expression("x.split()"), [texts]), texts), 3)

    assert [each for _, data in packed_columns(column) for each in loads(data)] == [
        (["a", "b"], "a b"),
        ([], ""),
        (["c"], "c"),
    ]


def test_groups_of_texts_count_and_add_up_in_the_order_of_their_keys() -> None:
    """The first key stands first; tables are put together, and a later part adds to an earlier one."""
    first = groups_of_texts(_texts("b a b"), column_of([1, 2, 3])).ranked(0)  # type: ignore[arg-type]
    second = groups_of_texts(_texts("c b"), column_of([5, 2**60])).ranked(10)  # type: ignore[arg-type]

    assert list(first.lines()) == [("b", 2, 4), ("a", 1, 2)]
    merged = merged_text_tables([first, second])
    assert list(merged.lines()) == [("b", 3, 2**60 + 4), ("a", 1, 2), ("c", 1, 5)]
    assert merged.ranks.tolist() == [0, 1, 10]


def _texts(words: str) -> Strings:
    found = column_of(words.split())
    assert isinstance(found, Strings)
    return found


def test_groups_whose_sums_need_more_bits_stay_apart() -> None:
    """Whoever takes both adds ints of any size."""
    tables = [groups_of_texts(_texts("a"), column_of([2**62])) for _ in range(3)]  # type: ignore[arg-type]

    assert [list(each.lines()) for each in with_texts_together(iter(tables), Bound())] == [[("a", 1, 2**62)]] * 3
    with pytest.raises(NotColumnar):
        merged_text_tables(tables)


def test_texts_go_where_equal_keys_of_objects_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of both kinds meet."""
    table = groups_of_texts(_texts("a b c d e f g h")).ranked(0)

    for target, part in parts_by_target(table, 3):
        assert {stable_hash(key) % 3 for key, _ in part.lines()} == {target}
        assert all(one < other for one, other in pairwise(part.ranks.tolist()))


def test_few_lines_make_no_column() -> None:
    """What makes one takes longer to load."""
    with pytest.raises(TooFewRows):
        column_of(EncodedLines(b"a\n", is_ascii=True, are_few=True))
    assert items_of(column_of(EncodedLines(b"a\n", is_ascii=True))) == ["a"]
