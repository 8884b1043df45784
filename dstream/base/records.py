"""`record`: classes of values with fields, which are made in a tenth of the time of frozen dataclasses.

`remembered`: functions of such a value that run once for each object.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar, cast, dataclass_transform, overload

__all__ = ["Remembering", "record", "remembered", "with_fields"]


C = TypeVar("C", bound=type)
R = TypeVar("R", bound="Remembering")
T = TypeVar("T")


class Remembering:
    """Base of records that cache the results of `remembered` functions, outside of their value and pickle."""

    __slots__ = ("_found",)
    _found: dict[Callable[..., Any], Any]


def remembered(fn: Callable[[R], T]) -> Callable[[R], T]:
    """Return a function, or a method without arguments, whose results are cached in the object.

    The result must depend on nothing that may change later. It is released with the object, unlike in a cache of the
    function, which would keep the references of the object alive.
    """

    @functools.wraps(fn)
    def known(of: R) -> T:
        try:
            found: T = of._found[fn]
            return found
        except AttributeError:
            of._found = {}
        except KeyError:
            pass
        found = of._found[fn] = fn(of)
        return found

    return known


@overload
def record(cls: C, /) -> C: ...
@overload
def record(*, slots: bool = True, eq: bool = True, repr: bool = True) -> Callable[[C], C]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: Any = None, /, *, slots: bool = True, eq: bool = True, repr: bool = True) -> Any:
    """Make `cls` a value: its objects are equal, and have one hash, if their fields are equal.

    Type checkers refuse to change one. `@dataclass(frozen=True)` refuses it at run time too, and compiles up to eight
    methods for that, 0.4 ms for a class (CPython 3.11): with 400 classes half of the first plan of a process. Here
    Python compiles `__init__` alone, when the first object is made.

    Args:
        cls: the class, whose own methods are retained.
        slots: its objects have no other attributes than the fields.
        eq: whether they are compared by their fields, and not by identity.
        repr: whether their `repr` shows their fields, instead of the inherited `repr`.
    """
    return _made(cls, slots, eq, repr) if cls is not None else lambda cls: _made(cls, slots, eq, repr)


def _made(cls: Any, slots: bool, eq: bool, shown: bool) -> Any:
    own = vars(cls)
    has_eq = "__eq__" in own
    # Python itself gives a class with an `__eq__` no hash.
    has_hash = "__hash__" in own and not (has_eq and own["__hash__"] is None)
    has_repr, has_state = "__repr__" in own, "__getstate__" in own or "__setstate__" in own
    made = with_fields(cls, slots)
    fields = dataclasses.fields(made)
    if eq and not has_eq:
        made.__eq__ = _equality([each.name for each in fields if each.compare])
    if eq and not has_hash:
        hashed = _hash([each.name for each in fields if (each.compare if each.hash is None else each.hash)])
        own_hash = remembered(hashed) if issubclass(made, Remembering) else hashed
        made.__hash__ = own_hash  # pyright: ignore[reportAttributeAccessIssue]
    if shown and not has_repr:
        made.__repr__ = _shown
    if slots and not has_state:
        # A list, as the state of a frozen dataclass, which is shorter than the names with the values.
        made.__getstate__, made.__setstate__ = _state, _set_state  # pyright: ignore[reportAttributeAccessIssue]
    return made


def with_fields(cls: Any, slots: bool) -> Any:
    """Return `cls` with the fields of a dataclass, and with an `__init__` that is compiled when it is called first.

    A process instantiates half of its classes; compiling an `__init__` takes 80 us (CPython 3.11).
    """
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # `dataclass` would compute a signature for the docstring
    made: Any = dataclasses.dataclass(slots=slots, eq=False, repr=False, init=False)(cls)
    if "__init__" not in vars(cls):

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            made.__init__ = compiled = _compiled_init(made, slots)
            compiled(self, *args, **kwargs)

        made.__init__ = __init__
    return made


def _compiled_init(cls: Any, slots: bool) -> Callable[..., None]:
    names = ("__dataclass_fields__", "__dataclass_params__", "__post_init__")
    base = type("Fields", (), {name: getattr(cls, name) for name in names if hasattr(cls, name)})
    for each in vars(base)["__dataclass_fields__"].values():
        # A class that was pickled by value has a mark of its own for what is missing, which would be a default.
        for name in ("default", "default_factory"):
            if isinstance(getattr(each, name), type(dataclasses.MISSING)):
                setattr(each, name, dataclasses.MISSING)
    # A separate class, not a subclass of `cls`: no base of `cls` gets an additional subclass.
    named = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    beside: Any = dataclasses.dataclass(slots=slots, eq=False, repr=False)(type(cls.__name__, (base,), named))
    return cast(Callable[..., None], vars(beside)["__init__"])


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return cast(Callable[[Any], tuple[Any, ...]], attrgetter(*names))
    return lambda value: tuple(getattr(value, name) for name in names)


def _equality(names: list[str]) -> Callable[[Any, Any], Any]:
    values = _values(names)
    return lambda self, other: values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(names: list[str]) -> Callable[[Any], int]:
    values = _values(names)
    return lambda self: hash(values(self))


def _shown(self: Any) -> str:
    fields = (each for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(f'{each.name}={getattr(self, each.name)!r}' for each in fields)})"


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=False):
        object.__setattr__(self, each.name, value)
