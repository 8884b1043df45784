"""Values and records as text formats and databases write them.

JSON supports numbers, strings, booleans and None; classes without parts are strings (`dstream.schema.text_forms`);
lists, tuples and sets are arrays; objects with fields, and dicts, are objects. Values of unions are written if they are
read as equal values.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dstream.base.showing import shown
from dstream.schema.decoders import (
    DecodeError,
    Decoder,
    DictDecoder,
    OptionalDecoder,
    ScalarDecoder,
    UnionDecoder,
    Whole,
    dumped,
)
from dstream.schema.record_decoders import (
    JSON,
    SQL,
    JsonDecoder,
    Spelled,
    Vocabulary,
    decoder_of,
)
from dstream.schema.text_forms import TEXT_FORMS, refusal, text_form, text_of
from dstream.values.fields import field_names, hints_of_kind, in_words, is_model, is_same, is_typed_dict, name_of

__all__ = [
    "NotJsonError",
    "UnionField",
    "json_fields",
    "plain",
    "unions_of",
    "unsupported_field",
    "written_names",
]


class NotJsonError(TypeError):
    """JSON has no form for a value.

    Attributes:
        type_name: its type, or the value in words.
        instead: the replacement to write.
        field: the innermost field of a class around it, or the key of a dict; None if it is the item.
        owner: that class.
    """

    def __init__(self, type_name: str, instead: str, field: str | None = None, owner: str | None = None) -> None:
        super().__init__(refusal("JSON", type_name, instead, field, owner))
        self.type_name = type_name
        self.instead = instead
        self.field = field
        self.owner = owner

    def within(self, field: object, owner: str) -> NotJsonError:
        """Return the error as an object around the value sees it."""
        is_named = self.field is not None and (self.owner != _DICT or owner == _DICT)
        return self if is_named else NotJsonError(self.type_name, self.instead, str(field), owner)


_DICT = dict.__name__


def plain(value: Any) -> Any:
    """Return `value` as JSON has it: dataclasses and named tuples are objects, other tuples are arrays.

    NaN and infinities are unchanged, which `json.loads` reads, but not every other program.

    Raises:
        NotJsonError: it contains a value without such a form, or that would be read as another value by its annotation.

    Example:
        >>> from dstream.schema.encoders import plain
        >>> from dstream.values import Entry
        >>> plain([Entry("a", (1, None))])
        [{'key': 'a', 'value': [1, None]}]
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        return _object(value)
    if kind is list or kind is tuple:
        return list(map(plain, value))
    write = _WRITERS.get(kind)
    return _plain_of_a_subclass(value) if write is None else write(value)


def _array(values: Iterable[Any]) -> list[Any]:
    return list(map(plain, values))


_SCALARS = frozenset({str, int, float, bool, type(None)})
_WRITERS: dict[type, Any] = {
    **{kind: form.write for kind, form in TEXT_FORMS.items() if kind not in _SCALARS},
    set: _array,
    frozenset: _array,
}


def _object(pairs: Mapping[Any, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs.items():
        name = key if type(key) is str else _key(key)
        try:
            made[name] = plain(value)
        except NotJsonError as error:
            raise error.within(name, _DICT) from None
    if len(made) < len(pairs):
        raise NotJsonError(f"a dict with two keys of one text, {shown(pairs)},", _BEFORE)
    return made


def _key(key: Any) -> str:
    form = text_form(key)
    if form is None:
        raise NotJsonError(f"a key of type {type(key).__qualname__}, {shown(key)},", "map() it to a str before")
    return form.write(key)


_BEFORE = "map() it to a str, a number, a list or a dict before"


def _plain_of_a_subclass(value: Any) -> Any:
    kind = type(value)
    if isinstance(value, type):
        raise NotJsonError(f"the class {value.__qualname__}", "write its name")
    if is_model(kind):
        return _model(value)
    if names := field_names(kind):
        return _record(value, names)
    for scalar in (str, int, float):  # An Enum of these too.
        if isinstance(value, scalar):
            # `str` of a member of an Enum that is a str, too, would be the name of the member.
            return scalar(value) if not isinstance(value, str) else str.__str__(value)
    if isinstance(value, Enum) and (type(value.value) in _SCALARS or text_form(value.value) is not None):
        return plain(value.value)
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, list | tuple | set | frozenset):
        return _array(value)
    raise NotJsonError(kind.__qualname__, "take its .value or its .name" if isinstance(value, Enum) else _BEFORE)


def _model(value: Any) -> Any:
    try:
        return dumped(value)
    except Exception as error:  # A serializer of the user's may raise anything.
        name = type(value).__qualname__
        raise NotJsonError(f"{name} {shown(value)}, of which pydantic reports: {error},", _BEFORE) from error


def _record(value: Any, names: Iterable[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in names:
        try:
            made[name] = plain(getattr(value, name))
        except NotJsonError as error:
            raise error.within(name, name_of(type(value))) from None
    kind: Any = type(value)
    for union in unions_of(kind, JSON):
        union.check("JSON", getattr(value, union.name), made[union.name])
    return made


def written_names(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of a class in text formats, for a pydantic model its aliases."""
    if is_model(kind):
        fields = kind.model_fields.items()
        return tuple(field.serialization_alias or field.alias or name for name, field in fields)
    return tuple(hints_of_kind(kind)) if is_typed_dict(kind) else field_names(kind)


def unsupported_field(kind: Any, vocabulary: Vocabulary) -> tuple[str, str] | None:
    """Return the first field of a class that no value of a format becomes, and its type in words."""
    fields = _decoders(kind, vocabulary)
    return next(((name, in_words(hint)) for name, hint, decoder in fields if decoder is None), None)


def _decoders(kind: Any, vocabulary: Vocabulary) -> Iterator[tuple[str, Any, Decoder | None]]:
    """Yield the name, the annotation and the decoder of each field; None for an annotation without one.

    Raises:
        TypeError: an annotation cannot be looked up.
    """
    hints = hints_of_kind(kind)
    for name in hints if is_typed_dict(kind) else field_names(kind):
        if is_model(kind) and name not in hints:  # A generic model has other names for its annotations.
            continue
        hint = hints.get(name, Any)
        try:
            decoder: Decoder | None = decoder_of(hint, vocabulary)
        except TypeError:
            decoder = None
        yield name, hint, decoder


def json_fields(kind: Any) -> tuple[str, ...]:
    """Return the fields of a pydantic model whose columns in a database contain JSON."""
    return tuple(
        name
        for name, _, decoder in _decoders(kind, SQL)
        if any(isinstance(each, JsonDecoder) for each in (decoder, *getattr(decoder, "forms", ())))
    )


@dataclass(frozen=True)
class UnionField:
    """A field whose annotation has several types, so that its values may be read as others.

    Attributes:
        name: of the field.
        owner: the class of the field, in words.
        hint: the annotation, in words.
        decoder: of the annotation.
    """

    name: str
    owner: str
    hint: str
    decoder: Decoder

    def check(self, format: str, value: Any, written: Any) -> None:
        """Refuse a value that would be read as another one.

        Args:
            format: in prose.
            value: of the field.
            written: what the decoder gets for it.

        Raises:
            TypeError: it would.
        """
        try:
            found = self.decoder.made(written)
        except DecodeError as error:
            instead = f"it could not be read ({error})"
        else:
            if is_same(found, value):
                return
            instead = f"it would be read as {type(found).__qualname__} {shown(found)}"
        what = f"{type(value).__qualname__} {shown(value)} in {self.hint}"
        raise TypeError(refusal(format, what, f"{instead}: give the field one type", self.name, self.owner))


@functools.lru_cache(maxsize=1024)
def unions_of(kind: Any, vocabulary: Vocabulary) -> tuple[UnionField, ...]:
    """Return the fields of a class whose annotations are ambiguous in a format; none of a pydantic model."""
    try:
        fields = [] if is_model(kind) or is_typed_dict(kind) else list(_decoders(kind, vocabulary))
    except TypeError:  # The module of a class may be missing where its items are.
        return ()
    return tuple(
        UnionField(name, name_of(kind), in_words(hint), decoder)
        for name, hint, decoder in fields
        if decoder is not None and (_is_ambiguous(decoder) or (vocabulary is SQL and len(_types_of(decoder)) > 1))
    )


def _types_of(decoder: object) -> list[Decoder]:
    """Return the decoders of a union, without the decoder of None."""
    forms = decoder.forms if isinstance(decoder, UnionDecoder) else ()
    return [form for form in forms if form != ScalarDecoder(type(None))]


def _is_ambiguous(decoder: object) -> bool:
    """Return whether values of an annotation may be read as others, without checking nested records."""
    if isinstance(decoder, UnionDecoder):
        forms = _types_of(decoder)
        # JSON distinguishes these; a column of numbers does not, so databases check all unions.
        are_own = all(isinstance(form, ScalarDecoder | Whole) for form in forms)
        return (len(forms) > 1 and not are_own) or any(map(_is_ambiguous, forms))
    if isinstance(decoder, Spelled):
        texts = [text_of(value) for value, _ in decoder.fixed.values if value is not None]
        return len(set(texts)) < len(texts)
    if isinstance(decoder, OptionalDecoder | JsonDecoder):
        return _is_ambiguous(decoder.form)
    each = getattr(decoder, "each", ())
    parts = each if isinstance(each, tuple) else (each,)
    if isinstance(decoder, DictDecoder) and decoder.keys is not None:
        parts = (decoder.keys, *parts)
    return any(map(_is_ambiguous, parts))
