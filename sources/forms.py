"""Forms: what a value that stands in a file has to be, and what is made of it.

`sources.kinds` makes them of annotations, `sources.text_forms` has those of formats that hold texts only,
`sources.quick_makers` writes a function for what fits at once. They are values that hold classes and no annotations,
so that they travel to workers, which may not know the module that an annotation refers to.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from dstream.values.blaming import shown

__all__ = [
    "MADE",
    "Anything",
    "Each",
    "Fixed",
    "Form",
    "FormOfItem",
    "Made",
    "Mapped",
    "Modelled",
    "OneOf",
    "OrAbsent",
    "Record",
    "Scalar",
    "Unfit",
    "Whole",
    "fitting",
]


class Unfit(ValueError):
    """A value does not fit.

    Attributes:
        reason: half a sentence.
        place: where it stands, from the outside in: names of fields, and positions.
    """

    def __init__(self, reason: str, *place: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place

    def within(self, name: str) -> Unfit:
        """Return it as what is around sees it."""
        return Unfit(self.reason, name, *self.place)

    def said(self, unit: str) -> str:
        """Return the reason behind the place, which is one in a field or in a column."""
        place = "".join(part if part.startswith("[") else f".{part}" for part in self.place).removeprefix(".")
        return f"{unit} {place}: {self.reason}" if place else self.reason

    def plain(self) -> ValueError:
        """Return it as users see it, who know no class of this module."""
        found = ValueError(self.said("field"))
        found.__cause__ = self.__cause__
        return found

    def __str__(self) -> str:
        return self.said("field")


class Form(Protocol):
    """Makes a value of one that stands in a file."""

    @property
    def expected(self) -> str:
        """What is expected, in a word."""
        ...

    def made(self, value: Any) -> Any:
        """Return the value.

        Raises:
            Unfit: it is none that can become one.
        """
        ...


def unfit(form: Form, value: Any) -> Unfit:
    """Return that a value is not what is expected."""
    return Unfit(f"expected {form.expected}, got {_NAMES.get(type(value), type(value).__name__)} {shown(value)}")


_NAMES: dict[type, str] = {dict: "object", list: "array"}


@dataclass(frozen=True)
class Anything:
    """Takes everything as it is."""

    expected = "anything"

    def made(self, value: Any) -> Any:
        """Return it."""
        return value


@dataclass(frozen=True)
class Scalar:
    """Takes values of one class, such as a text, None or an int, and nothing that only looks like one."""

    kind: type

    @property
    def expected(self) -> str:
        """The type."""
        return "null" if self.kind is type(None) else self.kind.__name__

    def made(self, value: Any) -> Any:
        """Return it."""
        if type(value) is not self.kind:
            raise unfit(self, value)
        return value


@dataclass(frozen=True)
class Whole:
    """Takes any number as a float: `1` is one, too."""

    expected = "float"

    def made(self, value: Any) -> float:
        """Return the float."""
        if type(value) is float:
            return value
        if type(value) is not int:
            raise unfit(self, value)
        try:
            return float(value)
        except OverflowError as error:
            raise Unfit(f"{shown(value)} is too large for a float") from error


def fitting(form: Form) -> type | None:
    """Return the type whose values a form leaves as they are; None if it looks at each."""
    if isinstance(form, Scalar):
        return form.kind
    return float if isinstance(form, Whole) else getattr(form, "fits", None)


def _within(name: str, form: Form, value: Any) -> Any:
    try:
        return form.made(value)
    except Unfit as error:
        raise error.within(name) from error.__cause__


_MISSING: Any = object()


@dataclass(frozen=True)
class Made:
    """Makes a value of a text, or of something else that stands for one.

    Attributes:
        kind: what is made; formats such as Parquet hold it already.
        expected: of what, in words.
        accepted: types of JSON.
        make: makes it.
    """

    kind: type
    expected: str
    accepted: tuple[type, ...]
    make: Callable[[Any], Any]

    def made(self, value: Any) -> Any:
        """Return what is made."""
        if type(value) is self.kind:
            return value
        if type(value) not in self.accepted:
            raise unfit(self, value)
        try:
            return self.make(value)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise unfit(self, value) from error


def _decimal(value: Any) -> decimal.Decimal:
    # Of a float the shortest number that rounds to it, which is what stood in a file of JSON: it refuses others.
    return decimal.Decimal(repr(value) if type(value) is float else value)


MADE = {
    decimal.Decimal: Made(decimal.Decimal, "a number, or a text with one", (str, int, float), _decimal),
    datetime.date: Made(datetime.date, "a date such as '2026-01-31'", (str,), datetime.date.fromisoformat),
    datetime.time: Made(datetime.time, "a time such as '23:59:00'", (str,), datetime.time.fromisoformat),
    datetime.datetime: Made(
        datetime.datetime, "a time such as '2026-01-31T23:59:00+00:00'", (str,), datetime.datetime.fromisoformat
    ),
}


@dataclass(frozen=True)
class Fixed:
    """Takes one of a few values, and gives what each stands for: itself, or a member of an enumeration."""

    values: tuple[tuple[Any, Any], ...]

    @property
    def expected(self) -> str:
        """The values."""
        return "one of " + ", ".join(shown(value) for value, _ in self.values)

    def made(self, value: Any) -> Any:
        """Return what it stands for; `1` and `True` are not the same."""
        for each, meant in self.values:
            if type(value) is type(each) and value == each:
                return meant
        raise unfit(self, value)

    @staticmethod
    def of_enumeration(kind: type[enum.Enum]) -> Fixed:
        """Return the form whose values are those of the members."""
        return Fixed(tuple((each.value, each) for each in kind.__members__.values()))


@dataclass(frozen=True)
class OneOf:
    """Takes what one of several forms takes: the one of its own type if there is one, else the first."""

    forms: tuple[Form, ...]

    @property
    def expected(self) -> str:
        """All of them."""
        return " or ".join(form.expected for form in self.forms)

    def made(self, value: Any) -> Any:
        """Return what the form makes."""
        if any(isinstance(form, Scalar) and form.kind is type(value) for form in self.forms):
            return value
        inner: list[Unfit] = []
        for form in self.forms:
            try:
                return form.made(value)
            except Unfit as error:
                inner.append(error)
        deepest = max(inner, key=lambda error: len(error.place))
        raise deepest if deepest.place else unfit(self, value)


@dataclass(frozen=True)
class Each:
    """Takes an array: of items of one form, or of one form for each position.

    Attributes:
        kind: what is made of them, such as `list`.
        each: the form of all, or one for each.
    """

    kind: Callable[[list[Any]], Any]
    each: Form | tuple[Form, ...]

    @property
    def expected(self) -> str:
        """An array, and how long it is if that is known."""
        return f"array of {len(self.each)}" if isinstance(self.each, tuple) else "array"

    def made(self, value: Any) -> Any:
        """Return them."""
        if type(value) is not list or (isinstance(self.each, tuple) and len(self.each) != len(value)):
            raise unfit(self, value)
        if not isinstance(self.each, tuple) and {fitting(self.each)}.issuperset(map(type, value)):
            return self.kind(value)
        forms = self.each if isinstance(self.each, tuple) else [self.each] * len(value)
        made = [_within(f"[{place}]", form, part) for place, (form, part) in enumerate(zip(forms, value, strict=True))]
        try:
            return self.kind(made)
        except TypeError as error:  # A set holds no arrays and objects.
            raise Unfit(str(error)) from error


@dataclass(frozen=True)
class Mapped:
    """Takes an object as a dictionary whose values have one form."""

    each: Form

    expected = "object"

    def made(self, value: Any) -> Any:
        """Return the dictionary."""
        if type(value) is not dict:
            raise unfit(self, value)
        if wrong := [key for key in value if type(key) is not str]:  # Parquet has other keys, too.
            raise Unfit(f"expected an object with names, got the key {shown(wrong[0])}")
        return {key: _within(key, self.each, part) for key, part in value.items()}


@dataclass(frozen=True)
class OrAbsent:
    """Says of a key that may be absent that None stands for that, in formats which have a value in every column.

    Attributes:
        form: that of the values, none of which is None.
    """

    form: Form

    @property
    def expected(self) -> str:
        """What a value has to be."""
        return self.form.expected

    @property
    def fits(self) -> type | None:
        """The type whose values are left as they are."""
        return fitting(self.form)

    def made(self, value: Any) -> Any:
        """Return a value that is there."""
        return self.form.made(value)


@dataclass(eq=False)
class Record:
    """Takes an object as a dataclass, a named tuple or a typed dictionary.

    Fields of the object that the class has not are left out. `fields` is filled later: a class may hold itself.

    Attributes:
        kind: makes it of its fields, by name.
        expected: the name of the class.
        fields: of each its name, the type that fits as it is, its form, and whether it has to be there.
    """

    kind: Callable[..., Any]
    expected: str
    fields: list[tuple[str, type | None, Form, bool]] = field(default_factory=list)

    def add(self, name: str, form: Form, is_required: bool) -> None:
        """Add a field."""
        self.fields.append((name, fitting(form), form, is_required))

    def made(self, value: Any) -> Any:
        """Return it."""
        if type(value) is not dict:
            raise unfit(self, value)
        values = {}
        for name, kind, form, is_required in self.fields:
            part = value.get(name, _MISSING)
            if type(part) is kind:
                values[name] = part
            elif part is None and isinstance(form, OrAbsent):
                continue
            elif part is not _MISSING:
                values[name] = _within(name, form, part)
            elif is_required:
                raise Unfit("it is missing, and has no default", name)
        try:
            return self.kind(**values)
        except Exception as error:
            raise Unfit(f"{self.expected} cannot be made of it ({type(error).__name__}: {error})") from error


@dataclass(frozen=True)
class Modelled:
    """Takes an object as a pydantic model, which checks and converts its fields by its own rules."""

    kind: Any

    @property
    def expected(self) -> str:
        """The name of the class."""
        return str(self.kind.__name__)

    def made(self, value: Any) -> Any:
        """Return it."""
        if type(value) is not dict:
            raise unfit(self, value)
        try:
            return self.kind.model_validate(value)
        except Exception as error:  # A validator of the user's may raise anything.
            if not isinstance(error, sys.modules["pydantic"].ValidationError):
                raise Unfit(f"{self.expected} cannot be made of it ({type(error).__name__}: {error})") from error
            raise _first_of(error) from error


def _first_of(error: Any) -> Unfit:
    """Return what pydantic says of the first field that does not fit."""
    first = error.errors(include_url=False)[0]
    place = (f"[{part}]" if isinstance(part, int) else str(part) for part in first["loc"])
    return Unfit(f"{first['msg']}, got {shown(first['input'])}", *place)


FormOfItem = Record | Modelled
"""What a whole line or row becomes."""
