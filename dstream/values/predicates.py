"""`where` and `Predicate`: conditions on fields as values.

A `Predicate` can be called like a function; it can also be pickled, printed and analysed, which a function cannot.
"""

from __future__ import annotations

import functools
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from dstream.values.entries import Entry

__all__ = ["And", "Comparison", "Field", "IsNone", "Matching", "Not", "OneOf", "Or", "Predicate", "value_at", "where"]


class Predicate(ABC):
    """A condition, made by `where`; combine them with `&`, `|` and `~`.

    It is called with an entry of a map, of which it tests the value, or with any other item, and returns True or False.

    As in SQL, a field that is None neither satisfies a condition nor its opposite: `where("age") > 40` and
    `~(where("age") > 40)` both leave it out. `where("age") == None` and `where("age").is_none()` find it.

    Example:
        >>> is_old = where("age") > 40
        >>> is_old, is_old({"age": 85}), is_old({"age": None}), (~is_old)({"age": None})
        (where('age') > 40, True, False, False)
    """

    __slots__ = ()

    def __call__(self, item: object) -> bool:
        """Return whether an item satisfies the condition; one of which that is not known does not."""
        return self.truth(item) is True

    @abstractmethod
    def truth(self, item: object) -> bool | None:
        """Return whether an item satisfies the condition, None if a field that is None leaves that open."""

    def __and__(self, other: Predicate) -> Predicate:
        return And((*_parts(And, self), *_parts(And, other)))

    def __or__(self, other: Predicate) -> Predicate:
        return Or((*_parts(Or, self), *_parts(Or, other)))

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} is a condition, neither true nor false: combine conditions with &, | and ~, each in "
            "parentheses, not with and, or, not; a < where(...) < b is where(...).between(a, b)"
        )


def _parts(kind: type[And | Or], other: object) -> tuple[Predicate, ...]:
    """Return the parts of a conjunction of conjunctions: thousands of parts are one level, not thousands."""
    if not isinstance(other, Predicate):
        raise TypeError(f"a condition is combined with another one, such as where('age') > 40, not with {other!r:.200}")
    return other.parts if isinstance(other, kind) else (other,)


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Predicate):
    """The field at a path, compared with a value by Python's operator of that symbol."""

    path: str
    symbol: str
    operand: Any

    def truth(self, item: object) -> bool | None:
        """Compare; a field that is None leaves it open."""
        value = value_at(self.path, item)
        if value is None:
            return None
        try:
            return bool(_OPERATORS[self.symbol](value, self.operand))
        except TypeError as error:
            raise TypeError(f"{self!r}, on the value {value!r:.200}: {error}") from error

    def __repr__(self) -> str:
        return f"where({self.path!r}) {self.symbol} {self.operand!r}"


_OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True, repr=False)
class OneOf(Predicate):
    """Condition that the field at a path equals one of several values."""

    path: str
    values: tuple[Any, ...]
    _known: Any = field(init=False, compare=False)

    def __post_init__(self) -> None:
        # A set finds a NaN by its identity, which pickling does not preserve.
        equal = [value for value in self.values if value == value]
        object.__setattr__(self, "_known", _set_of(equal))

    def truth(self, item: object) -> bool | None:
        """Return whether the field is among the values; None if the field is None."""
        value = value_at(self.path, item)
        if value is None:
            return None
        try:
            return value in self._known
        except TypeError:  # It has no hash, and may equal one that has.
            return any(value == each for each in self._known)

    def __repr__(self) -> str:
        return f"where({self.path!r}).is_in({list(self.values)!r})"


def _set_of(values: list[Any]) -> frozenset[Any] | tuple[Any, ...]:
    try:
        return frozenset(values)
    except TypeError:
        return tuple(values)


@dataclass(frozen=True, slots=True, repr=False)
class Matching(Predicate):
    """Condition that the field at a path is a string that fully matches a pattern.

    Attributes:
        made_by: the method that the user called, with the argument `text`.
    """

    path: str
    made_by: str
    text: str
    pattern: re.Pattern[str]

    def truth(self, item: object) -> bool | None:
        """Match; a field that is None leaves it open."""
        value = value_at(self.path, item)
        if value is None:
            return None
        if not isinstance(value, str):
            raise TypeError(f"{self!r} looks at texts, and the value {value!r:.200} is none")
        return self.pattern.fullmatch(value) is not None

    def __repr__(self) -> str:
        return f"where({self.path!r}).{self.made_by}({self.text!r})"


@dataclass(frozen=True, slots=True, repr=False)
class IsNone(Predicate):
    """The field at a path is None; the result is always known."""

    path: str

    def truth(self, item: object) -> bool:
        """Return whether the field at the path is None."""
        return value_at(self.path, item) is None

    def __repr__(self) -> str:
        return f"where({self.path!r}).is_none()"


@dataclass(frozen=True, slots=True, repr=False)
class _Several(Predicate):
    """Conditions of which one that is `decisive` decides for all."""

    parts: tuple[Predicate, ...]

    decisive: ClassVar[bool]
    sign: ClassVar[str]

    def truth(self, item: object) -> bool | None:
        """Evaluate the conditions in order, up to the first that decides the result."""
        decisive = self.decisive
        result: bool | None = not decisive
        for part in self.parts:
            truth = part.truth(item)
            if truth is decisive:
                return decisive
            result = None if truth is None else result
        return result

    def __repr__(self) -> str:
        return f" {self.sign} ".join(f"({part!r})" for part in self.parts)


class And(_Several):
    """Conjunction of conditions."""

    __slots__ = ()
    decisive = False
    sign = "&"


class Or(_Several):
    """Disjunction of conditions."""

    __slots__ = ()
    decisive = True
    sign = "|"


@dataclass(frozen=True, slots=True, repr=False)
class Not(Predicate):
    """Negation of a condition; unknown remains unknown."""

    part: Predicate

    def truth(self, item: object) -> bool | None:
        """Evaluate the condition and negate the result."""
        truth = self.part.truth(item)
        return None if truth is None else not truth

    def __repr__(self) -> str:
        return f"~({self.part!r})"


def value_at(path: str, item: object) -> Any:
    """Return the value at a path in an item; in an entry of a map, in its value.

    Raises:
        AttributeError: an object on the path has no such attribute.
        TypeError: `__key` was used on an item that is no entry.
    """
    of_key, names = _parsed(path)
    value: Any = _key_of(item, path) if of_key else item.value if isinstance(item, Entry) else item
    for name in names:
        if value is None:
            return None
        try:
            value = value.get(name) if _is_mapping(type(value)) else getattr(value, name)  # type: ignore[arg-type]
        except AttributeError as error:
            raise AttributeError(f"where({path!r}): {type(value).__name__} has no field {name!r}") from error
    return value


@functools.lru_cache(maxsize=1024)
def _parsed(path: str) -> tuple[bool, list[str]]:
    """Return whether a path begins at the key, and which names follow."""
    first, *names = path.split(".")
    return first == "__key", names if first in ("this", "__key") else [first, *names]


def _key_of(item: object, path: str) -> Any:
    if not isinstance(item, Entry):
        raise TypeError(f"where({path!r}) needs entries of a map, not {type(item).__name__}")
    return item.key


@functools.lru_cache(maxsize=1024)
def _is_mapping(kind: type) -> bool:
    """Return whether a class is a mapping; cached, since a check for each value would double the cost."""
    return issubclass(kind, Mapping)


def where(path: str) -> Field:
    """Name a field of items, to make a condition of it: `where("country") == "NO"`.

    A condition is a `Predicate`: it replaces a function of an entry or an item, such as in
    `map.select(...)`, `map.stream(...)`, `imap(name, ...)` and `stream.filter(...)`.

    Args:
        path: an attribute of objects, or a key of mappings; `"address.city"` is a nested field. For an entry of a map
            it is a field of the value. `"this"` is the value itself, `"__key"` the key, and `"__key.year"` a field of
            the key. A missing key of a mapping counts as None; so does a field of None.

    Raises:
        TypeError: `path` is no str.
        ValueError: a name in it is empty.

    Example:
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     people = ctx.get_map("people")
        ...     people.update(Ada={"born": 1815, "country": "UK"}, Niels={"born": 1802, "country": "NO"})
        ...     people.select((where("country") == "NO") | (where("born") >= 1900), lambda entry: entry.key)
        ['Niels']
    """
    if not isinstance(path, str):
        raise TypeError(f"where() takes the name of a field, such as 'country' or 'address.city', not {path!r:.200}")
    if not all(path.split(".")):
        raise ValueError(f"where() takes the name of a field, such as 'country' or 'address.city', not {path!r:.200}")
    return Field(path)


class Field:
    """A field of items, as named by `where`. A comparison returns a `Predicate`.

    Comparisons are Python's: a NaN equals nothing, and what cannot be compared is a `TypeError` that names the value.
    """

    __slots__ = ("_path",)
    __hash__ = None  # type: ignore[assignment]  # `==` does not compare two of them.

    def __init__(self, path: str) -> None:
        self._path = path

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return IsNone(self._path) if other is None else self._compared("==", other)

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return Not(IsNone(self._path)) if other is None else self._compared("!=", other)

    def __lt__(self, other: Any) -> Predicate:
        return self._compared("<", other)

    def __le__(self, other: Any) -> Predicate:
        return self._compared("<=", other)

    def __gt__(self, other: Any) -> Predicate:
        return self._compared(">", other)

    def __ge__(self, other: Any) -> Predicate:
        return self._compared(">=", other)

    def between(self, low: Any, high: Any) -> Predicate:
        """Return the condition that the field lies from `low` to `high`, both included."""
        return And((self._compared(">=", low), self._compared("<=", high)))

    def is_in(self, values: Iterable[Any]) -> Predicate:
        """Return the condition that the field equals one of `values`.

        Raises:
            TypeError: `values` is a string, or cannot be iterated.
            ValueError: None is among them, which equals nothing; use `is_none()`.
        """
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise TypeError(f"is_in() takes several values, such as a list of them, not {values!r:.200}")
        known = tuple(self._operand(value) for value in values)
        return OneOf(self._path, known)

    def is_none(self) -> Predicate:
        """Return the condition that the field is None, or missing; `== None` is equivalent."""
        return IsNone(self._path)

    def like(self, pattern: str) -> Predicate:
        r"""Return the condition that the field is a string that matches a `LIKE` pattern of SQL.

        In it `%` matches any characters, `_` one, and `\` before one of these the character itself.

        Example:
            >>> [name for name in ("Ada", "Alan", "Grace") if where("this").like("A%a_")(name)]
            ['Alan']
        """
        return self._matching("like", pattern, _of_sql(_text(pattern, "like")), re.DOTALL)

    def ilike(self, pattern: str) -> Predicate:
        """Return the condition that the field is a string that matches a `LIKE` pattern of SQL, ignoring case."""
        return self._matching("ilike", pattern, _of_sql(_text(pattern, "ilike")), re.DOTALL | re.IGNORECASE)

    def regex(self, pattern: str) -> Predicate:
        """Return the condition that the field is a string that fully matches a regular expression of Python.

        Raises:
            ValueError: it is no regular expression.
        """
        return self._matching("regex", pattern, _text(pattern, "regex"), 0)

    def _compared(self, symbol: str, other: Any) -> Predicate:
        return Comparison(self._path, symbol, self._operand(other))

    def _operand(self, value: Any) -> Any:
        if value is None:
            raise ValueError(f"{self!r} is compared with None, which leaves every comparison open; use .is_none()")
        if isinstance(value, Field | Predicate):
            raise TypeError(f"{self!r} is compared with a value, not with {value!r}; a function can compare two fields")
        return value

    def _matching(self, made_by: str, text: str, pattern: str, flags: int) -> Predicate:
        try:
            return Matching(self._path, made_by, text, re.compile(pattern, flags))
        except re.error as error:
            raise ValueError(f"{self!r}.{made_by}({text!r}) takes a pattern: {error}") from error

    def _combined(self, other: object) -> NoReturn:
        raise TypeError(f"{self!r} is combined with {other!r:.200}: each condition beside a & or | needs parentheses")

    __and__ = __rand__ = __or__ = __ror__ = _combined

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} is a field, not a condition: compare it, as in {self!r} == True")

    def __repr__(self) -> str:
        return f"where({self._path!r})"


def _text(pattern: object, made_by: str) -> str:
    if not isinstance(pattern, str):
        raise TypeError(f"{made_by}() takes a pattern, a str, not {pattern!r:.200}")
    return pattern


def _of_sql(pattern: str) -> str:
    """Return a pattern of SQL as a regular expression."""
    parts = re.findall(r"\\[\\%_]|.", pattern, re.DOTALL)
    return "".join(_SQL.get(part) or re.escape(part[-1]) for part in parts)


_SQL = {"%": ".*", "_": "."}
