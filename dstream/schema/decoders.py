"""Decoders: the expected type of a value in a file, and its conversion to Python.

`dstream.schema.record_decoders` makes them of annotations, also those of formats that hold strings only;
`dstream.schema.factories` generates a function for values that need no conversion rules. They are values that contain
classes and no annotations, so that they can be sent to workers, which may not have the module that an annotation refers
to.
"""

from __future__ import annotations

import decimal
import enum
import functools
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from dstream.base.showing import shown
from dstream.schema.text_forms import TEXT_FORMS, TextForm, beyond_limit

__all__ = [
    "BASE64",
    "MADE",
    "UUID_OF_BYTES",
    "Anything",
    "DecodeError",
    "Decoder",
    "DictDecoder",
    "Fixed",
    "ItemDecoder",
    "ListDecoder",
    "Made",
    "ModelDecoder",
    "OptionalDecoder",
    "RecordDecoder",
    "ScalarDecoder",
    "UnionDecoder",
    "Whole",
    "dumped",
    "fitting",
]


class DecodeError(ValueError):
    """A value does not fit.

    Attributes:
        reason: a phrase.
        place: the path to the value, from the outside in: names of fields, and positions.
    """

    def __init__(self, reason: str, *place: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place

    def within(self, name: str) -> DecodeError:
        """Return the error with the name of the enclosing field."""
        return DecodeError(self.reason, name, *self.place)

    def message(self, unit: str) -> str:
        """Return the location, which is in a field or in a column, and the reason."""
        place = "".join(part if part.startswith("[") else f".{part}" for part in self.place).removeprefix(".")
        return f"{unit} {place}: {self.reason}" if place else self.reason

    def plain(self) -> ValueError:
        """Return the error as users see it, without a class of this module."""
        found = ValueError(self.message("field"))
        found.__cause__ = self.__cause__
        return found

    def __str__(self) -> str:
        return self.message("field")


class Decoder(Protocol):
    """The contract of a decoder, which makes a Python value of a value in a file."""

    @property
    def expected(self) -> str:
        """The expected type, in a word."""
        ...

    def made(self, value: Any) -> Any:
        """Return the value.

        Raises:
            DecodeError: it is none that can become one.
        """
        ...


def unfit(form: Decoder, value: Any, reason: str = "") -> DecodeError:
    """Return the error of a value that is not the expected one."""
    found = f"{_NAMES.get(type(value), type(value).__name__)} {shown(value)}{reason}"
    return DecodeError(f"expected {form.expected}, got {found}")


_NAMES: dict[type, str] = {dict: "object", list: "array"}


@dataclass(frozen=True)
class Anything:
    """Decoder that accepts every value unchanged."""

    expected = "anything"

    def made(self, value: Any) -> Any:
        """Return the value unchanged."""
        return value


@dataclass(frozen=True)
class ScalarDecoder:
    """Decoder of values of exactly one class, such as a string, None or an int."""

    kind: type

    @property
    def expected(self) -> str:
        """The type."""
        return "null" if self.kind is type(None) else self.kind.__name__

    def made(self, value: Any) -> Any:
        """Return the value of the decoder's class."""
        if type(value) is not self.kind:
            raise unfit(self, value)
        return value


@dataclass(frozen=True)
class Whole:
    """Decoder of any number as a float, including `1`."""

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
            raise DecodeError(f"{shown(value)} is too large for a float") from error


def fitting(form: Decoder) -> type | None:
    """Return the type whose values a decoder does not change; None if it checks each."""
    if isinstance(form, ScalarDecoder):
        return form.kind
    return float if isinstance(form, Whole) else getattr(form, "fits", None)


def _within(name: str, form: Decoder, value: Any) -> Any:
    try:
        return form.made(value)
    except DecodeError as error:
        raise error.within(name) from error.__cause__


def _at(place: Any, form: Decoder, value: Any) -> Any:
    # Its description is made only for errors: for every key it would cost as much as the values.
    try:
        return form.made(value)
    except DecodeError as error:
        raise error.within(f"[{shown(place)}]") from error.__cause__


_MISSING: Any = object()


@dataclass(frozen=True)
class Made:
    """Decoder of a value that a format represents as a string, or as another type.

    Attributes:
        kind: the type of the result; formats such as Parquet contain it directly.
        expected: a description of the input.
        accepted: types of JSON.
        make: makes the result.
    """

    kind: type
    expected: str
    accepted: tuple[type, ...]
    make: Callable[[Any], Any]

    def made(self, value: Any) -> Any:
        """Return the decoded value."""
        if type(value) is self.kind:
            return value
        if type(value) not in self.accepted:
            raise unfit(self, value)
        try:
            return self.make(value)
        # What `Decimal` raises is an ArithmeticError and no ValueError.
        except (ValueError, TypeError, ArithmeticError) as error:
            raise unfit(self, value, beyond_limit(error)) from error


def _decimal(value: Any) -> decimal.Decimal:
    # For a float the shortest number that rounds to it, which is the number in a file of JSON: other numbers are
    # refused.
    return decimal.Decimal(repr(value) if type(value) is float else value)


def _made_of_text(form: TextForm) -> Made:
    return Made(form.kind, f"{form.noun} such as {form.example!r}", (str,), form.parse)


_AS_THEY_ARE = (str, bool, int, float, bytes)
MADE: dict[type, Made] = {
    **{kind: _made_of_text(form) for kind, form in TEXT_FORMS.items() if kind not in _AS_THEY_ARE},
    decimal.Decimal: Made(decimal.Decimal, "a number, or a text with one", (str, int, float), _decimal),
}
"""Decoders of classes that JSON and several binary formats do not support: their text form is read."""
BASE64 = _made_of_text(TEXT_FORMS[bytes])


def _uuid(value: Any) -> uuid.UUID:
    found: uuid.UUID = uuid.UUID(bytes=value) if type(value) is bytes else MADE[uuid.UUID].make(value)
    return found


UUID_OF_BYTES = Made(uuid.UUID, "a UUID, its text or its 16 bytes", (str, bytes), _uuid)
"""Decoder of UUIDs in columns, which collections and other programs store as 16 bytes."""


@dataclass(frozen=True)
class Fixed:
    """Decoder of fixed values, each as itself or as a member of an enumeration."""

    values: tuple[tuple[Any, Any], ...]

    @property
    def expected(self) -> str:
        """The values."""
        return "one of " + ", ".join(shown(value) for value, _ in self.values)

    def made(self, value: Any) -> Any:
        """Return the object of a value; `1` and `True` are not the same."""
        for each, meant in self.values:
            if type(value) is type(each) and value == each:
                return meant
        raise unfit(self, value)

    @staticmethod
    def of_enumeration(kind: type[enum.Enum]) -> Fixed:
        """Return the decoder of the values of the members."""
        return Fixed(tuple((each.value, each) for each in kind.__members__.values()))


@dataclass(frozen=True)
class UnionDecoder:
    """Decoder of a union: the decoder of the value's own type if there is one, else the first that fits."""

    forms: tuple[Decoder, ...]

    @property
    def present(self) -> Decoder | None:
        """The decoder of `X` in `X | None`; None of other unions."""
        return self.forms[0] if self.forms[1:] == (ScalarDecoder(type(None)),) else None

    @property
    def expected(self) -> str:
        """The expected types of all forms."""
        return " or ".join(form.expected for form in self.forms)

    def made(self, value: Any) -> Any:
        """Return the value that the form decodes."""
        # First of all, so that an int remains an int in `float | int`.
        if type(value) in self._own:
            return value
        inner: list[DecodeError] = []
        for form in self.forms:
            try:
                return form.made(value)
            except DecodeError as error:
                inner.append(error)
        deepest = max(inner, key=lambda error: len(error.place))
        raise deepest if deepest.place else unfit(self, value)

    @functools.cached_property
    def _own(self) -> frozenset[type]:
        """The classes whose values are members of the union without conversion."""
        return frozenset(form.kind for form in self.forms if isinstance(form, ScalarDecoder | Made))


@dataclass(frozen=True)
class ListDecoder:
    """Decoder of an array: with one form for all items, or one form for each position.

    Attributes:
        kind: the container's type, such as `list`.
        each: the form of all, or one for each.
    """

    kind: Callable[[list[Any]], Any]
    each: Decoder | tuple[Decoder, ...]

    @property
    def expected(self) -> str:
        """An array, and how long it is if that is known."""
        return f"array of {len(self.each)}" if isinstance(self.each, tuple) else "array"

    def made(self, value: Any) -> Any:
        """Return the container of the values."""
        if type(value) is not list or (isinstance(self.each, tuple) and len(self.each) != len(value)):
            raise unfit(self, value)
        if not isinstance(self.each, tuple) and {fitting(self.each)}.issuperset(map(type, value)):
            return self.kind(value)
        forms = self.each if isinstance(self.each, tuple) else [self.each] * len(value)
        made = [_at(place, form, part) for place, (form, part) in enumerate(zip(forms, value, strict=True))]
        try:
            return self.kind(made)
        except TypeError as error:  # A set cannot contain arrays and objects.
            raise DecodeError(str(error)) from error


@dataclass(frozen=True)
class DictDecoder:
    """Decoder of an object as a dictionary, with one form for keys and one for values.

    Attributes:
        each: the form of the values.
        keys: the form of the keys; None: they are strings, which name their values in errors as fields do.
    """

    each: Decoder
    keys: Decoder | None = None

    expected = "object"

    def made(self, value: Any) -> Any:
        """Return the dictionary."""
        if type(value) is not dict:
            raise unfit(self, value)
        if self.keys is not None:
            return self._with_keys(value, self.keys)
        if wrong := [key for key in value if type(key) is not str]:  # Parquet has other keys, too.
            raise DecodeError(f"expected an object with names, got the key {shown(wrong[0])}")
        return {key: _within(key, self.each, part) for key, part in value.items()}

    def _with_keys(self, value: dict[Any, Any], keys: Decoder) -> dict[Any, Any]:
        made = {_key(keys, key): _at(key, self.each, part) for key, part in value.items()}
        if len(made) < len(value):
            raise DecodeError(f"two keys of {shown(value)} become one")
        return made


def _key(form: Decoder, key: Any) -> Any:
    try:
        return form.made(key)
    except DecodeError as error:
        raise DecodeError(f"a key: {error.message('field')}") from error.__cause__


@dataclass(frozen=True)
class OptionalDecoder:
    """Decoder of a key that may be absent, which is None in formats that have a value in every column.

    Attributes:
        form: that of the values, none of which is None.
    """

    form: Decoder

    @property
    def expected(self) -> str:
        """The expected type."""
        return self.form.expected

    @property
    def fits(self) -> type | None:
        """The type whose values are left as they are."""
        return fitting(self.form)

    def made(self, value: Any) -> Any:
        """Return a value that is not None."""
        return self.form.made(value)


@dataclass(eq=False)
class RecordDecoder:
    """Takes an object as a dataclass, a named tuple or a typed dictionary.

    Fields of the object that the class has not are left out. `fields` is filled later: a class may hold itself.

    Attributes:
        kind: makes it of its fields, by name.
        expected: the name of the class.
        fields: of each its name, the type that fits as it is, its form, and whether it is required.
        takes_arrays: an array has the values of all fields, which is how pydantic writes named tuples.
    """

    kind: Callable[..., Any]
    expected: str
    fields: list[tuple[str, type | None, Decoder, bool]] = field(default_factory=list)
    takes_arrays: bool = False

    def add(self, name: str, form: Decoder, is_required: bool) -> None:
        """Add a field."""
        self.fields.append((name, fitting(form), form, is_required))

    def made(self, value: Any) -> Any:
        """Return the record of an object's fields."""
        if self.takes_arrays and type(value) is list and len(value) == len(self.fields):
            value = dict(zip([name for name, *_ in self.fields], value, strict=True))
        if type(value) is not dict:
            raise unfit(self, value)
        values = {}
        for name, kind, form, is_required in self.fields:
            part = value.get(name, _MISSING)
            if type(part) is kind:
                values[name] = part
            elif part is None and isinstance(form, OptionalDecoder):
                continue
            elif part is not _MISSING:
                values[name] = _within(name, form, part)
            elif is_required:
                raise DecodeError("it is missing, and has no default", name)
        try:
            # Checks of the user's class may raise anything.
            return self.kind(**values)
        except Exception as error:
            raise DecodeError(f"{self.expected} cannot be made of it ({type(error).__name__}: {error})") from error


@dataclass(frozen=True)
class ModelDecoder:
    """Decoder of an object as a pydantic model, which checks and converts its fields by its own rules."""

    kind: Any

    @property
    def expected(self) -> str:
        """The name of the class."""
        return str(self.kind.__name__)

    def made(self, value: Any) -> Any:
        """Return the model of an object's fields."""
        if type(value) is not dict and not getattr(self.kind, "__pydantic_root_model__", False):
            raise unfit(self, value)
        try:
            return self.kind.model_validate(value)
        except Exception as error:  # A validator of the user's may raise anything.
            if not isinstance(error, sys.modules["pydantic"].ValidationError):
                raise DecodeError(f"{self.expected} cannot be made of it ({type(error).__name__}: {error})") from error
            raise _first_of(error) from error


def dumped(model: Any) -> Any:
    """Return the JSON form of a pydantic model, without computed fields, so that it can be read again."""
    computed = set(type(model).model_computed_fields)
    return model.model_dump(mode="json", by_alias=True, exclude=computed or None)


def _first_of(error: Any) -> DecodeError:
    """Return pydantic's message on the first field that does not fit."""
    first = error.errors(include_url=False)[0]
    place = (f"[{part}]" if isinstance(part, int) else str(part) for part in first["loc"])
    return DecodeError(f"{first['msg']}, got {shown(first['input'])}", *place)


ItemDecoder = RecordDecoder | ModelDecoder
"""The decoder of a line or row."""
