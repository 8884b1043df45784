"""Annotations of classes as decoders of records, for CSV, JSON and binary formats.

Nothing is guessed: a string is read if it has the format of the annotation, and refused otherwise. An empty field is
None, which only an annotation such as `int | None` accepts.

A `Vocabulary` has the types of a format: JSON has strings, numbers and more, CSV has strings, Parquet has dates, too.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import json
import sys
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args, get_origin

from dstream.base.showing import shown
from dstream.schema.decoders import (
    BASE64,
    MADE,
    UUID_OF_BYTES,
    Anything,
    DecodeError,
    Decoder,
    DictDecoder,
    Fixed,
    ItemDecoder,
    ListDecoder,
    ModelDecoder,
    OptionalDecoder,
    RecordDecoder,
    ScalarDecoder,
    UnionDecoder,
    Whole,
)
from dstream.schema.text_forms import TEXT_FORMS, beyond_limit
from dstream.spi import Misread
from dstream.values.fields import (
    CONTAINERS,
    MAPPINGS,
    UNIONS,
    field_names,
    has_default,
    hints_of_kind,
    in_words,
    is_attrs,
    is_model,
    is_required_key,
    is_typed_dict,
    name_of,
    plain_hint,
)

__all__ = [
    "BINARY",
    "JSON",
    "PARSED",
    "SQL",
    "TEXTS",
    "JsonDecoder",
    "OnMisread",
    "Parsed",
    "Spelled",
    "Vocabulary",
    "decoder_of",
    "form_of",
    "kind_behind",
    "missing_columns",
    "typed_form",
]


@dataclass(frozen=True)
class Parsed:
    """Decoder of a string as a value of one class.

    Attributes:
        kind: the class.
        expected: the expected format, with an example.
        parse: makes the value, or raises a ValueError.
    """

    kind: type
    expected: str
    parse: Callable[[str], Any]

    @property
    def fits(self) -> type | None:
        """The type whose values are not changed."""
        return str if self.kind is str else None

    def made(self, value: Any) -> Any:
        """Return the value."""
        if type(value) is not str:
            raise DecodeError(f"expected {self.expected}, got {_found(value)}")
        try:
            return self.parse(value)
        except (ValueError, ArithmeticError) as error:
            found = f"{shown(value)}{beyond_limit(error)}"
            raise DecodeError(f"expected {self.expected}, got {found}") from error


def _found(value: Any) -> str:
    return "an empty field" if value is None else shown(value)


PARSED: dict[type, Decoder] = {
    **{kind: Parsed(kind, form.expected, form.parse) for kind, form in TEXT_FORMS.items()},
    type(None): ScalarDecoder(type(None)),
}
"""The decoders of a string as a value of each class."""


@dataclass(frozen=True)
class Spelled:
    """Decoder of the string of one of several values, each decoded as its class."""

    fixed: Fixed

    @property
    def expected(self) -> str:
        """The values."""
        return self.fixed.expected

    def made(self, value: Any) -> Any:
        """Return the object of the value."""
        for kind in dict.fromkeys(type(each) for each, _ in self.fixed.values):
            try:
                return self.fixed.made(PARSED[kind].made(value))
            except DecodeError:
                continue
        raise DecodeError(f"expected {self.expected}, got {_found(value)}")

    @staticmethod
    def of(fixed: Fixed) -> Spelled:
        """Return the decoder of strings.

        Raises:
            TypeError: the format of one of the values is unknown.
        """
        if unknown := [value for value, _ in fixed.values if type(value) not in PARSED]:
            raise TypeError(f"no text becomes {shown(unknown[0])}")
        return Spelled(fixed)


@dataclass(frozen=True)
class JsonDecoder:
    """Decoder of JSON as a string, as SQLite returns it, or as the object that a driver has made of it.

    Attributes:
        form: of what the JSON has.
    """

    form: Decoder

    @property
    def expected(self) -> str:
        """The expected type."""
        return self.form.expected

    def made(self, value: Any) -> Any:
        """Return the value."""
        if type(value) is str:
            try:
                value = json.loads(value)
            # `json` recurses, and so fails on deeply nested values.
            except (ValueError, RecursionError) as error:
                raise DecodeError(f"expected {self.expected} as JSON, got {shown(value)} ({error})") from error
        return self.form.made(value)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The values of a format, and their Python types.

    Attributes:
        scalars: the decoder of each class without parts.
        fixed: the decoder of fixed values.
        is_nested: the format has arrays and objects inside of records.
        has_columns: a record has a value in every column, so that None represents an absent key.
        inner: the vocabulary of values with parts, which are JSON in a column; None: the same vocabulary.
    """

    scalars: Mapping[type, Decoder]
    fixed: Callable[[Fixed], Decoder]
    is_nested: bool
    has_columns: bool
    inner: Vocabulary | None = None


def _as_it_is(fixed: Fixed) -> Decoder:
    return fixed


def _in_json(fixed: Fixed) -> Decoder:
    return Fixed(tuple((_json_of(value), meant) for value, meant in fixed.values))


def _in_sql(fixed: Fixed) -> Decoder:
    """Return the decoder of drivers' values: the value, or the text form of a class without a type in the database."""
    texts = [(_json_of(value), meant) for value, meant in fixed.values if type(value) not in _JSON_OWN]
    return Fixed((*fixed.values, *texts))


def _json_of(value: Any) -> Any:
    return value if type(value) not in TEXT_FORMS or type(value) in _JSON_OWN else TEXT_FORMS[type(value)].write(value)


_PLAIN: dict[type, Decoder] = {
    **{kind: ScalarDecoder(kind) for kind in (str, int, bool, type(None))},
    float: Whole(),
    **MADE,
}
_JSON_OWN = (str, int, float, bool)
JSON = Vocabulary({**_PLAIN, bytes: BASE64}, _in_json, is_nested=True, has_columns=False)
BINARY = Vocabulary(
    {**_PLAIN, bytes: ScalarDecoder(bytes), uuid.UUID: UUID_OF_BYTES},
    _as_it_is,
    is_nested=True,
    has_columns=True,
)
SQL = Vocabulary(BINARY.scalars, _in_sql, is_nested=True, has_columns=True, inner=JSON)
TEXTS = Vocabulary(PARSED, Spelled.of, is_nested=False, has_columns=True)


def kind_behind(paths: tuple[Any, ...], kind: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the paths and the kind of a call in which the kind may follow the paths without its name."""
    if kind is None and len(paths) > 1 and isinstance(paths[-1], type):
        return paths[:-1], paths[-1]
    return paths, kind


def form_of(kind: Any, vocabulary: Vocabulary) -> ItemDecoder:
    """Return the form of records that become a `kind`.

    Raises:
        TypeError: it is no dataclass, named tuple, TypedDict, attrs class or pydantic model, or a field is of a
            type that is not read.
    """
    if is_model(kind):
        return ModelDecoder(kind)
    if not _is_record(kind):
        classes = "a dataclass, a named tuple, a TypedDict, an attrs class or a pydantic model"
        raise TypeError(f"kind must be {classes}, not {shown(kind)}")
    return _Forms(vocabulary).record(kind)


def decoder_of(hint: Any, vocabulary: Vocabulary) -> Decoder:
    """Return the decoder of an annotation.

    Raises:
        TypeError: no value of this format becomes one of this type.
    """
    return _Forms(vocabulary)._form(hint)


def missing_columns(form: ItemDecoder | None, names: Sequence[str]) -> list[str]:
    """Return the fields that must have a column and have none; pydantic checks the fields of a model itself."""
    if not isinstance(form, RecordDecoder):
        return []
    return [name for name, _, _, is_required in form.fields if is_required and name not in names]


def typed_form(form: ItemDecoder) -> RecordDecoder | None:
    """Return the form of the same items from strings, numbers and bools; None if a field may have others.

    Args:
        form: the decoder of strings, or of JSON without parts. Values that are parsed from strings still are.
    """
    if not isinstance(form, RecordDecoder):
        return None
    found = RecordDecoder(form.kind, form.expected)
    for name, _, each, is_required in form.fields:
        typed = _typed(each)
        if typed is None:
            return None
        found.add(name, typed, is_required)
    return found


def _typed(form: Decoder) -> Decoder | None:
    match form:
        case Parsed(kind=kind):
            return BINARY.scalars[kind] if kind in (str, int, float, bool) else form
        case UnionDecoder(present=present) if present is not None:
            inner = _typed(present)
            return None if inner is None else UnionDecoder((inner, *form.forms[1:]))
        case OptionalDecoder(form=present):
            inner = _typed(present)
            return None if inner is None else OptionalDecoder(inner)
    return form if isinstance(form, Anything | ScalarDecoder | Whole) else None


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (
        is_typed_dict(kind) or dataclasses.is_dataclass(kind) or _is_named(kind) or is_attrs(kind)
    )


def _is_named(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


class _Forms:
    """The decoders of one call: one per class, since a class may contain itself."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._known: dict[Any, RecordDecoder] = {}

    def record(self, kind: Any) -> RecordDecoder:
        if kind in self._known:
            return self._known[kind]
        # Known before its fields are looked at, since one of them may be of this class.
        record = self._known[kind] = RecordDecoder(_constructor(kind), name_of(kind))
        record.takes_arrays = not self._vocabulary.has_columns and _is_named(kind)
        hints = hints_of_kind(kind)
        for name, is_required in _fields(kind, hints).items():
            try:
                form = self._form(hints.get(name, Any))
            except TypeError as error:
                raise TypeError(f"the field {name} of {record.expected}: {error}") from None
            may_be_absent = self._vocabulary.has_columns and not is_required and is_typed_dict(kind)
            record.add(name, OptionalDecoder(form) if may_be_absent and not _takes_none(form) else form, is_required)
        return record

    def _form(self, hint: Any) -> Decoder:
        """Return the form of an annotation.

        Raises:
            TypeError: nothing of this format becomes a value of this type.
        """
        hint = plain_hint(hint)
        if hint is Any or isinstance(hint, typing.TypeVar):  # `Any` is a class from Python 3.11 on.
            return Anything()
        if hint is None or (isinstance(hint, type) and get_origin(hint) is None):
            return self._form_of_class(type(None) if hint is None else hint)
        return self._form_of_generic(hint, get_origin(hint), get_args(hint))

    def _form_of_class(self, kind: type) -> Decoder:
        if kind is object:
            return Anything()
        if kind in self._vocabulary.scalars:
            return self._vocabulary.scalars[kind]
        if issubclass(kind, enum.Enum):
            return self._vocabulary.fixed(Fixed.of_enumeration(kind))
        if self._vocabulary.inner is not None:
            return JsonDecoder(decoder_of(kind, self._vocabulary.inner))
        if self._vocabulary.is_nested and is_model(kind):
            return ModelDecoder(kind)
        if self._vocabulary.is_nested and _is_record(kind):
            return self.record(kind)
        if kind in _ARRAYS or kind in MAPPINGS:
            return self._form_of_generic(kind, kind, ())
        raise TypeError(f"nothing that stands in {self._where()} becomes a {kind.__qualname__}")

    def _where(self) -> str:
        return "a file" if self._vocabulary.is_nested else "a field of such a file, which is a text,"

    def _form_of_generic(self, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> Decoder:
        if origin in UNIONS:
            return UnionDecoder(tuple(self._form(each) for each in arguments))
        if origin is Literal:
            return self._vocabulary.fixed(Fixed(tuple((each, each) for each in arguments)))
        if self._vocabulary.inner is not None:
            return JsonDecoder(decoder_of(hint, self._vocabulary.inner))
        if self._vocabulary.is_nested and (found := self._form_of_parts(origin, arguments)) is not None:
            return found
        raise TypeError(f"nothing that stands in {self._where()} becomes a {in_words(hint)}")

    def _form_of_parts(self, origin: Any, arguments: tuple[Any, ...]) -> Decoder | None:
        if origin is tuple and arguments and arguments[-1] is not ...:
            return ListDecoder(tuple, tuple(self._form(each) for each in arguments))
        if origin in _ARRAYS:
            return ListDecoder(_ARRAYS[origin], self._form(arguments[0] if arguments else Any))
        if origin in MAPPINGS:
            return self._form_of_objects(*(arguments or (Any, Any)))
        if _is_record(origin):  # A generic class: its type variables are anything.
            return self.record(cast(Any, origin))
        return None

    def _form_of_objects(self, key: Any, value: Any) -> Decoder | None:
        if key is str:
            return DictDecoder(self._form(value))
        # Before the values, so that a refusal names the first annotation that has no form.
        keys = self._form(key) if self._vocabulary.has_columns else None if key is Any else decoder_of(key, TEXTS)
        return DictDecoder(self._form(value), keys)


def _takes_none(form: Decoder) -> bool:
    try:
        form.made(None)
    except DecodeError:
        return False
    return True


_ARRAYS: dict[Any, Any] = {**CONTAINERS, collections.abc.Iterable: list, collections.abc.Collection: list}


def _constructor(kind: Any) -> Callable[..., Any]:
    """Return a constructor that takes the values of fields by their names: attrs names the parameter of `_x` `x`."""
    aliases = {each.name: each.alias for each in kind.__attrs_attrs__} if is_attrs(kind) else {}
    is_renamed = any(name != alias for name, alias in aliases.items())
    return _Renamed(kind, aliases) if is_renamed else cast("Callable[..., Any]", kind)


@dataclass(frozen=True)
class _Renamed:
    kind: Callable[..., Any]
    aliases: Mapping[str, str]

    def __call__(self, **values: Any) -> Any:
        return self.kind(**{self.aliases[name]: value for name, value in values.items()})


def _fields(kind: Any, hints: dict[str, Any]) -> dict[str, bool]:
    """Return the names of the fields that are read, and whether each is required."""
    if is_typed_dict(kind):
        return {name: is_required_key(kind, name, hint) for name, hint in hints.items()}
    if dataclasses.is_dataclass(kind):
        # The constructor has no other parameters.
        given = [each for each in dataclasses.fields(kind) if each.init]
        return {each.name: not has_default(each) for each in given}
    if is_attrs(kind):
        # A process that has a class of attrs has imported it, which others should not pay for.
        nothing = sys.modules["attr"].NOTHING
        return {each.name: each.default is nothing for each in kind.__attrs_attrs__ if each.init}
    return {name: name not in kind._field_defaults for name in field_names(kind)}


OnMisread: TypeAlias = Callable[[Misread], Iterable[Any]]
