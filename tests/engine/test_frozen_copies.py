"""Copies of frozen dataclasses of the caller: of those that somebody could change nevertheless."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import re
from types import ModuleType
from typing import Any, Generic, TypeVar

import pytest

import dstream as ds
from dstream.base.copies import copier_of
from dstream.errors import SerializationError
from dstream.operators.rows.batches import copies as copied


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlots:
    value: Any


class Stored:
    """Stores what a function returns beside the fields of an object."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def __get__(self, item: Any, kind: Any) -> Any:
        return item.__dict__.setdefault("words", self.fn(item))


class StoredProperty(property):
    """Does the same, as a property."""

    def __get__(self, item: Any, kind: Any = None) -> Any:
        return vars(item).setdefault("words", super().__get__(item, kind))


_set = object.__setattr__


def _put(item: Any) -> list[Any]:
    _set(item, "words", [])
    return item.words  # type: ignore[no-any-return]


def _wrapped(fn: Any) -> Any:
    @functools.wraps(fn)
    def wrapper(item: Any) -> Any:
        return fn(item)

    return wrapper


class Helper:
    """Has a function that sets attributes."""

    @staticmethod
    def put(item: Any) -> list[Any]:
        return _put(item)


def _by_init(fn: Any) -> Any:
    """Return a frozen dataclass whose method is called for each object."""
    return dataclasses.dataclass(frozen=True)(type("ByInit", (), {"__annotations__": {"value": Any}, "words": fn}))


def _by_itself(item: Any) -> Any:
    return item.__setattr__("words", [])


def _in_comprehension(item: Any) -> Any:
    return [object.__setattr__(item, name, []) for name in ("words",)]


def _by_name(item: Any) -> Any:
    return getattr(item, "__dict__").setdefault("words", [])  # noqa: B009 - by its name


def _by_default(item: Any, set_: Any = object.__setattr__) -> Any:
    set_(item, "words", [])


def _by_helper(item: Any) -> Any:
    return Helper.put(item)


def _by_import(item: Any) -> Any:
    from tests.engine.test_frozen_copies import _put as put

    put(item)


_helper, _by_key = Helper(), {"put": _put}
_package = ModuleType("package")
_package.inner = ModuleType("package.inner")  # type: ignore[attr-defined]
_package.inner.put = _put  # type: ignore[attr-defined]

_SETTING = {
    "object": lambda item: _helper.put(item),
    "container": lambda item: _by_key["put"](item),
    "import": _by_import,
    "package": lambda item: _package.inner.put(item),
    "constructor": lambda item: item.__init__(2),
    "slot": lambda item: type(item).value.__set__(item, 2),
    "deletion": lambda item: object.__delattr__(item, "value"),
    "descriptor": Stored(lambda item: []),
    "property": StoredProperty(lambda item: []),
    "property of a setter": property(_in_comprehension),
    "module function": lambda item: _put(item),
    "alias": lambda item: _set(item, "words", []),
    "itself": _by_itself,
    "comprehension": _in_comprehension,
    "name": _by_name,
    "default": _by_default,
    "class": _by_helper,
    "decorated": _wrapped(_put),
    "cached": functools.lru_cache(_put),
    "builtin": functools.partialmethod(_put),
}


@pytest.mark.parametrize("member", _SETTING.values(), ids=_SETTING)
def test_a_frozen_class_whose_members_could_set_attributes_is_copied(member):
    """Whatever function they name, or are."""
    item = _by_init(member)(1)

    assert copied([item])[0] is not item
    assert copier_of([(item,)]) is not list


@dataclasses.dataclass(frozen=True)
class Base:
    value: Any

    def __post_init__(self) -> None:
        _put(self)


@dataclasses.dataclass(frozen=True)
class Derived(Base):
    """Has the method of its base."""


@dataclasses.dataclass(frozen=True, slots=True)
class DerivedSlots(FrozenSlots):
    other: Any = 0

    def words(self) -> list[Any]:
        return [self.value]


def test_an_object_with_an_attribute_beside_its_fields_is_copied():
    """Also if it was set from outside, or by `__post_init__`."""
    item = Frozen(1)
    object.__setattr__(item, "words", [])
    for each in (item, Base(1), Derived(1)):
        (copy,) = copied([each])
        assert copy.words is not each.words  # type: ignore[attr-defined]


class Kind(enum.Enum):
    """Has a property."""

    ONE = 1

    @property
    def letter(self) -> str:
        return self.name[0]


class Same:
    """Returns what it gets."""

    def same(self, value: Any) -> Any:
        return value


_names, _PATTERN, _plain = {1: "one"}, re.compile("x"), Same()
T = TypeVar("T")


@dataclasses.dataclass(frozen=True, order=True)
class Harmless(Generic[T]):
    value: T
    other: int = dataclasses.field(default=3, init=False)

    def __add__(self, more: Any) -> Any:
        return dataclasses.replace(self, value=self.value + more)

    def __hash__(self) -> int:
        return super().__hash__()

    @property
    def length(self) -> float:
        return math.sqrt(sum(each for each in (self.value, self.other)))

    @property
    def names(self) -> Any:
        return _names.get(self.other), _PATTERN.search("x"), Kind.ONE.letter, Harmless(1), _plain.same(self)

    @classmethod
    def of(cls, value: T) -> Harmless[T]:
        return cls(value)


@pytest.mark.parametrize("item", [Harmless(1), Harmless.of("a"), DerivedSlots(1)])
def test_methods_that_set_nothing_leave_an_object_as_it_is(item):
    """Also those of the decorator, and of `Generic`."""
    assert copied([item])[0] is item


@dataclasses.dataclass(frozen=True)
class Unset:
    value: int
    total: int = dataclasses.field(init=False, repr=False, compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class UnsetSlots:
    value: int
    total: int = dataclasses.field(init=False, repr=False, compare=False)


@pytest.mark.parametrize("kind", [Unset, UnsetSlots])
def test_a_field_without_a_value_has_none_in_copies(kind):
    """As in the object itself."""
    (copy,) = copied([(kind(1), kind(2))])

    assert copy == (kind(1), kind(2))
    assert not hasattr(copy[0], "total")


class Unhashable(type):
    """Makes classes that have no hash."""

    def __eq__(cls, other: object) -> bool:
        return cls is other

    __hash__ = None  # type: ignore[assignment]


class NoHash(metaclass=Unhashable):
    """Its objects are no part of a pickle."""


@pytest.mark.parametrize("item", [NoHash(), [NoHash()], {"a": (NoHash(),)}])
def test_an_object_of_a_class_without_a_hash_is_named(item):
    """As one that cannot be pickled."""
    with pytest.raises(SerializationError, match=f"{type(item).__name__} .*NoHash.* cannot be pickled"):
        copied([item])


@pytest.mark.parametrize("count", [3, 5_000])
@pytest.mark.parametrize("wrap", [lambda item: item, lambda item: (item,), lambda item: {"a": item}])
def test_a_run_names_an_object_of_a_class_without_a_hash(count, wrap):
    """Few and many."""
    with (
        ds.connect(storage="memory:") as context,
        pytest.raises(SerializationError, match=r"NoHash.* cannot be pickled"),
    ):
        context.stream([wrap(NoHash()) for _ in range(count)]).filter(lambda item: item).to_list()
