"""Fields of dataclasses, named tuples, typed dictionaries, attrs classes and pydantic models, and their annotations."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import keyword
import sys
import typing
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, UnionType
from typing import Any, Final, NamedTuple, TypeGuard, Union, cast

__all__ = [
    "CONTAINERS",
    "MAPPINGS",
    "UNIONS",
    "columns_of_fields",
    "default_of",
    "defaults_of_constructor",
    "field_names",
    "has_default",
    "has_fields_alone",
    "has_own_code",
    "has_plain_fields",
    "hints_of",
    "hints_of_kind",
    "in_words",
    "is_attrs",
    "is_missing",
    "is_model",
    "is_of_dataclass",
    "is_of_named_tuple",
    "is_required_key",
    "is_same",
    "is_typed_dict",
    "name_of",
    "plain_hint",
]


def field_names(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass, named tuple, attrs class or pydantic model, if it is one.

    Example:
        >>> from dstream.values.fields import field_names
        >>> field_names(Entry)
        ('key', 'value')
    """
    names: tuple[str, ...] = _field_names(cast(Any, kind))
    return names


@functools.lru_cache(maxsize=1024)
def _field_names(kind: Any) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if issubclass(kind, tuple):
        return tuple(getattr(kind, "_fields", ()))
    if is_attrs(kind):
        return tuple(each.name for each in kind.__attrs_attrs__)
    return tuple(kind.model_fields) if is_model(kind) else ()


def is_attrs(kind: object) -> bool:
    """Return whether `attrs` made a class."""
    return isinstance(kind, type) and hasattr(kind, "__attrs_attrs__")


def is_model(kind: object) -> bool:
    """Return whether a class is a pydantic model."""
    pydantic: Any = sys.modules.get("pydantic")  # The module of a model has imported it.
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def hints_of(kind: Any, *, include_extras: bool = False) -> dict[str, Any]:
    """Return the annotations of a class by name, also those that `make_dataclass` writes for fields without a type.

    These are the string "typing.Any", which may not resolve in the module of the class: with Python 3.11 that is
    `types`, with later versions the module that called `make_dataclass`.

    Raises:
        NameError: a string names what its module does not have.
    """
    try:
        return typing.get_type_hints(kind, include_extras=include_extras)
    except NameError as error:
        if error.name != "typing":
            raise
        names = {**vars(kind), "typing": typing}
        return typing.get_type_hints(kind, None, names, include_extras=include_extras)


def hints_of_kind(kind: Any) -> dict[str, Any]:
    """Return the annotations of a class by name, with the marks around them.

    Raises:
        TypeError: one of them cannot be looked up.
    """
    try:
        return hints_of(kind, include_extras=True)
    except Exception as error:  # An annotation that is a string is code, which may raise anything.
        advice = _ADVICE if isinstance(error, NameError) else ""
        raise TypeError(f"an annotation of {kind.__qualname__} cannot be looked up ({error}){advice}") from error


_ADVICE = ": where annotations are texts, the classes that they name must stand at the top of a module"

UNIONS: Final = (Union, UnionType)
"""The origins of `X | Y`."""
CONTAINERS: Final[Mapping[Any, type]] = {
    list: list,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.abc.Set: frozenset,
}
"""The classes of the values of annotations of lists, tuples and sets, by their origins."""
MAPPINGS: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
"""The origins of annotations of dictionaries."""


def plain_hint(hint: Any) -> Any:
    """Return the type inside a `NewType`, and inside qualifiers such as `Annotated` and `Required`."""
    while True:
        if isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif typing.get_origin(hint) in (typing.Annotated, typing.Required, typing.NotRequired):
            hint = typing.get_args(hint)[0]
        else:
            return hint


def in_words(hint: Any) -> str:
    """Return an annotation as users write it."""
    is_class = isinstance(hint, type) and typing.get_origin(hint) is None
    return hint.__qualname__ if is_class else str(hint).removeprefix("typing.")


def is_typed_dict(kind: object) -> bool:
    """Return whether something is a `TypedDict`, of `typing` or of `typing_extensions`, and make it picklable.

    Example:
        >>> from dstream.values.fields import is_typed_dict
        >>> is_typed_dict(typing.TypedDict("Sale", {"unit price": float})), is_typed_dict(dict)
        (True, False)
    """
    extensions: Any = sys.modules.get("typing_extensions")  # Imported if one exists.
    if not typing.is_typeddict(kind) and not (extensions is not None and extensions.is_typeddict(kind)):
        return False
    if "__orig_bases__" not in vars(kind):
        # cloudpickle rebuilds a class from these. Python 3.11 does not set them where the class is written as a call.
        cast(Any, kind).__orig_bases__ = (typing.TypedDict,)
    return True


def is_required_key(kind: Any, name: str, hint: Any) -> bool:
    """Return whether a key of a `TypedDict` is required.

    Args:
        kind: the class.
        name: the key.
        hint: its annotation, with the qualifiers around the type.

    Example:
        >>> from dstream.values.fields import is_required_key
        >>> is_required_key(typing.TypedDict("Sale", {"price": float}, total=False), "price", float)
        False
    """
    # For string annotations, Python 3.11 to 3.13 do not recognize keys that are not required.
    marked = typing.get_origin(hint)
    return marked is typing.Required or (marked is not typing.NotRequired and name in kind.__required_keys__)


def has_plain_fields(kind: type) -> bool:
    """Return whether a dataclass or a named tuple accepts, stores and returns its fields without custom code.

    Looked up anew in each call, since a property or a method may be assigned to a class at any time.

    Example:
        >>> from dstream.values.fields import has_plain_fields
        >>> has_plain_fields(Entry)
        True
    """
    return _has_plain_fields(cast(Any, kind))


def _has_plain_fields(kind: Any) -> bool:
    names = field_names(kind)
    # A metaclass may change how instances are made.
    if type(kind) is not type or not names:
        return False
    held = [inspect.getattr_static(kind, name, None) for name in names]
    if issubclass(kind, tuple):
        return (
            is_of_named_tuple(kind.__new__)
            and kind.__init__ is object.__init__
            and kind.__getattribute__ is tuple.__getattribute__
            and kind.__getitem__ is tuple.__getitem__
            # Only the pickle of a field of a named tuple shows its index.
            and [type(each) for each in held] == [_FIELD_OF_TUPLE] * len(names)
            and [each.__reduce__()[1][0] for each in held] == list(range(len(names)))
        )
    init = vars(kind).get("__init__")
    return (
        is_of_dataclass(init)
        and init.__code__.co_varnames[1 : init.__code__.co_argcount + init.__code__.co_kwonlyargcount] == names
        and not hasattr(kind, "__post_init__")
        and kind.__new__ is object.__new__
        and kind.__getattribute__ is object.__getattribute__
        and (kind.__setattr__ is object.__setattr__ or vars(kind)["__dataclass_params__"].frozen)
        # A slot is a data descriptor, too; any other descriptor runs custom code.
        and not any(hasattr(type(each), "__set__") and type(each) is not MemberDescriptorType for each in held)
    )


def has_fields_alone(item: object, kind: type) -> bool:
    """Return whether an object is of a class with plain fields, and has no other attributes."""
    return type(item) is kind and all(map(field_names(kind).__contains__, getattr(item, "__dict__", ())))


def is_of_dataclass(method: Any) -> TypeGuard[FunctionType]:
    """Return whether `dataclasses` wrote a method; source from a string may also be the user's, as with `python -c`.

    Example:
        >>> from dstream.values.fields import is_of_dataclass
        >>> is_of_dataclass(dataclasses.make_dataclass("Sale", ["price"]).__init__), is_of_dataclass(has_default)
        (True, False)
    """
    return isinstance(method, FunctionType) and method.__code__.co_qualname.startswith("__create_fn__.")


def is_of_named_tuple(new: Any) -> bool:
    """Return whether `collections.namedtuple` wrote the constructor of a class.

    Example:
        >>> from dstream.values.fields import is_of_named_tuple
        >>> is_of_named_tuple(Entry.__new__), is_of_named_tuple(has_default)
        (True, False)
    """
    return isinstance(new, FunctionType) and new.__code__.co_names == ("_tuple_new",)


def has_own_code(kind: type) -> bool:
    """Return whether a class has code or attributes other than its fields and what the standard library generates.

    Looked up anew in each call, since a method may be assigned to a class at any time.

    Example:
        >>> from dstream.values.fields import has_own_code
        >>> has_own_code(dataclasses.make_dataclass("Sale", ["price"]))
        False
        >>> has_own_code(dataclasses.make_dataclass("Sale", ["price"], namespace={"__bool__": lambda sale: True}))
        True
    """
    names = {*field_names(kind), *_OF_NAMED_TUPLES}
    held = (each for base in kind.__mro__ if base not in _WITHOUT_CODE for each in vars(base).items())
    return not all(_is_generated(name, value, names) for name, value in held)


_WITHOUT_CODE = (object, tuple, typing.Generic)
_OF_NAMED_TUPLES = ("_fields", "_field_defaults", "_make", "_replace", "_asdict")
_ANNOTATING = ("__annotate__", "__annotate_func__")


def _is_generated(name: str, held: Any, names: set[str]) -> bool:
    function = getattr(held, "__func__", held)
    if isinstance(function, FunctionType):
        return name in _ANNOTATING or _is_of_library(function)
    if callable(held) or (name not in names and not (name.startswith("__") and name.endswith("__"))):
        return False
    return name in names or not hasattr(type(held), "__get__") or type(held) is GetSetDescriptorType


def _is_of_library(function: FunctionType) -> bool:
    if is_of_dataclass(function) or is_of_named_tuple(function):
        return True
    # A `__repr__` is wrapped, so that it does not recur.
    wrapped = getattr(function, "__wrapped__", None)
    written = function.__globals__.get("__name__") in ("collections", "dataclasses", "reprlib")
    return written and (wrapped is None or is_of_dataclass(wrapped))


def defaults_of_constructor(kind: type) -> dict[str, Any]:
    """Return the defaults of the constructor of a dataclass or named tuple for omitted fields.

    The fields themselves may have other defaults, if the defaults of the constructor were assigned later.

    Example:
        >>> from dstream.values.fields import defaults_of_constructor
        >>> defaults_of_constructor(dataclasses.make_dataclass("Sale", ["city", ("n", int, 3)]))
        {'n': 3}
    """
    made: Any = kind.__new__ if issubclass(kind, tuple) else vars(kind)["__init__"]
    return dict(zip(reversed(field_names(kind)), reversed(made.__defaults__ or ()), strict=False))


class _Pair(NamedTuple):
    first: Any


# The class of the fields of a named tuple has no public name.
_FIELD_OF_TUPLE = type(vars(_Pair)["first"])


def columns_of_fields(names: tuple[str, ...], items: Sequence[Any]) -> list[list[Any]]:
    """Return the values of the fields `names` of all items, a list for each field.

    Example:
        >>> from dstream.values.fields import columns_of_fields
        >>> columns_of_fields(("value", "key"), [Entry("a", 1), Entry("b", 2)])
        [[1, 2], ['a', 'b']]
    """
    return [_column_of(name)(items) for name in names]


@functools.lru_cache(maxsize=1024)
def _column_of(name: str) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a getter of a field of each item; Python code needs three fifths of the time of `attrgetter` (3.11)."""
    if not _is_read_alike(name):
        return lambda items: [getattr(value, name) for value in items]
    # The module's name marks the code as the library's for failures; no local is called `item`, since some values are
    # parts of keys.
    ours = {"__name__": __name__}
    taking: Callable[[Sequence[Any]], list[Any]] = eval(f"lambda items: [value.{name} for value in items]", ours)
    return taking


def _is_read_alike(name: str) -> bool:
    """Return whether code with this name reads the same as `getattr`: Python normalises names in code alone."""
    return (
        type(name) is str
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and unicodedata.normalize("NFKC", name) == name
    )


def has_default(field: dataclasses.Field[Any]) -> bool:
    """Return whether a field of a dataclass is optional."""
    return not (is_missing(field.default) and is_missing(field.default_factory))


def default_of(kind: type, name: str) -> Callable[[], Any] | None:
    """Return a function that returns the default of a field; None if it has none, or code of the class computes it.

    Example:
        >>> from dstream.values.fields import default_of
        >>> notes = dataclasses.field(default_factory=list)
        >>> sale = dataclasses.make_dataclass("Sale", ["price", ("notes", list, notes)])
        >>> default_of(sale, "price"), default_of(sale, "notes")()
        (None, [])
    """
    found: Callable[[], Any] | None = _default_of(cast(Any, kind), name)
    return found


@functools.lru_cache(maxsize=4096)
def _default_of(kind: Any, name: str) -> Callable[[], Any] | None:
    if dataclasses.is_dataclass(kind):
        return _default_of_field(kind, kind.__dataclass_fields__[name])
    defaults: Mapping[str, Any] = getattr(kind, "_field_defaults", {}) if issubclass(kind, tuple) else {}
    return (lambda: defaults[name]) if name in defaults else None


def _default_of_field(kind: Any, field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    held = inspect.getattr_static(kind, field.name, None)
    if hasattr(type(held), "__set__") and type(held) is not MemberDescriptorType:
        return None  # Its default is the value of the descriptor.
    if not field.init and hasattr(kind, "__post_init__"):
        return None  # The method computes its value from other fields.
    make: Any = field.default_factory
    if not is_missing(make):
        # Any other factory is code, which loading data does not run.
        return make if any(make is known for known in _FACTORIES) else None
    return None if is_missing(field.default) else lambda: field.default


_FACTORIES = (list, dict, set, frozenset, tuple, str, bytes, bytearray, int, float, bool, complex)


def is_missing(default: object) -> bool:
    """Return whether `default` marks a missing default; a class pickled by value has another marker object."""
    return isinstance(default, type(dataclasses.MISSING))


def is_same(found: Any, value: Any) -> bool:
    """Return whether two values are equal and of the same types, also inside of lists, dicts and classes with fields.

    Example:
        >>> from dstream.values.fields import is_same
        >>> is_same([Entry("a", 1)], [Entry("a", 1)]), is_same(1, 1.0)
        (True, False)
    """
    if type(found) is not type(value):
        return False
    if names := field_names(type(value)):
        return all(is_same(getattr(found, name), getattr(value, name)) for name in names)
    if isinstance(value, list | tuple):
        return len(found) == len(value) and all(map(is_same, found, value))
    if isinstance(value, dict):
        return found.keys() == value.keys() and all(is_same(found[key], value[key]) for key in value)
    return repr(found) == repr(value) or bool(found == value)  # A signalling NaN is not compared.


def name_of(kind: type) -> str:
    """Return the name of a class without the functions around it.

    Example:
        >>> from dstream.values.fields import name_of
        >>> name_of(Entry)
        'Entry'
    """
    return kind.__qualname__.rpartition("<locals>.")[2]
