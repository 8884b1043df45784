"""Functions as source text, and items for them, by chance: most fit each other, some do not."""

from __future__ import annotations

import dataclasses
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

__all__ = [
    "BUILT",
    "FORMS",
    "SOURCES",
    "Form",
    "WrittenForm",
    "building_of",
    "function_of",
    "items_of_form",
    "source_of",
]

_BOUNDARIES = [2**31, 2**32, 2**52, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**30]
_FLOATS = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 0.1, 2.675, 1e16, 2.0**53, 2.0**63, -(2.0**63), 1e308, 5e-324]
_ODD_FLOATS = [math.nan, math.inf, -math.inf]


def _small(random: Random) -> int:
    return random.randrange(-20, 21)


def _wide(random: Random) -> int:
    return random.randrange(-(10**6), 10**6)


def _huge(random: Random) -> int:
    if random.random() < 0.5:
        return random.choice((1, -1)) * (random.choice(_BOUNDARIES) + random.randrange(-2, 3))
    return random.choice((1, -1)) * random.getrandbits(random.randrange(1, 66))


def _near_the_end(random: Random) -> int:
    return random.choice((2**63 - 1 - random.randrange(4), -(2**63) + random.randrange(4), _small(random)))


def _near_exact(random: Random) -> int:
    return random.choice((1, -1)) * (2**53 + random.randrange(-3, 4))


def _float(random: Random) -> float:
    return random.choice((random.choice(_FLOATS), random.uniform(-100, 100), float(random.randrange(-20, 21))))


def _odd_float(random: Random) -> float:
    if random.random() < 0.2:
        return random.choice(_ODD_FLOATS)
    found: float = struct.unpack("d", random.randbytes(8))[0] if random.random() < 0.4 else _float(random)
    return found


def _bool(random: Random) -> bool:
    return random.random() < 0.5


def _text(random: Random) -> str:
    return random.choice(["", "a", "Ada", "ß", "İ", "\x1c ", "é", "7", "x" * 20])


def _anything(random: Random) -> Any:
    return random.choice((_small, _huge, _odd_float, _bool, _nothing, lambda _: None))(random)


def _nothing(random: Random) -> Any:
    """Return an empty text: a longer one that is multiplied by 2^31 would take all memory there is."""
    return ""


@dataclass(frozen=True)
class Form:
    """What kind of items a program has.

    Attributes:
        parts: makes the parts of an item, one for each name.
        kinds: what the parts mostly are: `i` an int, `f` a float, `b` a bool, `s` something else.
        is_tuple: whether the parts stand in a tuple.
    """

    parts: tuple[Callable[[Random], Any], ...]
    kinds: str
    is_tuple: bool = True

    def names(self, kind: str) -> list[str]:
        """Return how the parts of this kind are written."""
        if not self.is_tuple:
            return ["x"] if self.kinds == kind else []
        return [f"x[{place}]" for place, each in enumerate(self.kinds) if each == kind]


@dataclass(frozen=True)
class WrittenForm(Form):
    """The form of items that give their parts in a way of their own.

    Attributes:
        written: how functions write each part.
    """

    written: tuple[str, ...] = ()

    def names(self, kind: str) -> list[str]:
        """Return how the parts of this kind are written."""
        return [name for name, each in zip(self.written, self.kinds, strict=True) if each == kind]


@dataclass
class Pair:
    """An object that functions build."""

    a: Any
    b: Any = 5


@dataclass(frozen=True)
class Frozen:
    """An object that cannot be changed."""

    a: Any
    b: Any


class Named(NamedTuple):
    """A tuple with names."""

    a: Any
    b: Any = 2.5


_NAMES_OF_TIMES: dict[str, Any] = {"date": date, "datetime": datetime, "timedelta": timedelta}
BUILT: dict[str, Any] = {"Pair": Pair, "Frozen": Frozen, "Named": Named, "dict": dict}
"""The classes of objects that functions build, by the names that these have for them."""


def building_of(form: Form, random: Random) -> tuple[str, Form]:
    """Write a function that builds objects, or copies with other values; return the form of these."""
    kinds = "".join(random.choice("iifb") for _ in range(2))
    first, second = (source_of(form, random, kind).removeprefix("lambda x: ") for kind in kinds)
    ways = "x.a", "x.b"
    whole = _whole_of(form, random)
    if whole is not None and random.random() < 0.3:
        return whole
    changed = _changing_of(form, random, first, kinds[0])
    if changed is not None and random.random() < 0.5:
        return changed
    match random.randrange(7):
        case 0 | 1:
            built, ways = f"{{'a': {first}, 'b': {second}}}", _ways_of_dict(random)
        case 2:
            built, ways = f"dict(a={first}, b={second})", _ways_of_dict(random)
        case 3:
            built, ways = f"[{first}, {second}]", ("x[0]", "x[-1]")
        case 4:
            built = f"{random.choice(('Pair', 'Frozen'))}({first}, {second})"
        case 5:
            built, kinds = f"Pair({first})", kinds[0] + "i"
        case _:
            built, ways = f"Named(b={second}, a={first})", random.choice((("x.a", "x.b"), ("x[0]", "x[1]")))
    return f"lambda x: {built}", WrittenForm(form.parts, kinds, written=ways)


def _ways_of_dict(random: Random) -> tuple[str, str]:
    return random.choice(("x['a']", "x.get('a')", "x.get('a', 1)")), random.choice(("x['b']", "x.get('b', None)"))


def _whole_of(form: Form, random: Random) -> tuple[str, Form] | None:
    """Write a function that makes a dict of an object, or an object of a dict; None of other items."""
    if not isinstance(form, WrittenForm):
        return None
    if all(re.fullmatch(r"x\.\w+", each) for each in form.written):
        written = tuple(f"x[{each.removeprefix('x.')!r}]" for each in form.written)
        return "lambda x: dataclasses.asdict(x)", WrittenForm(form.parts, form.kinds, written=written)
    if [re.sub(r"^x(\[|\.get\()'(\w+)'.*", r"\2", each) for each in form.written] == ["a", "b"]:
        kind = random.choice(("Pair", "Frozen", "Named"))
        return f"lambda x: {kind}(**x)", WrittenForm(form.parts, form.kinds, written=("x.a", "x.b"))
    return None


def _changing_of(form: Form, random: Random, value: str, kind: str) -> tuple[str, Form] | None:
    """Write a function that copies an item with another value of one part; None if its parts have no names."""
    if not isinstance(form, WrittenForm):
        return None
    place = random.randrange(len(form.written))
    match re.fullmatch(r"x(?:\.(\w+)|\[('.+')\]|\.get\(('\w+').*)", form.written[place]):
        case re.Match() as found if found[1] is None:
            is_new, key = random.random() < 0.3, found[2] or found[3]
            written = (*form.written, "x['new']") if is_new else form.written
            kinds = form.kinds + kind if is_new else _with_kind(form, place, kind)
            source = f"lambda x: {{**x, {chr(39) + 'new' + chr(39) if is_new else key}: {value}}}"
            return source, WrittenForm(form.parts, kinds, written=written)
        case re.Match() as found:
            source = f"lambda x: dataclasses.replace(x, {found[1]}={value})"
            return source, WrittenForm(form.parts, _with_kind(form, place, kind), written=form.written)
    return None


def _with_kind(form: Form, place: int, kind: str) -> str:
    return form.kinds[:place] + kind + form.kinds[place + 1 :]


def _alone(make: Callable[[Random], Any], kind: str) -> Form:
    return Form((make,), kind, is_tuple=False)


FORMS = [
    _alone(_small, "i"),
    _alone(_wide, "i"),
    _alone(_huge, "i"),
    _alone(_near_the_end, "i"),
    _alone(_near_exact, "i"),
    _alone(_float, "f"),
    _alone(_odd_float, "f"),
    _alone(_bool, "b"),
    _alone(_anything, "i"),
    Form((_small, _small), "ii"),
    Form((_wide, _float), "if"),
    Form((_near_exact, _odd_float), "if"),
    Form((_near_the_end, _small), "ii"),
    Form((_huge, _bool, _float), "ibf"),
    Form((_small, _text, _odd_float), "isf"),
    Form((_bool, _anything, _small), "bsi"),
    Form((_float, _odd_float), "ff"),
    Form((_small, lambda random: (_wide(random), _float(random))), "is"),
]


def items_of_form(form: Form, random: Random, size: int) -> list[Any]:
    """Make items, among which there may be few that have another form."""
    made = [tuple(make(random) for make in form.parts) for _ in range(size)]
    items: list[Any] = made if form.is_tuple else [each[0] for each in made]
    if items and random.random() < 0.1:
        others = [None, True, 1.0, "", 2**70, math.nan, (1, 2.0, None) if form.is_tuple else (), items[0]]
        items[random.randrange(size)] = random.choice(others)
    return items


def function_of(source: str) -> Callable[..., Any]:
    """Compile a function, and remember its source."""
    made: Callable[..., Any] = eval(source, {**BUILT, **_NAMES_OF_TIMES, "dataclasses": dataclasses, "math": math})
    SOURCES[made] = source
    return made


SOURCES: WeakKeyDictionary[Callable[[Any], Any], str] = WeakKeyDictionary()
"""The source of each function that `function_of` has made."""


def source_of(form: Form, random: Random, gives: str) -> str:
    """Write a function of items of a form that mostly gives an int, a float, a bool or a tuple: `i`, `f`, `b`, `t`."""
    return "lambda x: " + _Writer(form, random).write(gives, random.randrange(1, 5))


class _Writer:
    def __init__(self, form: Form, random: Random) -> None:
        self.form = form
        self.random = random

    def write(self, kind: str, depth: int) -> str:
        random = self.random
        if random.random() < 0.04:
            kind = random.choice("ifbt" if kind in "bt" else "ifb")  # A tuple times a number takes all memory there is.
        if random.random() < 0.06 and depth > 0:
            return f"({self.write(kind, depth - 1)} if {self.write('b', depth - 1)} else {self.write(kind, depth - 1)})"
        if random.random() < 0.06 and depth > 0:
            return f"({self.write(kind, depth - 1)} {random.choice(('and', 'or'))} {self.write(kind, depth - 1)})"
        if kind in "ifb" and random.random() < 0.25 and (times := self._of_times(kind)):
            return times
        if depth <= 0 and kind != "t":
            return self.leaf(kind)
        return getattr(self, f"_{kind}")(depth - 1)

    def leaf(self, kind: str) -> str:
        random = self.random
        names = self.form.names(kind)
        if random.random() < 0.03:
            return random.choice(
                ["x", "x[0]", "x[-1]", "'a'", "()"] if kind == "b" else ["None", "x[0] // 1", "x[2] % 9"]
            )
        if names and random.random() < 0.75:
            return random.choice(names)
        return self.constant(kind)

    def _of_times(self, kind: str) -> str | None:
        """Write what a date, a moment or a Decimal gives; None if the items have none."""
        random, form = self.random, self.form
        days, moments, decimals = map(form.names, "dmc")
        of_day = [(each, random.choice([*days, "date(2026, 1, 9)", "date.max"])) for each in days]
        of_moment = [(each, random.choice([*moments, "datetime(2026, 1, 9, 12)"])) for each in moments]
        sign = random.choice(("<", "<=", "==", "!=", ">"))
        found: dict[str, list[str]] = {"i": [], "f": [], "b": []}
        for one, other in (*of_day, *of_moment):
            changed = random.choice(
                (one, f"({one} + timedelta(days={random.randrange(-40, 400)}))", f"{one}.replace(day=1)")
            )
            found["i"] += [f"{changed}.{random.choice(('year', 'month', 'day'))}", f"{changed}.weekday()"]
            found["i"] += [f"({one} - {other}).days", f"int({changed}.isoformat()[:4])", f"len(str({changed}))"]
            found["b"] += [f"({changed} {sign} {other})", f"({one} is None)", f"(({one} and {other}) {sign} {other})"]
            found["b"] += [f"({one} in ({other}, date(2026, 1, 3)))", f"({changed}.strftime('%d') > '15')"]
            found["f"] += [f"({one} - {other}).total_seconds()"]
        for one in moments:
            found["i"] += [
                f"{one}.hour",
                f"{one}.date().isoweekday()",
                f"{one}.replace(minute=0, second=0).microsecond",
            ]
            found["f"] += [f"{one}.timestamp()"]
        for one in decimals:
            found["b"] += [f"({one} {sign} {random.randrange(99)})", f"({one} * 2 {sign} {one} + 1)"]
            found["f"] += [f"float({one})", f"float({one} * {random.choice(decimals)})"]
            found["i"] += [f"int({one})", f"round({one})"]
        return random.choice(found[kind]) if found[kind] else None

    def constant(self, kind: str) -> str:
        random = self.random
        if kind == "b":
            return random.choice(("True", "False"))
        if kind == "f":
            return repr(random.choice((_float, _float, lambda r: abs(_float(r))))(random))
        found = random.choice((0, 1, 2, 3, 7, 10, 64, -1, -2, random.randrange(100), 2**31, 2**53, 2**62, 2**63 - 1))
        return repr(found if random.random() < 0.9 else _huge(random))

    def _i(self, depth: int) -> str:
        random, write = self.random, self.write
        form = random.randrange(14)
        if form < 5:
            return f"({write('i', depth)} {random.choice('+-*')} {write('i', depth)})"
        if form < 8:
            right = self.constant("i") if random.random() < 0.7 else write("i", depth)
            return f"({write('i', depth)} {random.choice(('%', '//', '%'))} {right})"
        if form == 8:
            return f"({write('i', depth)} {random.choice('&|^')} {write(random.choice('iib'), depth)})"
        if form == 9:
            right = random.randrange(-1, 66) if random.random() < 0.6 else f"({write('i', 0)} % 70 - 1)"
            return f"({write('i', depth)} {random.choice(('<<', '>>'))} {right})"
        if form == 10:
            right = random.randrange(-1, 5) if random.random() < 0.8 else write("i", 0)
            return (
                f"(({write('i', depth)} % 100) ** ({right} % 60))"
                if random.random() < 0.5
                else (f"({write('i', 0)} % 1000) ** {random.randrange(4)}")
            )
        if form == 11:
            called = random.choice(("abs", "int", "round", "-", "+", "~"))
            return f"({called}({write(random.choice('iifb'), depth)}))"
        if form == 12:
            return f"{random.choice(('min', 'max'))}({write('i', depth)}, {write('i', depth)})"
        return f"({write('b', depth)} + {write('b', depth)})"

    def _f(self, depth: int) -> str:
        random, write = self.random, self.write
        form = random.randrange(12)
        if form < 4:
            return f"({write('f', depth)} {random.choice('+-*')} {write(random.choice('ffi'), depth)})"
        if form < 6:
            return f"({write(random.choice('fi'), depth)} / {write(random.choice('fi'), depth)})"
        if form == 6:
            return f"({write('f', depth)} {random.choice(('%', '//'))} {write(random.choice('fi'), depth)})"
        if form == 7:
            return f"float({write(random.choice('fib'), depth)})"
        if form == 8:
            return f"{random.choice(('min', 'max'))}({write('f', depth)}, {write('f', depth)}, {write('f', 0)})"
        if form == 9:
            return f"(abs({write('f', depth)}) ** {random.choice(('0.5', '2', '-1', '1.5', '300'))})"
        if form == 10:
            return f"round({write('f', depth)}, {random.randrange(-2, 4)})"
        return f"({random.choice('-+')}{write('f', depth)})"

    def _b(self, depth: int) -> str:
        random, write = self.random, self.write
        form = random.randrange(8)
        kind = random.choice("iiffb")
        sign = random.choice(("==", "!=", "<", "<=", ">", ">="))
        if form < 3:
            return f"({write(kind, depth)} {sign} {write(kind if random.random() < 0.7 else 'i', depth)})"
        if form == 3:
            return (
                f"({write(kind, depth)} {sign} {write(kind, depth)} {random.choice(('<', '<=', '!='))} {write('i', 0)})"
            )
        if form == 4:
            return f"(not {write(random.choice('bif'), depth)})"
        if form == 5:
            among = ", ".join(write(random.choice("iif"), 0) for _ in range(random.randrange(1, 4)))
            return f"({write(kind, depth)} {random.choice(('in', 'not in'))} ({among},))"
        if form == 6:
            return f"({write('b', depth)} {random.choice('&|^')} {write('b', depth)})"
        return f"bool({write(random.choice('bift'), depth)})"

    def _t(self, depth: int) -> str:
        count = self.random.randrange(1, 4)
        return "(" + ", ".join(self.write(self.random.choice("iiffb"), depth) for _ in range(count)) + ",)"
