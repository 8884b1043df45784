"""`where`: a field of items, of which comparisons make predicates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NoReturn

from dstream.values.predicates import And, Comparison, IsNone, Matching, Not, OneOf, Predicate

__all__ = ["Field", "where"]


def where(path: str) -> Field:
    """Name a field of items, to make a condition of it: `where("country") == "NO"`.

    A condition is a `Predicate`: it stands wherever a function of an entry or an item may, such as in
    `map.select(...)`, `map.stream(...)`, `imap(name, ...)` and `stream.filter(...)`.

    Args:
        path: an attribute of objects, or a key of mappings; `"address.city"` goes further in. Of an entry of a map it
            is a field of the value. `"this"` is the value itself, and `"__key"` the key, of which `"__key.year"` is a
            field. A mapping without the key counts as one that has None there; so does what would be behind a None.

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
    """A field of items, as `where` names it. Comparing it gives a `Predicate`.

    Comparisons are Python's: a NaN equals nothing, and what cannot be compared is a `TypeError` that names the value.
    """

    __slots__ = ("_path",)
    __hash__ = None  # type: ignore[assignment]  # `==` does not say whether two of them are equal.

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
        """Return the condition that the field equals one of some values.

        Raises:
            TypeError: `values` is a text, or cannot be iterated.
            ValueError: None is among them, which equals nothing; `is_none()` finds it.
        """
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise TypeError(f"is_in() takes several values, such as a list of them, not {values!r:.200}")
        known = tuple(self._operand(value) for value in values)
        return OneOf(self._path, known)

    def is_none(self) -> Predicate:
        """Return the condition that the field is None, or not there; `== None` gives the same."""
        return IsNone(self._path)

    def like(self, pattern: str) -> Predicate:
        r"""Return the condition that the field is a text like a pattern of SQL.

        In it `%` stands for any characters, `_` for one, and `\` before one of these for itself.

        Example:
            >>> [name for name in ("Ada", "Alan", "Grace") if where("this").like("A%a_")(name)]
            ['Alan']
        """
        return self._matching("like", pattern, _of_sql(_text(pattern, "like")), re.DOTALL)

    def ilike(self, pattern: str) -> Predicate:
        """Return the condition that the field is a text like a pattern of SQL, in upper or lower case."""
        return self._matching("ilike", pattern, _of_sql(_text(pattern, "ilike")), re.DOTALL | re.IGNORECASE)

    def regex(self, pattern: str) -> Predicate:
        """Return the condition that the field is a text that a regular expression of Python matches as a whole.

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
