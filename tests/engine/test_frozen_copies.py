"""Copies of frozen dataclasses of the caller: of those that somebody could change nevertheless."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import re
from collections import ChainMap, OrderedDict, defaultdict, deque
from time import process_time
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, Generic, NamedTuple, TypeVar

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


class Same:
    """Returns what it gets."""

    def same(self, value: Any) -> Any:
        return value


_helper, _by_key = Helper(), {"put": _put}
_package = ModuleType("package")
_package.inner = ModuleType("package.inner")  # type: ignore[attr-defined]
_package.inner.put = _put  # type: ignore[attr-defined]


class OfDict(dict[str, Any]):
    """A dictionary of a class of its own."""


class Outer:
    """Has another class."""

    class Inner:
        """Has the function."""

        put = _put


class Part(NamedTuple):
    """Part of an item whose method sets attributes of others."""

    value: int

    def put(self, item: Any) -> None:
        object.__setattr__(item, "words", [])


class Choice(enum.Enum):
    """Does the same."""

    ONE = 1

    def put(self, item: Any) -> None:
        object.__setattr__(item, "words", [])


class Proxy:
    """Fails where anybody asks for its class."""

    @property
    def __class__(self) -> Any:
        raise ConnectionError

    def __getattr__(self, name: str) -> Any:
        raise ConnectionError


class Named(type):
    """Has a method for all of its classes."""

    def put(cls, item: Any) -> None:
        object.__setattr__(item, "words", [])


class Failing(type):
    """Has no attribute that it does not know."""

    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError(name)


class WithoutModule:
    """Its module is unknown."""

    put = staticmethod(_put)


WithoutModule.__module__ = None  # type: ignore[assignment]
_namespace, _without_module = SimpleNamespace(put=_put), WithoutModule()
_default, _ordered = defaultdict(list, put=_put), OrderedDict(put=_put)
_view, _queue, _chained, _of_dict = MappingProxyType({"put": _put}), deque([_put]), ChainMap(_by_key), OfDict(put=_put)
_by_instance = Same()
_by_instance.put = _put  # type: ignore[attr-defined]
_deep: list[Any] = [_put]
for _ in range(2_000):
    _deep = [_deep]
_many = {number: Same() for number in range(100)}


def _of_module(name: str) -> Any:
    """Return the function of globals that call themselves a module."""
    namespace = {"__name__": name, "set_": object.__setattr__}
    exec("def put(item):\n    set_(item, 'words', [])", namespace)
    return namespace["put"]


def _of_constructor() -> Any:
    """Return a function whose only name is that of the constructor of named tuples."""
    namespace = {"_tuple_new": object.__setattr__}
    exec("def put(item):\n    _tuple_new(item, 'words', [])", namespace)
    return namespace["put"]


_SETTING = {
    "namespace": lambda item: _namespace.put(item),
    "default dictionary": lambda item: _default["put"](item),
    "ordered": lambda item: _ordered["put"](item),
    "view": lambda item: _view["put"](item),
    "queue": lambda item: _queue[0](item),
    "chained": lambda item: _chained["put"](item),
    "subclass of dict": lambda item: _of_dict["put"](item),
    "attribute of an object": lambda item: _by_instance.put(item),
    "nested class": lambda item: Outer.Inner.put(item),
    "globals": lambda item: globals()["_p" + "ut"](item),
    "eval": lambda item: eval("_put(item)"),
    "dynamic name": lambda item: getattr(object, "__set" + "attr__".lower())(item, "words", []),
    "subclass": lambda item: type(item).__subclasses__()[0].put(item),
    "without a module": lambda item: _without_module.put(item),
    "deep": lambda item: _deep[0],
    "many": lambda item: _many[0],
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
    "called math": _of_module("math"),
    "called a named tuple": _of_module("namedtuple_Pair"),
    "called a constructor": _of_constructor(),
}


@pytest.mark.parametrize("member", _SETTING.values(), ids=_SETTING)
def test_a_frozen_class_whose_members_could_set_attributes_is_copied(member):
    """Whatever function they name, or are."""
    item = _by_init(member)(1)

    assert copied([item])[0] is not item
    assert copier_of([(item,)]) is not list


def test_a_class_whose_metaclass_has_methods_is_copied():
    """Also if that one fails for attributes that it does not know."""
    kind: Any = Named("kind", (), {"__annotations__": {"value": Any}})
    assert copier_of([(dataclasses.dataclass(frozen=True)(kind)(1),)]) is not list
    assert copier_of([(Failing("other", (), {})(),)]) is None


def test_a_proxy_that_a_method_names_is_not_evaluated(monkeypatch):
    """Its exception does not leave a run."""
    # Set here, since pytest asks all objects of a module for their classes.
    monkeypatch.setitem(globals(), "_proxy", Proxy())
    kind = _by_init(lambda item: _proxy.put(item))  # type: ignore[name-defined]  # noqa: F821 - set above
    assert copier_of([(kind(1),)]) is list


@pytest.mark.parametrize("part", [Part(1), Choice.ONE])
def test_an_object_is_copied_whose_part_has_a_method_that_could_set_its_attributes(part):
    """A named tuple, or a member of an enumeration."""
    assert copier_of([Frozen(part)]) is not list


def test_looking_at_what_a_method_names_takes_no_longer_than_a_pickle():
    """Of a container that has many members."""
    nodes = {number: Same() for number in range(200_000)}
    kind = _by_init(lambda item: _large["nodes"][0])
    _large["nodes"] = nodes
    seconds = process_time()
    for _ in range(100):
        assert copier_of([kind(1)]) is not list

    assert process_time() - seconds < 1


_large: dict[str, Any] = {}


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


class Shown:
    """Has a property in the place of its attributes."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def __dict__(self) -> Any:
        return {"value": self.value}


class Hidden(FrozenSlots):
    """Has a property in the place of a slot, which its pickle sets."""

    value = property(lambda item: 1)  # type: ignore[assignment]

    def __init__(self) -> None: ...


@pytest.mark.parametrize("item", [Shown(1), Hidden()])
def test_an_object_whose_pickle_cannot_be_loaded_is_named(item):
    """Since none of its class can be copied."""
    with pytest.raises(SerializationError, match=f"{type(item).__name__} .* cannot be unpickled"):
        copied([1, item])
