"""What may be loaded by name, in each mode."""

from __future__ import annotations

import builtins
import collections
import copyreg
import datetime
import decimal
import fractions
import functools
import os
import pathlib
import pickle
import uuid

import cloudpickle
import pytest

from dstream.storage.codec.pickles import Pickles
from tests.storage.codec.samples import Closing, Color, Loose, Plain

RESTRICTED = Pickles("restricted", (Plain,))


class Gadget:
    """Calls any function when it is unpickled."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


GADGETS = [
    Gadget(os.system, "true"),
    Gadget(eval, "1"),
    Gadget(exec, "1"),
    Gadget(getattr, Plain, "__init__"),
    Gadget(builtins.__import__, "os"),
    Gadget(functools.partial, print),
    Gadget(copyreg._reconstructor, Plain, object, None),
    Gadget(type, "Made", (), {}),
    Gadget(open, "/dev/null"),
]


@pytest.mark.parametrize("gadget", GADGETS, ids=lambda gadget: gadget.call[0].__name__)
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [{"bbb": value}]], ids=["bare", "nested"])
def test_restricted_refuses_what_runs_code(gadget, wrap):
    """A pickle that calls anything but a plain or allowed class is refused, when written and when read."""
    with pytest.raises(TypeError, match="is not loaded from a pickle"):
        RESTRICTED.load(pickle.dumps(wrap(gadget), protocol=5))
    with pytest.raises(TypeError, match="is not loaded from a pickle"):
        RESTRICTED.dump(wrap(gadget))


def test_restricted_refuses_to_reach_through_an_allowed_class():
    """A dotted name does not lead from an allowed class to what it holds."""
    data = b"\x80\x04\x8c\x09fractions\x8c\x11Fraction.__init__\x93."

    with pytest.raises(TypeError, match=r"Fraction.__init__ is not loaded"):
        RESTRICTED.load(data)


def test_restricted_refuses_to_change_a_class():
    """The opcode that sets attributes of an instance cannot set those of a class, which would stay."""
    # The class itself, then (None, {"__add__": set}) as the state of its slots.
    data = b"\x80\x04cfractions\nFraction\nN}\x8c\x07__add__cbuiltins\nset\ns\x86b."

    with pytest.raises(TypeError, match="would change"):
        RESTRICTED.load(data)
    assert fractions.Fraction(1) + 1 == 2


@pytest.mark.parametrize(
    "value",
    [
        *(bytearray(b"x"), {1, 2}, range(3), slice(1), 3 + 4j, collections.Counter("aab"), collections.deque([1])),
        *(collections.OrderedDict(a=1), collections.defaultdict(list, a=[1]), datetime.datetime.now(datetime.UTC)),
        *(decimal.Decimal("1.5"), fractions.Fraction(1, 3), uuid.UUID(int=1), pathlib.PurePosixPath("b"), [Plain(1)]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_restricted_loads_plain_and_allowed_values(value):
    """Values of the standard library's types, and of allowed classes, come back."""
    found = RESTRICTED.load(RESTRICTED.dump(value))

    assert found == value
    assert type(found) is type(value)


def test_restricted_refuses_other_classes_and_says_what_to_do():
    """What could not be read again is not written."""
    for action in (lambda: RESTRICTED.dump([Closing("a")]), lambda: RESTRICTED.load(pickle.dumps(Closing("a")))):
        with pytest.raises(TypeError, match=r"samples:Closing.*value_type=.*allowed=.*trusted.*dstream docs security"):
            action()


def test_restricted_refuses_classes_pickled_by_value():
    """Code inside a pickle is not loaded."""
    made = type("Made", (), {"__module__": "__main__"})

    with pytest.raises(TypeError, match="is not loaded"):
        RESTRICTED.load(cloudpickle.dumps(made()))


def test_trusted_loads_everything_also_classes_of_main():
    """A class that only this process knows travels inside the pickle."""
    trusted = Pickles("trusted")
    made = type("Made", (), {"__module__": "__main__", "x": 7})

    assert trusted.load(trusted.dump(made())).x == 7
    assert trusted.load(trusted.dump(Loose(1))) == Loose(1)


@pytest.mark.parametrize("mode", ["trusted", "restricted", "never"])
def test_dump_names_what_cannot_be_pickled(mode):
    """The message names the type."""
    with pytest.raises(TypeError, match="generator"):
        Pickles(mode).dump(n for n in [])


def test_never_loads_and_dumps_nothing():
    """Even an int in a pickle is refused."""
    for action in (lambda: Pickles("never").dump(1), lambda: Pickles("never").load(pickle.dumps(1))):
        with pytest.raises(TypeError, match="pickle='never'"):
            action()


def test_resolve_follows_the_mode():
    """Trusted mode imports, the others know allowed classes, and those that are their fields alone."""
    name = "tests.storage.codec.samples:Closing"

    assert Pickles("trusted").resolve(name) is Closing
    for mode in ("restricted", "never"):
        assert Pickles(mode, (Closing,)).resolve(name) is Closing
        with pytest.raises(TypeError, match="samples:Closing is not loaded"):
            Pickles(mode, (Color,)).resolve(name)


@pytest.mark.parametrize("name", ["no_such_module:A", "os:NoSuch", "os:system", "os:path.join", "os:", ":"])
def test_resolve_refuses_what_is_no_class(name):
    """Whatever is wrong with a reference, it is a TypeError that shows it."""
    with pytest.raises(TypeError, match=f"{name}"):
        Pickles("trusted").resolve(name)


def test_resolve_prefers_the_class_that_the_program_named():
    """A class that traveled by value is found though its module is another one here; the latest of a name counts."""
    first, second = (type("Made", (), {"__module__": "__main__"}) for _ in range(2))
    pickles = Pickles("trusted").allowing(first).allowing(second)

    assert pickles.resolve("__main__:Made") is second


def test_pickles_travel():
    """Tasks get the policy with its classes."""
    assert pickle.loads(pickle.dumps(RESTRICTED)) == RESTRICTED
