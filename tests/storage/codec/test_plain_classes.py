"""Classes that restricted storages rebuild from fields: what they are, and that a stranger's bytes call nothing."""

from __future__ import annotations

import enum
import pickle
import sys
import types
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgpack
import pytest

from dstream.spi.store import Options
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import described_codec
from dstream.storage.codec.keys import decode_key, encode_key
from dstream.storage.codec.pickles import Pickles, plain_value
from dstream.storage.codec.plain_classes import is_plain, loaded_class, loaded_classes
from dstream.storage.codec.values import ValueEncoding
from tests.storage.codec.samples import Closing, Color, Order, Place, Plain, Point, Rights, Spot

RESTRICTED = Pickles("restricted")
CALLED: list[str] = []
HERE = __name__


def called(self: Any, *arguments: Any) -> Any:
    """Note a call of a method; any answer will do."""
    CALLED.append("called")
    return iter(())


METHODS = (
    *("__post_init__", "__str__", "__repr__", "__iter__", "__len__", "__int__", "__index__", "__float__", "__bytes__"),
    *("append", "extend", "add", "update", "keys", "__getitem__", "__setitem__", "__setattr__", "__fspath__"),
    *("__add__", "__radd__", "__mul__", "__rmul__", "partition", "values", "__call__", "__getattr__", "__init__"),
)


@dataclass
class _Fields:
    x: Any


Watched = type("Watched", (_Fields,), dict.fromkeys(METHODS, called) | {"__module__": HERE})
Watched.__eq__, Watched.__hash__ = _Fields.__eq__, None  # type: ignore[method-assign,assignment]


@dataclass(frozen=True)
class OwnHash:
    x: int

    def __hash__(self) -> int:
        return 1


@dataclass
class OwnState:
    x: int

    def __setstate__(self, state: Any) -> None:
        CALLED.append("state")


@dataclass(frozen=True)
class Filled:
    x: int
    made: list[int] = field(default_factory=lambda: CALLED.append("made") or [], compare=False)


@dataclass
class Nesting:
    inner: OwnState


class Looked(enum.Enum):
    A = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        CALLED.append("missing")


class Meta(type):
    pass


@dataclass
class OwnMeta(metaclass=Meta):
    x: int


class Kept(NamedTuple):
    x: int

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [Order, Place, Spot, Point, Color, Rights, Watched], ids=lambda kind: kind.__name__)
def test_plain_classes_are_their_fields(kind):
    """Dataclasses, named tuples and enums count, also with methods, which are not called."""
    assert is_plain(kind)
    assert loaded_class(f"{kind.__module__}:{kind.__qualname__}") is kind


@pytest.mark.parametrize(
    "kind", [Closing, OwnHash, OwnState, Filled, Looked, OwnMeta, Kept, Plain, int], ids=lambda kind: kind.__name__
)
def test_plain_classes_run_no_code(kind):
    """A class whose code would run when an instance is made, compared, or dropped needs the user's word."""
    assert not is_plain(kind)
    with pytest.raises(TypeError, match=f"{kind.__name__} is not loaded"):
        RESTRICTED.resolve(f"{kind.__module__}:{kind.__qualname__}")


def test_a_class_of_an_unhashable_metaclass_is_looked_at_alone():
    """It is no plain class, and hides no others of its module."""

    class Unhashable(type):
        __hash__ = None

    class Odd(metaclass=Unhashable):
        pass

    assert not is_plain(Odd)
    assert is_plain(Place)


@pytest.mark.parametrize(
    "name", ["dstream.plan.operations.calls:Map", "dstream.spi.processor:Watermark", "dstream.connectors.memory:Range"]
)
def test_plain_classes_of_the_library_are_its_values_alone(name):
    """A step or a source is no value, although it is a dataclass."""
    with pytest.raises(TypeError, match="is not loaded"):
        RESTRICTED.resolve(name)


def test_plain_classes_are_not_imported(monkeypatch):
    """A name loads no module, asks no module for an attribute that it makes, and reaches through no class."""
    lazy = types.ModuleType("lazy")
    lazy.__getattr__ = called  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "lazy", lazy)
    monkeypatch.delitem(sys.modules, "antigravity", raising=False)
    CALLED.clear()

    for name in (
        "lazy:Order",
        "antigravity:Order",
        f"{HERE}:Order.__class__",
        f"{HERE}:test.<locals>.A",
        f"{HERE}:Spot",
    ):
        assert loaded_class(name) is None
    assert "antigravity" not in sys.modules
    assert CALLED == []


def test_plain_values_are_made_without_a_call():
    """`__init__`, `__post_init__` and `__setattr__` of the class do not run, in bytes and in a pickle."""
    watched = Watched.__new__(Watched)
    vars(watched)["x"] = 1
    CALLED.clear()
    for value in ([watched], deque([watched])):
        [found] = ValueEncoding(RESTRICTED).decode(ValueEncoding(RESTRICTED).encode(value))
        assert type(found) is Watched
        assert vars(found) == {"x": 1}
    assert CALLED == []


class Calls:
    """Pickles as a call of a function."""

    def __init__(self, function: Any, *arguments: Any, state: Any = None, items: Any = None, pairs: Any = None) -> None:
        self.call = (function, arguments, state, items and iter(items), pairs and iter(pairs))

    def __reduce__(self) -> Any:
        return self.call


NAME = f"{HERE}:Watched"


@pytest.mark.parametrize(
    "make",
    [
        lambda watched: Calls(plain_value, NAME, {"x": 1}, state={"x": 2}),
        lambda watched: Calls(plain_value, NAME, {"x": 1}, state=(None, {"y": 2})),
        lambda watched: Calls(plain_value, NAME, {"x": 1}, items=[1]),
        lambda watched: Calls(plain_value, NAME, {"x": 1}, items=[1, 2]),
        lambda watched: Calls(plain_value, NAME, {"x": 1}, pairs=[(1, 2)]),
        lambda watched: Calls(plain_value, NAME, {"x": 1}, pairs=[(1, 2), (3, 4)]),
        lambda watched: Calls(plain_value, watched, {"x": 1}),
        lambda watched: Calls(plain_value, NAME, watched),
        lambda watched: Calls(plain_value, f"{HERE}:OwnState", {"x": 1}),
        lambda watched: Calls(Watched, 1),
        *(
            lambda watched, kind=kind: Calls(kind, watched)
            for kind in (str, int, float, bytes, list, tuple, set, dict, deque, complex, slice, range)
        ),
        lambda watched: Calls(dict, [watched]),
        lambda watched: Calls(str, [watched]),
        lambda watched: Calls(str, {"a": watched}),
    ],
)
def test_plain_values_of_a_stranger_call_nothing(make):
    """No opcode reaches a method of a plain class: what would is refused."""
    data = pickle.dumps(make(Calls(plain_value, NAME, {"x": 1})), protocol=5)
    CALLED.clear()
    with pytest.raises(TypeError, match=r"is not loaded|would change|would make|the name of a class|no fields"):
        RESTRICTED.load(data)
    assert CALLED == []


def test_plain_values_are_found_under_any_spelling():
    """A name that is written with escapes does not lead past the careful unpickler."""
    module, name = plain_value.__module__, "\\u0070lain_value"
    data = b"\x80\x04V" + module.encode() + b"\nV" + name.encode() + b"\n\x93."

    with pytest.raises(TypeError, match="is not loaded"):
        RESTRICTED.load(data)


def test_plain_values_in_the_place_of_others_are_refused():
    """Bytes that hold a record where a list, a name or a string is expected call none of its methods."""
    watched = msgpack.ExtType(20, msgpack.packb([NAME, {"x": 1}]))
    CALLED.clear()
    records = [(code, content) for code in (20, 21) for content in (watched, [watched, {}], [NAME, watched])]
    for code, content in [(1, watched), (2, watched), (3, watched), *records]:
        with pytest.raises((ValueError, TypeError)):
            ValueEncoding(RESTRICTED).decode(msgpack.packb(msgpack.ExtType(code, msgpack.packb(content))))
    assert CALLED == []


def test_plain_classes_in_data_allow_nothing():
    """The stored type of a collection names a plain class; the classes of its fields stay refused in pickles."""
    made = Codec.of("map", "m", Options(value_type=Nesting), Pickles("restricted")).to_json()
    found = described_codec(made, "map", "m", Options(), RESTRICTED)
    CALLED.clear()

    assert found.pickles.allowed == ()
    with pytest.raises(TypeError, match="OwnState is not loaded"):
        found.decode_value(b"\xc1" + pickle.dumps(OwnState(1)))
    assert CALLED == []


def test_plain_classes_of_the_driver_travel():
    """A worker finds those of `__main__` by value, and imports modules that the driver has loaded."""
    made: Any = dataclass(type("Made", (), {"__annotations__": {"x": int}, "__module__": "__main__"}))
    sys.modules["__main__"].Made = made  # type: ignore[attr-defined]
    try:
        data = ValueEncoding(RESTRICTED).encode([made(1), Color.RED])
        driver = loaded_classes()
        traveled = pickle.loads(pickle.dumps(RESTRICTED))
    finally:
        del sys.modules["__main__"].Made  # type: ignore[attr-defined]

    assert "tests.storage.codec.samples" in driver.modules
    assert driver.find("no.such:Made") is None
    assert repr(ValueEncoding(traveled).decode(data)) == "[Made(x=1), <Color.RED: 1>]"
    with pytest.raises(TypeError, match="__main__:Made is not loaded"):
        ValueEncoding(RESTRICTED).decode(data)


def test_plain_keys_of_a_stranger_call_nothing():
    """A range or a path whose bytes hold a record is refused."""
    record = encode_key(Spot(1.0, 2.0))
    part = len(record).to_bytes(4, "big") + record
    for data in (b"R" + part, b"R" + part * 3, b"pp" + record):
        with pytest.raises(ValueError, match="is stored as"):
            decode_key(data, RESTRICTED)


def test_what_only_says_that_it_is_a_module_has_no_plain_classes(monkeypatch):
    """As the libraries of cffi do, which have no attributes of their own."""

    class Library:
        __slots__ = ()
        __class__ = types.ModuleType

    monkeypatch.setitem(sys.modules, "a_library", Library())

    assert isinstance(sys.modules["a_library"], types.ModuleType)
    assert "a_library" not in loaded_classes().modules
    assert loaded_class("a_library:Any") is None
