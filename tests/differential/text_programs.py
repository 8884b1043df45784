"""Programs on texts by chance, in columns and in plain Python: lines of files, or lists, some steps, a collector.

`python -m tests.soak.columns --kinds text --programs 30000` runs many and says how many blocks stood in columns.
"""

from __future__ import annotations

import functools
import linecache
import operator
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from random import Random
from typing import Any

import pyarrow as pa

import dstream as ds
import dstream.operators.columns.group_by as column_row_groups
import dstream.operators.columns.groups as text_groups
import dstream.operators.columns.python_rows as python_rows
import dstream.operators.columns.string_methods as text_functions
import dstream.operators.rows.blocks as column_items
import dstream.operators.rows.group_tables as column_ends
import dstream.operators.rows.group_tables as tables_by_key
from collectors import (
    all_of,
    averaging,
    counting,
    filtering,
    frequencies,
    grouping_by,
    mapping,
    max_by,
    min_by,
    summarizing,
    summing,
    teeing,
    to_list,
    to_set,
    top_n,
)
from dstream.collectors.entries import counted_entries, folded_values, values_of_each_key
from dstream.connectors.collections.sinks import entries
from dstream.engine.compiler.evaluation import collector_read, read_op, step_evaluation
from dstream.engine.tasks.readers import read_buckets
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import RouteToBuckets
from dstream.expressions.reader import read
from dstream.expressions.tree import Expression
from dstream.keys import stable_hash
from dstream.operators.columns.arrow_rows import column_of_array
from dstream.operators.rows.aggregates import groups_of_partition
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.operations import written_entries
from dstream.plan.steps import Op, Step
from dstream.spi import Collector
from dstream.stream import Stream
from dstream.values import Entry
from dstream.values.bad_records import EncodedLines
from tests.differential.column_programs import (
    STEP,
    Checks,
    Outcome,
    Program,
    aggregated,
    bytes_together,
    chained,
    judged,
    limits,
    outcome_of,
    possible_outcomes,
    watched,
    ways_to_run,
)

__all__ = ["function_of", "main", "outcomes", "program", "ways_of_texts"]

_ALL_KINDS = frozenset({int, float, bool, tuple, str, type(None)})


class Lines(list[str]):
    """Lines that come as those of a file: in encoded blocks."""

    rows = 1

    def __iter__(self) -> Iterator[str]:
        blocks = (
            super(Lines, self).__getitem__(slice(start, start + self.rows)) for start in range(0, len(self), self.rows)
        )
        return ColumnItems(map(_encoded, blocks))


class ArrowTexts(list[str]):
    """Texts that come as those of a part of records: in arrays of Arrow, which are large, in chunks, or cut out."""

    rows = 1

    def __iter__(self) -> Iterator[str]:
        starts = range(0, len(self), self.rows)
        return ColumnItems(column_of_array(self._array(start, start + self.rows)) for start in starts)

    def _array(self, start: int, end: int) -> Any:
        some = super().__getitem__(slice(start, end))
        way = (start + self.rows) % 4
        if way == 0:
            return pa.array(some, pa.large_string())
        if way == 1:
            return pa.chunked_array([some[:2], some[2:]], pa.string())
        return pa.array(some, pa.string()) if way == 2 else pa.array(["é", *some, "x"]).slice(1, len(some))


def _encoded(lines: list[str]) -> EncodedLines:
    data = "".join(f"{line}\n" for line in lines).encode()
    return EncodedLines(data, is_ascii=data.isascii())


_WORDS = [
    "the",
    "sea",
    "Sea",
    "WHALE",
    "a",
    "",
    "12",
    "-7",
    "x_y",
    "1e3",
    " ",
    "\t",
    ",",
    ";",
    "don't",
    "0",
    "aaa",
    ".",
]
_BLANKS = [" ", "  ", "\t", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\r"]
_BEYOND = [
    "é",
    "É",
    "ß",
    "İ",
    "\u0131",
    "K",
    "\u017f",
    "\u2028",
    "\x85",
    "\xa0",
    "\u3000",
    "\u2019",
    "日本",
    "🐳",
    "e\u0301",
    "٣",
    "\u200b",
]
_ODD = ["\0", "a\0", "\ud800", "\udcff", "\n", "a\nb"]


def _text(random: Random, kinds: list[list[str]]) -> str:
    return "".join(random.choice(random.choice(kinds)) for _ in range(random.choice((0, 1, 1, 2, 3, 5, 8, 30))))


def _texts(random: Random) -> list[str]:
    kinds = [_WORDS, _WORDS, _BLANKS]
    if random.random() < 0.35:
        kinds.append(_BEYOND)
    if random.random() < 0.15:
        kinds.append(_ODD)
    found = [_text(random, kinds) for _ in range(random.randrange(0, 30))]
    if random.random() < 0.7 and not any(map(_is_odd, found)):
        lines = Lines(each.replace("\r", "") for each in found)
        lines.rows = random.choice((1, 3, 7, 40))
        return lines
    if random.random() < 0.5 and not any(map(_has_surrogate, found)):
        texts = ArrowTexts(found)
        texts.rows = random.choice((1, 3, 7, 40))
        return texts
    return found


def _is_odd(text: str) -> bool:
    return "\n" in text or _has_surrogate(text)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


_CONSTANTS = ["a", "e", " ", ",", "the", "", "\t", "é", "\u2019", ".", "aa", "\n", "\0", "\ud800", "Sea", "x_y"]
_PATTERNS = {
    f"P{number}": re.compile(*each)
    for number, each in enumerate(
        [
            *[(r"[a-z]+",), (r"\w+",), (r"[A-Za-z']+",), (r"\S+",), (r"[^,;]+",), (r"\d+",), (r"[^\s,]+",)],
            *[(r"[a-k]+", re.IGNORECASE), (r"\w+", re.ASCII), (r"\W+",), (r"a+",), (r"[a-z]*",), (r"(a)+",)],
            *[(r"[é-ü]+",), (r"[^a]+", re.IGNORECASE), (r"[\w.-]+",), (r"\w+\b",), (r"[\]a]+",), (r"\s+",)],
        ]
    )
}


_NAMED = {
    "ANY_CASE": re.compile("[a-k]+", re.IGNORECASE),
    "IN_ASCII": re.compile(r"\w+", re.ASCII),
    "LETTERS": re.compile("[a-z]+"),
    "NO_COMMAS": re.compile("[^,]+"),
    "NO_WORDS": re.compile(r"\W+"),
    "SOME_BEYOND": re.compile("[a-é]+"),
    "WORDS_AND_SIGNS": re.compile(r"[\w'-]+"),
    "WORDS": re.compile(r"\w+"),
}


_CONTAINERS: dict[str, Any] = {
    "D": {"the": "der", "a": "", "": "é", "Sea": "Meer", 1: "one"},
    "N": {0: 5, 1.0: 6, 2: -1, -3: 2**40, "1": 7},
    "S": {"the", "sea", "", 3, True, None},
    "W": ["the", "a", "x_y", "Sea"],
}
"""Captured containers; what is not there is an error."""


_SCRIPT = """
import json
import re
from collections import Counter, defaultdict
from enum import Enum, IntEnum

class Status(Enum):
    THE = "the"
    SEA = "sea"
    NONE = ""

class Level(IntEnum):
    LOW = 2
    HIGH = 7

def as_int(text):
    try:
        return int(text)
    except ValueError:
        return -1

def halved(text):
    try:
        number = int(text) // len(text.strip("0"))
    except (ValueError, TypeError):
        number = len(text)
    except ZeroDivisionError:
        return -7
    return number * 2

def either(text, number):
    try:
        found = N[number]
    except KeyError:
        pass
    else:
        return found
    return len(text)

def checked(number):
    if number > 20:
        raise ValueError("large")
    return number + 1

def weighted(number):
    total = 0
    for weight in (3, 5, -7):
        if number % weight == 1:
            continue
        total += number % weight
        if total > 5:
            break
    else:
        total += 100
    return total

def ended(number):
    rounds = 0
    for first in (1, 2, 3):
        for second in (2, 3):
            if number % second == first:
                break
        else:
            break
        rounds += first
    else:
        rounds += 10
    return rounds

def longest(words):
    last, total = -1, 0
    total = 0
    for word in words:
        if (last := len(word)) > 1:
            total += last
    return total + last

def last_of(words):
    last = -1
    return sum(last for word in words if (last := len(word)) > 1) * 100 + last

def kind_of(text):
    for start, kind in (("th", "article"), ("s", "water"), ("", "other")):
        if text.startswith(start):
            return kind
    return "none"

def first_of(text):
    for word in W:
        if word in text:
            return word
    return text

def spelled(text):
    made = ""
    for index in range(3):
        made += text[index:index + 1] + "-"
    return made

def summed(words):
    total = 0
    for word in words:
        if word:
            total += len(word)
    return total * 2

def counted(words):
    text = "n"
    for word in words:
        text += word[:1]
    return text

def longer(text):
    found = []
    for part in text.split("e"):
        if len(part) > 1:
            if part[0] != "a":
                found.append(part[::-1])
    return found

def ranked(text):
    for least, kind in [(7, "long"), (3, "middle")]:
        if len(text) >= least:
            return kind
    return "short"

def counts_of(words):
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
        counts[word] += 1
    return counts

def known_of(words):
    from_first, best, seen = "", None, set()
    for place, word in enumerate(words):
        if not word:
            continue
        if word in seen:
            best = word
            break
        seen.add(word)
        from_first += word[:1]
    else:
        seen.add(from_first)
    return from_first, best, sorted(seen)

def first_number(words):
    for word in words:
        try:
            return int(word)
        except ValueError:
            continue
        finally:
            last = word
    return -1

def shown(text):
    try:
        key, value = text.split(" ", 1)
        number = int(value)
        return key, N[number]
    except (ValueError, KeyError) as e:
        return f"{type(e).__name__}: {e}"

def changed_before_it_failed(text):
    total = 1
    try:
        total = len(text)
        total += int(text)
        total *= 2
    except ValueError as error:
        return total, str(error)
    else:
        total -= 5
    finally:
        text = "x"
    return total, text

def both(text, words):
    first = second = []
    for word in words:
        first.append(word)
        if word == text:
            second = second + [text]
            first = second
            first.extend(w[::-1] for w in words)
    return first, second

def grouped(words):
    groups = {}
    for word in words:
        groups.setdefault(word[:1], []).append(word)
    for of in ("a", "the"):
        groups.setdefault(of[:1], []).append(of)
    return groups

def by_length(words):
    from_length = defaultdict(list)
    for word in words:
        from_length[len(word)].append(word)
    return {key: sorted(set(value)) for key, value in from_length.items()}

def letters(text):
    counts = Counter(text)
    for sign in " ,":
        counts[sign] -= 1
    return counts.most_common(2), counts["a"]

def matching(text):
    match text.split(","):
        case [""]:
            return "nothing"
        case [only]:
            return only
        case ["the" | "a" as article, *rest] if rest[0]:
            text = article.upper()
        case [str(first), _]:
            text = first
    return text + "!"

def sized(text):
    size = len(text)
    match size:
        case 0 | 1:
            return "small"
        case int(n) if n > 4:
            return f"{n} large"
        case _:
            return -size

def required(number):
    assert number != 3, f"not {number}"
    assert number < 1000
    return number - 1

def trimmed(text, signs):
    def strip(part):
        for sign in signs:
            part = part.strip(sign)
        return part

    kept = [strip(part) for part in text.split("e")]
    return "-".join(part for part in kept if part)

def rebound(text):
    if not text:
        text = "none"
    elif text[0] == "a":
        text = text[1:]
        for sign in text:
            if sign == "s":
                text = sign
    else:
        length = len(text)
        while_short = length < 4
        if while_short:
            text = text * 2
    return text

def raised_again(text):
    try:
        try:
            return N[len(text)]
        except KeyError as error:
            if text == "the":
                raise
            raise ValueError(f"no {error}") from error
    except ValueError as error:
        return str(error)

def once(text, *, times=2):
    found = []
    for place in range(times):
        found.insert(0, text[place:place + 1])
    found.sort(key=len, reverse=True)
    found[0] = found[-1]
    return found

def added_after(words):
    found = []
    for word in words:
        if len(found) > 20:
            return found
        found += [word]
        found = words if word == "a" else found[:]
    return found

def words(text):
    parts = [part.strip() for part in text.split(",")]
    return [part for part in parts if part]
"""


class _Writer:
    """Writes functions of a text, or of an int, named `x`."""

    def __init__(self, random: Random, form: str, item: str = "x") -> None:
        self._random = random
        self._form = form
        self._item = item

    def function(self, gives: str, depth: int) -> str:
        """Write a function."""
        while True:
            source = f"lambda x: {self.write(gives, depth)}"
            with suppress(SyntaxError):  # Before Python 3.12 not all quotes may stand in f-strings.
                compile(source, "", "eval")
                return source

    def write(self, gives: str, depth: int) -> str:
        """Write an expression that mostly gives a text, an int, a bool, a list or a pair: `t`, `i`, `b`, `l`, `p`."""
        if depth <= 0:
            return self._leaf(gives)
        return self._random.choice(_FORMS[gives]).format(
            **{name: _Lazy(self, name, depth - 1) for name in ("t", "i", "b", "l")},
            c=_Constant(self._random),
            k=_Small(self._random),
            P=_Named(self._random),
            R=_Literal(self._random),
        )

    def _leaf(self, gives: str) -> str:
        if gives in ("l", "p"):
            return {"l": f"{self._leaf('t')}.split()", "p": f"({self._leaf('t')}, 1)"}[gives]
        if gives == self._form:
            return self._item
        if gives == "t":
            return f"str({self._item})" if self._form == "i" else repr(self._random.choice(_CONSTANTS))
        if gives == "i":
            is_length = self._form == "t" and self._random.random() < 0.7
            return f"len({self._item})" if is_length else str(self._random.randrange(-2, 5))
        return f"{self._leaf('t')} < {self._leaf('t')}"


class _Part(ABC):
    """What is written each time that a place of a form asks for it."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def __format__(self, spec: str) -> str:
        return self.written()

    @abstractmethod
    def written(self) -> str: ...


class _Constant(_Part):
    def written(self) -> str:
        return repr(self.random.choice(_CONSTANTS))


class _Small(_Part):
    def written(self) -> str:
        return self.random.choice(("0", "1", "2", "-1", "-2", "3", "7", "-40", "100"))


class _Named(_Part):
    def written(self) -> str:
        return self.random.choice(list(_PATTERNS))


class _Literal(_Part):
    def written(self) -> str:
        return repr(self.random.choice([each.pattern for each in _PATTERNS.values()]))


class _Lazy(_Part):
    def __init__(self, writer: _Writer, gives: str, depth: int) -> None:
        super().__init__(writer._random)
        self._writer, self._gives, self._depth = writer, gives, depth

    def written(self) -> str:
        return self._writer.write(self._gives, self.random.randrange(self._depth + 1))


_FORMS = {
    "t": [
        *("{t}.lower()", "{t}.upper()", "{t}.title()", "{t}.casefold()", "{t}.swapcase()", "{t}.capitalize()"),
        *(
            "{t}.removeprefix({c})",
            "{t}.removesuffix({c})",
            "{t}.strip()",
            "{t}.lstrip()",
            "{t}.rstrip()",
            "{t}.strip({c})",
        ),
        *("{t}.lstrip({c})", "{t}.rstrip({c})", "{t}.replace({c}, {c})", "{t}[{k}:]", "{t}[:{k}]", "{t}[{k}:{k}]"),
        *("{t} + {c}", "{c} + {t}", "({t} + {t})", "({t} if {b} else {t})", "({t} or {c})", "({t} and {t})"),
        *("{t}.zfill({k})", "{t}.rjust({k}, '.')", "f'{{{i}:04d}}'", "f'{{{t}!r:>9}}'", "D.get({t}, {c})", "D[{t}]"),
        *("{t}.partition({c})[{k}]", "{t}.rsplit({c}, 1)[-1]", "' '.join({l})", "re.sub({R}, {c}, {t})", "W[{k}]"),
        *("','.join(w for w in {l})", "' '.join(sorted(set({l})))", "max({l}, key=len, default={c})"),
        *("next((w for w in {l} if len(w) > 2), {c})", "next((c for c in W if c in {t}), {c})", "first_of({t})"),
        *(
            "min({l}, key=lambda w: (len(w), w))",
            "kind_of({t})",
            "ranked({t})",
            "'-'.join(map(str.strip, {l}))",
            "spelled({t})",
        ),
        *(
            "json.dumps([{t}, {i}])",
            "Status({t}).name",
            "max({l}, key=D.get)",
            "counted({l})",
            "{t}.split(maxsplit=1)[0]",
        ),
        *("(D.get({t}) or {t})", "W[len({t}) % 3]", "(n if (n := {t}) else {c})", "max({t}, {c})"),
        *("trimmed({t}, ' a,')", "rebound({t})", "raised_again({t})", "sized({t})", "matching({t})", "shown({t})[0]"),
        *("re.sub({R}, lambda m: m.group()[::-1], {t})", "{t}.translate({{97: 'e', 101: None}})"),
        *("','.join(m.group().upper() for m in re.finditer({R}, {t}))", "Counter({l} + [{c}]).most_common(1)[0][0]"),
        *("{l}[{k}]", "str({i})", "f'{{{t}}}-{{{i}}}'", "f'{{{t}!s}}'", "str({t})", "str.lower({t})", "{t}[{k}:{k}:2]"),
    ],
    "i": [
        "len({t})",
        "len({l})",
        "({i} + {k})",
        "({i} * {k})",
        "int({t})",
        "({i} if {b} else {i})",
        "len({t}.lower())",
        "{t}.count({c})",
        "{t}.find({c})",
        *("{t}.rfind({c})", "W.index({t})", "W.count({t})", "N.get({i}, {k})", "N[{i}]", "{i}.bit_length()"),
        *("(n := {i}) * n", "len({t}.encode())"),
        *(
            "sum(len(w) for w in {l})",
            "sum(map(len, {l}))",
            "as_int({t})",
            "summed({l})",
            "len({{w[:1] for w in {l}}})",
        ),
        *("sum(1 for w in {l} if w)", "max((len(w) for w in {l}), default=-1)", "len({{{t}, {c}}})", "weighted({i})"),
        *("ended({i})", "longest({l})", "last_of({l})"),
        *("first_number({l})", "counts_of({l}).get({c}, 0)", "len(counts_of({l}))", "required({i})"),
        *("changed_before_it_failed({t})[0]", "max(counts_of({l}).values())", "letters({t})[1]"),
        *(
            "len([a + b for a in {l} for b in {l}])",
            "sum(n * len(w) for n, w in enumerate({l}, start=1))",
            "halved({t})",
        ),
        *(
            "len({{w: 1 for w in {l}}})",
            "int({t}, base=16)",
            "sum(a == b for a, b in zip({l}, {l}))",
            "Level.LOW + {i}",
        ),
        *(
            "sum(i for w in {l} if (i := len(w)) > 1)",
            "either({t}, {i})",
            "{{**{{{t}: 1}}, {c}: 2}}[{t}]",
            "checked({i})",
        ),
    ],
    "b": [
        *("{t}.startswith({c})", "{t}.endswith({c})", "{c} in {t}", "{c} not in {t}", "{t} in ({c}, {c}, 1)"),
        *("{t} == {c}", "{t} != {t}", "{t} < {c}", "{t} >= {t}", "{i} > {k}", "not {t}", "bool({l})", "{t} <= {t}"),
        *("({b} and {b})", "({b} or {b})", "{t} not in ({c}, {c})", "{t} in {t}", "{t} > {k}"),
        *("{t}.isalnum()", "{t}.isalpha()", "{t}.isascii()", "{t}.isdecimal()", "{t}.isdigit()", "{t}.isnumeric()"),
        *("{t}.isprintable()", "{t}.isspace()"),
        *(
            "{t} in S",
            "{t} not in D",
            "{t} in W",
            "{i} in N",
            "{i} in S",
            "isinstance({t}, str)",
            "isinstance({i}, bool)",
        ),
        *("any(c in {t} for c in ('a', 'the', {c}))", "all(w.isalpha() for w in {l})", "any(w in {t} for w in W)"),
        *("type({t}) is str", "type({i}) in (int, bool)", "all(len(w) > {k} for w in {l} if w)", "{i} > Level.LOW"),
        *(
            "any(w in S for w in {l})",
            "Status({t}) is Status.THE",
            "all(c not in {t} for c in S if c and c is not True)",
        ),
        *("all({t} != k or v for k, v in D.items())", "{i} in (Level.LOW, 3)", "{t} in [w.lower() for w in {l}]"),
        *("re.search({R}, {t})", "re.match({R}, {t}) is not None", "{t}.startswith(({c}, {c}))", "{t}.istitle()"),
    ],
    "l": [
        *("{t}.split()", "{t}.split({c})", "str.split({t})", "{P}.findall({t})", "{P}.findall({t}.lower())"),
        *("re.findall({R}, {t})", "re.findall({R}, {t}.lower())", "{t}.split({c}, 1)", "{t}.rsplit({c})"),
        *("re.split({R}, {t})", "{t}.splitlines()"),
        *("[w.upper() for w in {l}]", "[w for w in {l} if w in S]", "sorted({l}, key=len)", "[*{l}, {c}]"),
        *("list(map(str.strip, {l}))", "[w for i, w in enumerate({l}) if i % 2]", "list(filter(None, {l}))"),
        *("[m.group() for w in {l} if (m := re.match({R}, w))]", "[w for p in {l} for w in p.split({c})]"),
        *(
            "json.loads(json.dumps({l}))",
            "sorted({l}, key=lambda w: w[-1:], reverse=True)",
            "words({t})",
            "longer({t})",
            "once({t}, times=3)",
            "once({t})",
            "both({t}, {l})[0]",
            "known_of({l})[2]",
            "added_after({l})",
        ),
    ],
    "p": [
        *("({t}, {i})", "({t}, {t})", "({i}, {t}, {l})", "({t}, {{w: len(w) for w in {l}}})", "({i}, {{{t}, {c}}})"),
        *(
            "({t}, {{{t}: {i}, {c}: {l}}})",
            "({t}, Status.THE)",
            "({t}, Level.LOW if {b} else {i})",
            "({i}, [{l}, {l}])",
            "({t}, both({t}, {l}))",
            "({i}, grouped({l}), by_length({l}))",
            "(letters({t}), known_of({l}))",
            "(counts_of({l}), changed_before_it_failed({t}))",
            "(shown({t}), {t})",
        ),
    ],
}


@functools.cache
def function_of(source: str) -> Callable[[Any], Any]:
    """Compile a function, so that its source is found; some patterns have names in it."""
    name = f"<text program {source}>"
    linecache.cache[name] = len(source), None, [f"{source}\n"], name
    made: Callable[[Any], Any] = eval(
        compile(source, name, "eval"),
        {
            "__name__": "texts",
            "Entry": Entry,
            "ds": ds,
            "re": re,
            "Counter": Counter,
            **_PATTERNS,
            **_NAMED,
            **_CONTAINERS,
            **_script(),
        },
    )
    return made


@functools.cache
def _script() -> dict[str, Any]:
    """Execute the script, whose functions have a source, and return its names."""
    name = "<script of text programs>"
    linecache.cache[name] = len(_SCRIPT), None, _SCRIPT.splitlines(keepends=True), name
    names = {"__name__": "texts", "__file__": name, **_CONTAINERS}
    exec(compile(_SCRIPT, name, "exec"), names)
    return {each: value for each, value in names.items() if not each.startswith("__")}


def _op(action: str, source: str, number: int) -> Op:
    fn = function_of(source)
    found = read(fn)
    expression = found if isinstance(found, Expression) else None
    op = Op(action, fn, None, Step(source, None, number + 1, 3))
    return replace(op, evaluation=step_evaluation(op, expression))


def program(seed: int) -> Program:
    """Make a program."""
    random = Random(seed)
    parts = [_texts(random) for _ in range(random.randrange(1, 4))]
    ops: list[Op] = []
    form, item = "t", "x"
    for number in range(random.randrange(0, 4)):
        if item == "x" and random.random() < 0.25:  # Python evaluates parts of items for each row, and wholes seldom.
            ops.append(_op("map", f"lambda x: (x, {random.choice(('1', 'x', 'None'))})", len(ops)))
            item = "x[0]"
        writer = _Writer(random, form, item)
        action, gives = random.choice((("flat_map", "l"), ("map", "t"), ("filter", "b"), ("map", "i"), ("filter", "t")))
        if number == 2 and random.random() < 0.3:
            action, gives = "map", "p"
        ops.append(_op(action, writer.function(gives, random.randrange(1, 4)), len(ops)))
        form = {"flat_map": "t", "map": gives, "filter": form}[action]
        item = item if action == "filter" else "x"
        if form == "p":
            break
    if item != "x":
        ops.append(_op("map", "lambda x: x[0]", len(ops)))
    if form == "t" and random.random() < 0.2:  # What a function changes of one row is that of no other one.
        ops.append(_op("map", _Writer(random, form).function("l", random.randrange(1, 4)), len(ops)))
        ops.append(_op("map", "lambda x: x.append(len(x)) or x", len(ops)))
        form = "p"
    if form != "p" and random.random() < 0.3:
        ops += _entry_steps(random, len(ops))
        text, collector = random.choice(_OF_ENTRIES)
        collector = None if collector is None else _known(collector)
    else:
        text, collector = _collector(random, form) if form != "p" and random.random() < 0.75 else ("list", None)
    steps = ".".join(f"{op.action}({op.step.label})" for op in ops)
    return Program(list(parts), tuple(ops), collector, f"{parts} {steps} -> {text}")


def _entry_steps(random: Random, number: int) -> Iterator[Op]:
    """Give a step that makes entries or pairs of texts or ints, and perhaps others on these."""
    value = random.choice(("1", "1", "1", "2", "-3", "True", "1.5", "-0.0", "None", "x", "len(str(x))", "2**62"))
    key = random.choice(("x", "x", "str(x)[:1]", "len(str(x))", "(x, 1)", "None"))
    yield _op("map", f"lambda x: {random.choice(('', 'Entry', 'ds.Entry'))}({key}, {value})", number)
    while random.random() < 0.4:
        name, fn = random.choice(_ON_ENTRIES)
        op = Op("map", fn, None, Step(name, None, number + 1, 3))
        yield read_op(op).op


def _made_by(make: Callable[[Stream[Any]], Stream[Any]]) -> Callable[[Any], Any]:
    """Return the function of the step that a method of streams makes."""
    fn: Callable[[Any], Any] = make(Stream.of())._node.fn  # type: ignore[attr-defined]
    return fn


_ON_ENTRIES: list[tuple[str, Callable[[Any], Any]]] = [
    ("swap", _made_by(lambda stream: stream.swap())),
    ("map_values str", _made_by(lambda stream: stream.map_values(function_of("lambda x: str(x)")))),
    ("map_values add", _made_by(lambda stream: stream.map_values(function_of("lambda x: x + 1")))),
    ("map_values len", _made_by(lambda stream: stream.map_values(function_of("lambda x: len(x)")))),
    ("key_by", _made_by(lambda stream: stream.key_by(function_of("lambda x: x[0]")))),
    ("key_by value", _made_by(lambda stream: stream.key_by(function_of("lambda x: x.value")))),
    ("starmap", _made_by(lambda stream: stream.starmap(function_of("lambda a, b: (b, a)")))),
    ("values", _made_by(lambda stream: stream.values())),
]
_OF_ENTRIES: list[tuple[str, Collector[Any, Any, Any] | None]] = [
    ("to_imap(add)", entries(None, None, operator.add)),
    ("reduce_by_key(add)", folded_values(operator.add)),
    ("reduce_by_key(add)", folded_values(operator.add)),
    ("count_by_key()", counted_entries()),
    ("aggregate_by_key(summing())", values_of_each_key(summing())),
    ("aggregate_by_key(averaging())", values_of_each_key(averaging())),
    ("aggregate_by_key(summarizing())", values_of_each_key(summarizing())),
    ("aggregate_by_key(counting())", values_of_each_key(counting())),
    ("aggregate_by_key(all_of())", values_of_each_key(all_of(counting(), averaging(), summing()))),
    ("list", None),
]


def _collector(random: Random, form: str) -> tuple[str, Collector[Any, Any, Any]]:
    writer = _Writer(random, form)
    choice = random.random()
    if choice < 0.1:
        key = writer.function("t", random.randrange(0, 3))
        return f"to_imap({key}, 1, add)", _known(entries(function_of(key), lambda item: 1, operator.add))
    number = writer.function("i", 1)
    if choice < 0.3:
        return "frequencies()", _known(frequencies())
    if choice < 0.4:
        return f"summing({number})", _known(summing(function_of(number)))
    text, downstream = (
        (f"summing({number})", summing(function_of(number))) if choice < 0.7 else ("counting()", counting())
    )
    if random.random() < 0.3:
        text, downstream = _other_downstream(random, writer, number)
    if random.random() < 0.3:
        text, downstream = _compound(random, writer, text, downstream)
    key = writer.function(random.choice("ttti"), random.randrange(0, 3))
    if random.random() < 0.25:
        other = random.choice((f"{number.removeprefix('lambda x: ')} % 2", "'one'", "0.5"))
        key = f"lambda x: ({key.removeprefix('lambda x: ')}, {other})"
    return f"grouping_by({key}, {text})", _known(grouping_by(function_of(key), downstream))


def _compound(
    random: Random, writer: _Writer, text: str, downstream: Collector[Any, Any, Any]
) -> tuple[str, Collector[Any, Any, Any]]:
    """Return another collector beside one, or around it."""
    number, other = writer.function("i", 1), writer.function(random.choice("ti"), 1)
    return random.choice(
        [
            (f"all_of({text}, averaging({number}))", all_of(downstream, averaging(function_of(number)))),
            (f"all_of(counting(), {text})", all_of(counting(), downstream)),
            (f"filtering({other}, {text})", filtering(function_of(other), downstream)),
            (f"grouping_by({other}, {text})", grouping_by(function_of(other), downstream)),
            (f"teeing({text}, summing({number}))", teeing(downstream, summing(function_of(number)), _pair)),
        ]
    )


def _pair(first: Any, second: Any) -> tuple[Any, Any]:
    return first, second


def _other_downstream(random: Random, writer: _Writer, number: str) -> tuple[str, Collector[Any, Any, Any]]:
    """Return statistics, an average of floats, the first ones of the items of a key, or a list or set of values."""
    half = f"lambda x: ({number.removeprefix('lambda x: ')}) / 4 - 0.5"
    text = writer.function("t", 1)
    name, make, source = random.choice(
        [
            ("averaging", averaging, half),
            ("summarizing", summarizing, half),
            ("summarizing", summarizing, number),
            ("min_by", min_by, number),
            ("max_by", max_by, half),
            ("top_n 2", functools.partial(top_n, 2), number),
            ("mapping to_list", _listing, number),
            ("mapping to_list", _listing, text),
            ("mapping to_list", _listing, f"lambda x: ({text[10:]}, {number[10:]})"),
            ("mapping to_list", _listing, writer.function("l", 1)),
            ("mapping to_set", _set_of, text),
        ]
    )
    return f"{name} {source}", make(function_of(source))


def _listing(fn: Any) -> Collector[Any, Any, Any]:
    return mapping(fn, to_list())


def _set_of(fn: Any) -> Collector[Any, Any, Any]:
    return mapping(fn, to_set())


def _known(collector: Collector[Any, Any, Any]) -> Collector[Any, Any, Any]:
    found = collector_read(collector, is_verified=False)[0]
    return found if found.in_columns is not None else replace(found, in_columns=None)


def ways_of_texts(made: Program) -> list[Callable[[Program, list[Any]], Any]]:
    """Return what runs a program: into a map, by key, or as one on numbers."""
    if made.text.rpartition(" -> ")[2].startswith("to_imap"):
        return [_in_buckets]
    return [_by_key, aggregated] if made.text.endswith("reduce_by_key(add)") else ways_to_run(made)


class _Writes:
    """A writer of three buckets, whose receipts are the entries."""

    buckets = 3

    def bucket_of(self, key: Any) -> int:
        return stable_hash(key) % self.buckets

    def write_bucket(self, bucket: int, entries: Iterator[Any]) -> Iterator[Any]:
        return ((bucket, *entry) for entry in entries)


def _in_buckets(made: Program, given: list[Any]) -> Any:
    assert made.collector is not None
    assert made.collector.keyed is not None
    writer: Any = _Writes()
    rows: list[Any] = []
    for number, part in enumerate(made.parts):
        task = StageTask(number, _BOUND)
        rows += RouteToBuckets(made.collector, writer, STEP, 1)(chained(made, part, task), task)
    rows.sort(key=attrgetter("target"))
    downstream = made.collector.keyed.downstream
    return list(written_entries(writer, downstream, STEP, read_buckets(iter(rows)), StageTask(0, _BOUND)))


def _by_key(made: Program, given: list[Any]) -> Any:
    reduction = made.collector
    assert reduction is not None
    groups = reduction.supplier()
    for number, part in enumerate(made.parts):
        task = StageTask(number, _BOUND)
        for keys, containers in groups_of_partition(reduction, 0, STEP, False, False, chained(made, part, task), task):
            groups = reduction.combined(groups, dict(zip(keys, containers, strict=True)))
    return dict(groups)


_BOUND = 2**40


def outcomes(made: Program, seed: int) -> list[tuple[Outcome, list[Outcome]]]:
    """Return for each way to run it what columns give, and what plain Python may give, as for programs on numbers."""
    rows = Random(seed).choice((1, 3, 7, 16))
    plain = replace(made.plain(), parts=[list(list.__iter__(part)) for part in made.parts])
    found = []
    for end in ways_of_texts(made):
        with limits(
            (column_items, {"_FEWEST": 1, "_ROWS": rows, "_WORTH_A_LIST": 0, "_NUMBERS": _ALL_KINDS}),
            (text_functions, {"_MOST_MADE": 2**27 if seed % 8 else 20 * rows}),
            (python_rows, {"_FEWEST_ROWS": seed % 5, "_REPEATED": 1 + seed % 3, "_SAMPLE": 1 + seed % 7}),
            (text_groups, {"_MOST_STRING_GROUPS": rows * 2, "_MOST_BYTES": rows * 8}),
            (column_ends, {"_MOST_GROUPS": 1 + seed % 4}),
            (tables_by_key, {"_MOST_BYTES": bytes_together(end, seed)}),
            (
                column_row_groups,
                {"_FEWEST_ROWS": seed % 3, "_MOST_WEIGHT": 5 * (seed % 5), "_MANY_ROWS": seed % 4},
            ),
        ):
            given = outcome_of(end, made)
        found.append((given, possible_outcomes(functools.partial(outcome_of, end), plain, given)))
    return found


def main(first: int, last: int) -> Counter[str]:
    """Run programs; print those that differ, and return what became of all."""
    counts: Counter[str] = Counter()
    with watched(counts):
        return judged(range(first, last), _checks_of, counts)


def _checks_of(seed: int) -> tuple[str, Checks]:
    made = program(seed)
    return made.text, ((found[0], found, possible) for found, possible in outcomes(made, seed))
