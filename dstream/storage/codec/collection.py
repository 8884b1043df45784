"""`Codec`: the keys and values of one collection, as bytes and as columns."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, get_origin
from uuid import UUID

from dstream.base.records import record
from dstream.base.showing import shown
from dstream.base.validation import NOT_UNDERSTOOD
from dstream.errors import DStreamError, IllegalStateError, NullElementError, UnstableKeyError, UnsupportedError
from dstream.schema import classes
from dstream.schema.classes import ChangedClassError, ClassRefusedError, NotStorableError
from dstream.schema.record_types import ClassType, without_column
from dstream.schema.scalar_types import one_chunk
from dstream.schema.type_inference import classes_in, infer_stored, stored_type
from dstream.schema.types import NOTHING, ColumnTooLargeError, ColumnType, Decode, Encode
from dstream.spi.store import Kind, Options
from dstream.storage.codec.keys import decode_key, encode_key, type_of_key
from dstream.storage.codec.pickles import Pickles
from dstream.storage.codec.values import ValueEncoding

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Codec", "UnloadedClassError"]


@record
class Codec:
    """Turns the keys and values of one collection into bytes and columns; it travels to tasks.

    Attributes:
        kind: the kind of the collection.
        name: its name.
        key: the type of its keys; None if undecided, and for a list.
        value: the type of its values or items; None if undecided.
        strict: refuses keys and values that are not exactly of their types.
        pickles: the classes that may be loaded by name, including the classes of the types.
    """

    kind: Kind
    name: str
    key: ColumnType | None
    value: ColumnType | None
    strict: bool
    pickles: Pickles

    @staticmethod
    def of(kind: Kind, name: str, options: Options, pickles: Pickles) -> Codec:
        """Return the codec of a new collection.

        Raises:
            TypeError: a type of the options is none, or keys cannot be of it.
        """
        is_list = kind == "list"
        if is_list and options.key_type is not None:
            raise TypeError(f"list {name!r} has no keys, so it takes no key_type")
        return Codec(
            kind,
            name,
            _declared_key(options.key_type),
            None if options.value_type is None else stored_type(options.value_type),
            bool(options.strict),
            _allowing(pickles, options),
        )

    @property
    def is_decided(self) -> bool:
        """Return whether the types of keys and values are known."""
        wanted = [self.value] if self.kind == "list" else [self.key, self.value]
        return not any(self._is_open(found) for found in wanted)

    def decided_by(self, keys: Sequence[Any], values: Sequence[Any]) -> Codec:
        """Return this codec with the types that are still open inferred from the first key and value.

        Raises:
            TypeError: the values are of a class that no process could load again.
        """
        key = self.key if self.kind == "list" else self._decided(self.key, keys, type_of_key)
        value = self._decided(self.value, values, infer_stored)
        if key is self.key and value is self.value:
            return self
        return replace(self, key=key, value=value, pickles=self._allowing_inferred(key, value))

    def checked(self, key: Any, value: Any) -> None:
        """Raise the collection's refusal of an entry; the key of a list does not matter.

        Raises:
            NullElementError: the key or the value of a map is None.
            TypeError: the collection is strict, and one of them is not exactly of its type.
        """
        if self.kind != "list":
            if key is None:
                raise NullElementError(f"{self}: None cannot be a key")
            if value is None:
                raise NullElementError(f"{self}: None cannot be the value of {shown(key)}")
            if self.strict and self.key is not None and not self.key.fits(key):
                raise TypeError(f"{self} is strict: its keys are {self.key.name}, and {_described(key)} is not")
        if self.strict and self.value is not None and not self.value.fits(value):
            of_key = "" if self.kind == "list" else f" of {shown(key)}"
            raise TypeError(
                f"{self} is strict: its values are {_in_words(self.value)}, "
                f"and the value{of_key}, {_described(value)}, is not"
            )

    # -------------------------------------------------------------------------------------------------------- bytes

    def encode_key(self, key: Any) -> bytes:
        """Return the bytes of a key, alike for equal keys.

        Raises:
            NullElementError: the key is None.
            UnstableKeyError: its type has no stable encoding.
            TypeError: the compared fields of the class of keys have changed.
        """
        try:
            self._check_keys()
            return encode_key(key)
        except (NullElementError, UnstableKeyError) as error:
            raise type(error)(f"{self}: {error}") from error.__cause__

    def decode_key(self, data: bytes) -> Any:
        """Return the key, in the form of the key type.

        Raises:
            IllegalStateError: the bytes are no key.
            TypeError: its class is not found, or may not be loaded.
        """
        return self.shaped_key(self.plain_key(data))

    def plain_key(self, data: bytes) -> Any:
        """Return the key before it is converted to the key type; errors as for `decode_key`."""
        try:
            return decode_key(data, self.pickles)
        except ClassRefusedError as error:
            raise self._refused(error, "key_type=") from error
        except NOT_UNDERSTOOD as error:
            raise self.damaged("a key", error) from error

    def shaped_key(self, key: Any) -> Any:
        """Return a decoded key in the form of the key type."""
        if self.key is None:
            return key
        # 1 is read back as 1.0 where the keys are floats, although both have the same bytes.
        shaped = self.key.shaped(key)
        return key if shaped is NOTHING else shaped

    def encode_value(self, value: Any) -> bytes:
        """Return the bytes of a value; never empty.

        Raises:
            TypeError: the value would have to be pickled, which the storage does not allow.
        """
        try:
            return ValueEncoding(self.pickles).encode(value)
        except ClassRefusedError as error:
            raise self._refused(error, "value_type=") from error

    def decode_value(self, data: bytes) -> Any:
        """Return a fresh value.

        Raises:
            IllegalStateError: the bytes are no value, or its class does not accept the stored fields.
            TypeError: its class is not found, has changed, or may not be loaded.
        """
        try:
            return ValueEncoding(self.pickles).decode(data)
        except ClassRefusedError as error:
            raise self._refused(error, "value_type=") from error
        except Exception as error:  # a pickle may raise anything
            raise self.damaged("a value", error) from error

    # ------------------------------------------------------------------------------------------------------ columns

    def key_schema(self) -> list[pa.Field]:
        """Return the fields in which keys are stored: `key` and the escape `_pk`."""
        return _fields(self.key, "key", "_pk")

    def value_schema(self) -> list[pa.Field]:
        """Return the fields in which values are stored: `value` and the escape `_pv`."""
        return _fields(self.value, "value", "_pv")

    def key_columns(self, keys: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
        """Return keys as a column, and as bytes where they do not fit it; the first is in the form of the key type.

        Raises:
            NullElementError: a key is None.
            UnstableKeyError: the type of a key has no stable encoding.
        """
        array = None if self.key is None else _plain_keys(self.key, keys)
        if array is not None:
            return array, _null_escape(len(keys))
        encoded = list(map(self.encode_key, keys))
        found = _with_column(self.key)
        # Keys are converted by their bytes, so that equal ones, such as 1 and 1.0, have one form in the column.
        shaped = [NOTHING if found is None else found.shaped(self.decode_key(data)) for data in encoded]
        typed = [None if key is NOTHING else key for key in shaped]
        escape = [data if key is NOTHING else None for data, key in zip(encoded, shaped, strict=True)]
        return _pair(found, typed, escape, self.encode_value)

    def keys_from(self, column: Any, escape: Any) -> list[Any]:
        """Return the keys of a column and its escape.

        Raises:
            TypeError: the class of a key is not found, has changed, or may not be loaded.
        """
        self._check_keys()
        return self._from(self.key, column, escape, self.decode_key, "key_type=")

    def _check_keys(self) -> None:
        if isinstance(self.key, ClassType) and self.key.has_changed:
            try:
                self.key.checked_as_key()
            except ClassRefusedError as error:
                raise self._refused(error, "key_type=") from error

    def value_columns(self, values: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
        """Return values as a column, and as bytes where they do not fit it.

        In a map None means absent and is null in both; in a list it is an item.

        Raises:
            TypeError: a value would have to be pickled, which the storage does not allow.
        """
        try:
            array = None if self.value is None else self.value.to_array(values, self.encode_value)
        except ColumnTooLargeError as error:
            raise ColumnTooLargeError(f"{self}: {error}") from None
        if array is not None and (self.kind != "list" or not array.null_count):
            return array, _null_escape(len(values))
        found = _with_column(self.value)
        fits = [found is not None and value is not None and found.fits(value) for value in values]
        typed = [value if fit else None for value, fit in zip(values, fits, strict=True)]
        escape = [
            None if fit or (value is None and self.kind != "list") else self.encode_value(value)
            for value, fit in zip(values, fits, strict=True)
        ]
        return _pair(found, typed, escape, self.encode_value)

    def values_from(self, column: Any, escape: Any) -> list[Any]:
        """Return the values of a column and its escape, None where both are null.

        Raises:
            TypeError: the class of a value is not found, has changed, or may not be loaded.
        """
        return self._from(self.value, column, escape, self.decode_value, "value_type=")

    # -------------------------------------------------------------------------------------------------- for users

    def schema(self) -> pa.Schema:
        """Return the columns that a user sees: `key` and `value`, or `value` alone for a list.

        Raises:
            UnsupportedError: a type has no column, or is not decided yet.
        """
        import pyarrow

        wanted = {"value": self.value} if self.kind == "list" else {"key": self.key, "value": self.value}
        for role, found in wanted.items():
            if found is None:
                raise UnsupportedError(f"{self} has no Arrow schema yet: nothing has decided what a {role} is")
            if found.arrow is None:
                raise UnsupportedError(f"{self} has no Arrow schema: its {role}s are {found.name}, which has no column")
            if (path := without_column(found)) is not None:
                raise UnsupportedError(
                    f"{self} has no Arrow schema: its {role}s are {found.name}, whose field {path} has no column"
                )
        return pyarrow.schema([(role, found.arrow) for role, found in wanted.items() if found is not None])

    def batch(self, keys: Sequence[Any], values: Sequence[Any]) -> pa.RecordBatch:
        """Return entries, or the items of a list, in columns by `schema`; a None in a list is null.

        Raises:
            UnsupportedError: as `schema` does.
            TypeError: an entry does not fit; the message names it.
        """
        import pyarrow

        schema = self.schema()
        found = [self._column_of_values(keys, values)]
        if self.kind != "list":
            found.insert(0, self._column_of_keys(keys))
        return pyarrow.RecordBatch.from_arrays(found, schema=schema)

    # ----------------------------------------------------------------------------------------------------- as JSON

    def to_json(self) -> Any:
        """Return the stored description, from which `described_codec` restores the codec."""
        key, value = (None if found is None else found.to_json() for found in (self.key, self.value))
        return {"key": key, "value": value, "strict": self.strict}

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    def _is_open(self, found: ColumnType | None) -> bool:
        # A strict collection takes the declared types; a first value must not narrow it.
        return found is None or (found.is_open and not self.strict)

    def _decided(
        self, found: ColumnType | None, values: Sequence[Any], infer: Callable[[Any], ColumnType]
    ) -> ColumnType | None:
        if not self._is_open(found):
            return found
        # An empty list does not determine the type of its items, so the first value that does decides the type.
        first = next((value for value in values if value is not None and not (type(value) is list and not value)), None)
        if first is None:
            first = next((value for value in values if value is not None), None)
        if first is None:
            return found
        return infer(first) if found is None else found.refined([first]).closed()

    def _allowing_inferred(self, *types: ColumnType | None) -> Pickles:
        found = [kind for part in types if part is not None for kind in classes_in(part.hint)]
        if self.pickles.mode == "trusted":
            return self.pickles.allowing(*found)
        # A class that is not allowed by name would be written, but refused by the next process that reads it.
        for kind in found:
            if classes.field_names(kind) or issubclass(kind, enum.Enum):
                try:
                    self.pickles.check_knows(kind)
                except ClassRefusedError as error:
                    raise self._refused(error, "value_type=") from error
        return self.pickles

    def _from(
        self, found: ColumnType | None, column: Any, escape: Any, decode: Callable[[bytes], Any], option: str
    ) -> list[Any]:
        try:
            return _merged(_with_column(found), column, escape, decode, self.decode_value)
        except (UnloadedClassError, DStreamError):
            raise
        except ClassRefusedError as error:
            raise self._refused(error, option) from error
        except NOT_UNDERSTOOD as error:
            raise self.damaged("a column", error) from error

    def _column_of_keys(self, keys: Sequence[Any]) -> pa.Array:
        array, escape = self.key_columns(keys)
        # A user's table has one column for keys and no escape.
        if escape.null_count == len(escape):
            return array
        position = escape.is_valid().to_pylist().index(True)
        key = keys[position]
        if isinstance(key, tuple) and classes.field_names(type(key)):
            raise TypeError(f"{self}: the key {_described(key)} {_NAMED}")
        raise TypeError(f"{self}: the key {_described(key)} is no {self.key and self.key.name}{_MIXED}")

    def _column_of_values(self, keys: Sequence[Any], values: Sequence[Any]) -> pa.Array:
        value = self.value
        array = None if value is None else value.to_array(values)
        if array is not None or value is None:
            return array
        position = next(at for at, found in enumerate(values) if found is not None and not value.fits(found))
        # A list is stored in parts, so the position of an item within one is not its index.
        place = "an item" if self.kind == "list" else f"the value of {shown(keys[position])}"
        raise TypeError(f"{self}: {place} is {_described(values[position])}, no {_in_words(value)}{_MIXED}")

    def _refused(self, error: ClassRefusedError, option: str) -> TypeError:
        hint = (
            ""
            if option in str(error) or isinstance(error, ChangedClassError | NotStorableError)
            else f"; if you have the class, name it as {option}, or in connect(allowed=[...])"
        )
        return UnloadedClassError(f"{self}: {error}{hint}")

    def damaged(self, what: str, error: Exception) -> IllegalStateError:
        """Return the error for data of the collection that cannot be read."""
        return IllegalStateError(
            f"{self} is damaged: {what} in it cannot be read: {type(error).__name__}: {error}; something else than "
            "dstream has written it, or the class of it has changed"
        )


class UnloadedClassError(TypeError):
    """The class of stored data is not found or may not be loaded; the message names the collection."""


_NAMED = (
    "is kept as the plain tuple that equals it, which has no column; take a frozen dataclass as the key, "
    "or stream().to_arrow()"
)
_MIXED = "; a table has one type in each column: convert the others first, or export to .jsonl, which takes mixed ones"


def _declared_key(hint: Any) -> ColumnType | None:
    if hint is None:
        return None
    found = stored_type(hint)
    kind = get_origin(found.hint) or found.hint
    if isinstance(kind, type) and kind.__hash__ is None:
        raise UnstableKeyError(f"{found.name} cannot be a key_type: it has no hash")
    return found


def _allowing(pickles: Pickles, options: Options) -> Pickles:
    return pickles.allowing(*classes_in(options.key_type), *classes_in(options.value_type))


def _in_words(found: ColumnType) -> str:
    """Return the name of a type, with the fields of a class that have changed."""
    fields = ", ".join(found.names) if isinstance(found, ClassType) and found.has_changed else None
    return found.name if fields is None else f"{found.name} with the fields ({fields})"


def _described(value: Any) -> str:
    return f"{shown(value)} of type {type(value).__qualname__}"


_ONE_FORM = (str, int, bool, bytes, date, datetime, timedelta, UUID)
"""Types of which no two equal instances that fit differ, so that keys are written into the column as they are."""


def _fields(found: ColumnType | None, name: str, escape: str) -> list[pa.Field]:
    """Return the two fields; without a typed column the first is binary and always null."""
    import pyarrow

    typed = _with_column(found)
    kind = pyarrow.binary() if typed is None else typed.arrow
    return [pyarrow.field(name, kind), pyarrow.field(escape, pyarrow.binary())]


def _with_column(found: ColumnType | None) -> ColumnType | None:
    """Return the type if it has a column."""
    return None if found is None or found.arrow is None else found


def _plain_keys(found: ColumnType, keys: Sequence[Any]) -> pa.Array | None:
    """Return the column of keys that all are exactly of a type with one form; None if they are not."""
    if found.hint is float and {float}.issuperset(map(type, keys)):
        keys = [key + 0.0 if key == key else math.nan for key in keys]  # one zero and one NaN
    elif found.hint not in _ONE_FORM:
        return None
    array = found.to_array(keys)
    return None if array is None or array.null_count else array


def _pair(
    typed: ColumnType | None, values: Sequence[Any], escape: Sequence[bytes | None], encode: Encode
) -> tuple[pa.Array, pa.Array]:
    """Return both columns; the parts of `values` fit or are None."""
    import pyarrow

    array = _null_escape(len(values)) if typed is None else typed.to_array(values, encode)
    if array is None:
        raise AssertionError(f"a column of {typed and typed.name} refuses values that fit it")
    return array, one_chunk(pyarrow.array(escape, pyarrow.binary()))


def _null_escape(length: int) -> pa.Array:
    """Return an escape that is null in every row."""
    import pyarrow

    return pyarrow.nulls(length, pyarrow.binary())


def _merged(
    typed: ColumnType | None, column: Any, escape: Any, decode: Callable[[bytes], Any], decode_field: Decode
) -> list[Any]:
    """Return the values of both columns, None where both are null.

    Args:
        typed: the type of the first column; None if it has no values.
        column: values that fit it.
        escape: the bytes of other values.
        decode: decodes a key or value of these.
        decode_field: decodes the bytes of a field without a column.
    """
    column, escape = _whole(column), _whole(escape)
    if typed is None:
        values: list[Any] = [None] * len(column)
    else:
        # Files that other tools have written contain string_view, dictionaries and the like.
        values = typed.from_array(column if column.type == typed.arrow else column.cast(typed.arrow), decode_field)
    if escape.null_count < len(escape):
        for position, data in enumerate(escape.to_pylist()):
            if data is not None:
                values[position] = decode(data)
    return values


def _whole(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column
