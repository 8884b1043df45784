"""`Predicate`: a condition on the fields of a value that is a value itself; `conditions.where` makes them.

It can be called like any predicate, pickled, printed and taken apart, which is what a function cannot.
"""

from __future__ import annotations

import functools
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from dstream.values.entry import Entry

__all__ = ["And", "Comparison", "IsNone", "Matching", "Not", "OneOf", "Or", "Predicate", "value_at"]


class Predicate(ABC):
    """A condition, made by `where`; combine them with `&`, `|` and `~`.

    Call it with an entry of a map, whose value it looks into, or with any other item. It says True or False.

    As in SQL, a field that is None neither satisfies a condition nor its opposite: `where("age") > 40` and
    `~(where("age") > 40)` both leave it out. `where("age") == None` and `where("age").is_none()` find it.

    Example:
        >>> is_old = where("age") > 40
        >>> is_old, is_old({"age": 85}), is_old({"age": None}), (~is_old)({"age": None})
        (where('age') > 40, True, False, False)
    """

    __slots__ = ()

    def __call__(self, item: object) -> bool:
        """Say whether an item satisfies the condition; one of which that is not known does not."""
        return self.truth(item) is True

    @abstractmethod
    def truth(self, item: object) -> bool | None:
        """Say whether an item satisfies the condition, None if a field that is None leaves that open."""

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
    """Return what a conjunction of conjunctions is made of: thousands of parts are one level, not thousands."""
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
    """The field at a path is equal to one of some values."""

    path: str
    values: tuple[Any, ...]
    _known: Any = field(init=False, compare=False)

    def __post_init__(self) -> None:
        # A set finds a NaN by its identity, which does not survive the way to a worker.
        equal = [value for value in self.values if value == value]
        object.__setattr__(self, "_known", _set_of(equal))

    def truth(self, item: object) -> bool | None:
        """Look the field up among the values; one that is None leaves it open."""
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
    """The field at a path is a text that a pattern matches as a whole.

    Attributes:
        made_by: the method that the user called, with `text`.
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
    """The field at a path is None; of this one always knows."""

    path: str

    def truth(self, item: object) -> bool:
        """Look at the field."""
        return value_at(self.path, item) is None

    def __repr__(self) -> str:
        return f"where({self.path!r}).is_none()"


@dataclass(frozen=True, slots=True, repr=False)
class And(Predicate):
    """All of some conditions."""

    parts: tuple[Predicate, ...]

    def truth(self, item: object) -> bool | None:
        """Ask one after another, up to the first that says no."""
        result: bool | None = True
        for part in self.parts:
            truth = part.truth(item)
            if truth is False:
                return False
            result = None if truth is None else result
        return result

    def __repr__(self) -> str:
        return " & ".join(f"({part!r})" for part in self.parts)


@dataclass(frozen=True, slots=True, repr=False)
class Or(Predicate):
    """At least one of some conditions."""

    parts: tuple[Predicate, ...]

    def truth(self, item: object) -> bool | None:
        """Ask one after another, up to the first that says yes."""
        result: bool | None = False
        for part in self.parts:
            truth = part.truth(item)
            if truth is True:
                return True
            result = None if truth is None else result
        return result

    def __repr__(self) -> str:
        return " | ".join(f"({part!r})" for part in self.parts)


@dataclass(frozen=True, slots=True, repr=False)
class Not(Predicate):
    """The opposite of a condition; what one does not know stays so."""

    part: Predicate

    def truth(self, item: object) -> bool | None:
        """Ask, and turn the answer round."""
        truth = self.part.truth(item)
        return None if truth is None else not truth

    def __repr__(self) -> str:
        return f"~({self.part!r})"


def value_at(path: str, item: object) -> Any:
    """Return what stands at a path in an item; in an entry of a map, in its value.

    Raises:
        AttributeError: an object on the way has no such attribute.
        TypeError: `__key` was asked of what is no entry.
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
    """Say whether a path begins at the key, and which names follow."""
    first, *names = path.split(".")
    return first == "__key", names if first in ("this", "__key") else [first, *names]


def _key_of(item: object, path: str) -> Any:
    if not isinstance(item, Entry):
        raise TypeError(f"where({path!r}) needs entries of a map, not {type(item).__name__}")
    return item.key


@functools.lru_cache(maxsize=1024)
def _is_mapping(kind: type) -> bool:
    """Say whether a class is one of mappings, which asking each value would take as long as all the rest."""
    return issubclass(kind, Mapping)
