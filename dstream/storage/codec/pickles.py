"""`Pickles`: the policy for pickled values and for classes that stored data name, also for state.

Unpickling runs code that any user who can write into the storage has chosen; `docs/security.md` describes the choices.
"""

from __future__ import annotations

import enum
import functools
import importlib
import io
import pickle
import types
from collections.abc import Callable
from dataclasses import field, replace
from datetime import date, datetime, time, timedelta, timezone
from typing import Any, ClassVar

from dstream.base import pickling
from dstream.base.pickling import read_only
from dstream.base.records import record
from dstream.base.registry import by_name, is_value, reduced_to_name, state_values
from dstream.base.showing import class_name
from dstream.schema import classes as fielded
from dstream.schema.classes import ClassRefusedError, NotStorableError, find, reference
from dstream.spi.store import PickleMode
from dstream.storage.codec.plain_classes import (
    LoadedClasses,
    from_parts,
    is_of_numpy,
    is_own,
    is_plain,
    loaded_class,
    loaded_classes,
    parts_of_numpy,
)

__all__ = ["Pickles", "check_are_loaded", "for_state", "plain_value"]


_PLAIN = {
    "builtins": "bool bytearray bytes complex dict float frozenset int list object range set slice str tuple",
    "collections": "ChainMap Counter OrderedDict defaultdict deque",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "pathlib": "PurePath PurePosixPath PureWindowsPath",
    "pathlib._local": "PurePath PurePosixPath PureWindowsPath",  # as Python 3.13 names them
    "uuid": "SafeUUID UUID",
}
"""Classes that restricted mode loads besides `allowed`: they create values, and have no other effect."""

_PLAIN_CLASSES = frozenset((module, name) for module, names in _PLAIN.items() for name in names.split())
_READ_ONLY = (read_only.__module__, read_only.__qualname__)  # the result of `to_unmodifiable_map`
_OWN_FUNCTIONS = frozenset({"numpy-value", "optional", "read-only"})
_BUILD = pickle.BUILD
_PLAIN_VALUE = b"plain-value"


@record
class Pickles:
    """A policy for classes and functions that pickles load by name.

    Attributes:
        mode: `"trusted"` loads everything, `"restricted"` plain types and `allowed`, `"never"` no pickle at all.
        allowed: classes whose instances may be loaded in every mode by reference, and in restricted mode by pickle.
        driver: in a worker, the plain classes that the driver has loaded.
    """

    mode: PickleMode = "restricted"
    allowed: tuple[type, ...] = ()
    driver: LoadedClasses | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # Trusted mode finds classes by import, so it needs none of the driver's.
        travelling = None if self.mode == "trusted" else self.driver or loaded_classes()
        return Pickles, (self.mode, self.allowed, travelling)

    def allowing(self, *classes: type) -> Pickles:
        """Return this policy with `classes` allowed too."""
        new = tuple(dict.fromkeys(kind for kind in classes if kind not in self.allowed))
        # The last one of a name counts: in a notebook a class is defined again and again.
        return replace(self, allowed=self.allowed + new) if new else self

    def dump(self, value: Any) -> bytes:
        """Pickle a value.

        Raises:
            TypeError: the value cannot be pickled, or would not be loaded again in this mode.
        """
        if self.mode == "never":
            raise ClassRefusedError(f"a {class_name(type(value))} has to be pickled, and {_advice(self.mode)}")
        try:
            data = pickling.dumps_named(value) if self.mode == "trusted" else self._dump_plain(value)
        except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
            raise NotStorableError(
                f"a {class_name(type(value))} cannot be stored: {error}; store plain values that you take out of it"
            ) from error
        if self.mode == "restricted":
            # A value that could not be loaded again is refused now, while its owner still has it.
            self.load(data)
        return data

    def load(self, data: bytes) -> Any:
        """Load a pickled value.

        Raises:
            TypeError: the mode does not allow it.
        """
        if self.mode == "never":
            raise ClassRefusedError(f"the value is pickled, and {_advice(self.mode)}")
        if self.mode == "trusted":
            try:
                return pickle.loads(data)
            except (ImportError, AttributeError) as error:
                raise ClassRefusedError(f"the class of a pickled value cannot be found here: {error}") from error
        # Only the slow unpickler, written in Python, can refuse to change objects that are not plain; it is used where
        # that may be tried: where BUILD may be, or an instance of a class that only its fields may make.
        is_careful = _BUILD in data or _PLAIN_VALUE in data
        unpickler = _CarefulUnpickler if is_careful else _RestrictedUnpickler
        return unpickler(io.BytesIO(data), self).load()

    def resolve(self, reference: str) -> type:
        """Return the class that `reference` ("module:qualname") names.

        Raises:
            TypeError: there is none, or the mode does not allow to load it.
        """
        if type(reference) is not str:
            raise ClassRefusedError(f"the name of a class is a {class_name(type(reference))}")
        known = _by_reference(self.allowed).get(reference)
        if known is not None:
            return known
        # Own classes are found by import in every mode: they have no effect but to be values.
        if self.mode == "trusted" or is_own(reference):
            return find(reference)
        # A worker has another `__main__`, so the driver's classes are tried first.
        found = (self.driver.find(reference) if self.driver else None) or loaded_class(reference)
        if found is None:
            raise ClassRefusedError(f"the class {reference} is not loaded: {_NOT_PLAIN}; {_advice(self.mode)}")
        return found

    def knows(self, kind: type) -> bool:
        """Return whether another process with this policy finds `kind` by its reference."""
        name = reference(kind)
        if _by_reference(self.allowed).get(name) is kind or is_own(name):
            return True
        if self.mode != "trusted":
            return is_plain(kind) and self._loads(kind)
        # `__main__` is another module in each process.
        if kind.__module__ == "__main__":
            return False
        try:
            return find(name) is kind
        except ClassRefusedError:
            return False

    def check_knows(self, kind: type) -> None:
        """Raise the error of `resolve` for a class that another process with this policy would not find.

        Raises:
            TypeError: it would not.
        """
        if not self.knows(kind):
            raise ClassRefusedError(f"the class {reference(kind)} is not loaded: {_NOT_PLAIN}; {_advice(self.mode)}")

    def _loads(self, kind: type) -> bool:
        """Return whether a process that has loaded the same modules resolves the reference of a plain class."""
        if kind.__module__ == "__main__":  # the class of a worker is another one
            return "<locals>" not in kind.__qualname__
        found = loaded_class(reference(kind))
        # A notebook may have loaded the module again.
        return found is not None and fielded.field_names(found) == fielded.field_names(kind)

    def _dump_plain(self, value: Any) -> bytes:
        target = io.BytesIO()
        _PlainPickler(target, self).dump(value)
        return target.getvalue()


def plain_value(name: str, content: Any) -> Any:
    """Return the value that a pickle of a restricted storage contains as a reference to its class, and its content."""
    return _plain_value(find(name), name, content)


def _plain_value(kind: type, name: str, content: Any) -> Any:
    if issubclass(kind, enum.Enum):
        return fielded.member_of(kind, name, content)
    if type(content) is not dict:
        raise ClassRefusedError(f"a pickle holds no fields for the class {name}")
    return fielded.build_named(kind, content)


class _PlainPickler(pickle.Pickler):
    """Pickles instances of plain classes by their fields, so that loading one calls nothing of its class."""

    def __init__(self, file: io.BytesIO, pickles: Pickles) -> None:
        super().__init__(file, protocol=5)
        self._pickles = pickles

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type | types.FunctionType):
            return reduced_to_name(value)
        if is_of_numpy(value) and (of_numpy := parts_of_numpy(value)) is not None:
            return from_parts, of_numpy
        kind = type(value)
        name = reference(kind)
        known = _by_reference(self._pickles.allowed).get(name)
        if known is not None or is_own(name) or kind.__module__ == "builtins" or not self._pickles.knows(kind):
            return NotImplemented
        if isinstance(value, enum.Enum):
            return (plain_value, (name, value.name)) if fielded.has_name(value) else NotImplemented
        named = fielded.named_parts(value)
        return NotImplemented if named is None else (plain_value, (name, named))


class _Restricted:
    """Loads classes of the list above and of `allowed`, and nothing else."""

    is_careful: ClassVar[bool] = False

    def __init__(self, file: io.BytesIO, pickles: Pickles) -> None:
        super().__init__(file)  # type: ignore[call-arg]
        self._pickles = pickles

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN_CLASSES:
            # Every version finds the classes of paths here, also if 3.13 pickled them.
            return getattr(importlib.import_module(module.removesuffix("._local")), name)
        if (module, name) == (by_name.__module__, by_name.__name__):
            # The function itself would return any registered object; this one asks the policy.
            return lambda name: self.named(name)
        known = _by_reference(self._pickles.allowed).get(f"{module}:{name}")
        if known is None:
            raise ClassRefusedError(f"{module}:{name} is not loaded from a pickle: {_advice('restricted')}")
        return known

    def named(self, name: Any) -> Any:
        """Return the registered object of a name in a pickle, if it is a value or makes one, or is allowed."""
        if type(name) is str and (is_value(name) or name in _OWN_FUNCTIONS):
            return by_name(name)
        if name == "plain-value" and self.is_careful:
            return lambda name, content: _plain_value(self._pickles.resolve(name), name, content)
        known = _by_reference(self._pickles.allowed).get(f"dstream:{name}")
        if known is None:
            raise ClassRefusedError(f"dstream:{name} is not loaded from a pickle: {_advice('restricted')}")
        return known


class _RestrictedUnpickler(_Restricted, pickle.Unpickler):
    pass


class _CarefulUnpickler(_Restricted, pickle._Unpickler):
    """Changes and asks only objects of the list above and of `allowed`: no class, no value of a plain class."""

    dispatch: ClassVar[Any] = dict(pickle._Unpickler.dispatch)
    is_careful: ClassVar[bool] = True

    def check_change(self, changed: Any) -> None:
        kind = type(changed)
        is_plain = (kind.__module__, kind.__qualname__) in _PLAIN_CLASSES or is_own(reference(kind))
        if not is_plain and kind not in self._pickles.allowed:
            raise ClassRefusedError(f"a pickle would change {kind!r}, which is no plain object")

    def check_call(self, called: Any, arguments: Any) -> None:
        """Raise where a plain type would call methods of its arguments, such as `int` or `str` of any object."""
        name = (called.__module__, called.__qualname__)
        if name not in _PLAIN_CLASSES and name != _READ_ONLY:
            return
        if not (_are_scalars(arguments) or (name in _OF_A_DICT and [*map(type, arguments)] == [dict])):
            raise ClassRefusedError(f"a pickle would make a {'.'.join(name)} of something that is no plain value")


_OF_A_DICT = (("collections", "Counter"), ("collections", "OrderedDict"), _READ_ONLY)
_SCALARS = frozenset({bool, bytes, complex, float, int, str, type(None), date, datetime, time, timedelta, timezone})
"""Types that a pickle may pass to a plain type's constructor, which calls methods of other immutable types."""


def _are_scalars(values: Any) -> bool:
    if type(values) in (tuple, list):
        return all(_are_scalars(value) for value in values)
    return type(values) in _SCALARS or isinstance(values, type)


def _changing(opcode: bytes, place: int) -> Callable[[Any], None]:
    """Return the check of an opcode that may change its object, `place` from the top, or below the mark."""
    act = pickle._Unpickler.dispatch[opcode[0]]

    def checked(unpickler: Any) -> None:
        unpickler.check_change(unpickler.stack[-place] if place else unpickler.metastack[-1][-1])
        act(unpickler)

    return checked


def _calling(opcode: bytes) -> Callable[[Any], None]:
    """Return the check of an opcode that may call its class with the arguments above it."""
    act = pickle._Unpickler.dispatch[opcode[0]]

    def checked(unpickler: Any) -> None:
        unpickler.check_call(unpickler.stack[-2], unpickler.stack[-1])
        act(unpickler)

    return checked


def _refuse(unpickler: Any) -> None:
    raise ClassRefusedError("a pickle makes objects in a way that dstream does not write")


_CarefulUnpickler.dispatch.update(
    {
        **{opcode[0]: _changing(opcode, place) for opcode, place in [(pickle.BUILD, 2), (pickle.APPEND, 2)]},
        **{opcode[0]: _changing(opcode, 0) for opcode in (pickle.APPENDS, pickle.SETITEMS, pickle.ADDITEMS)},
        **{opcode[0]: _calling(opcode) for opcode in (pickle.REDUCE, pickle.NEWOBJ)},
        **{opcode[0]: _refuse for opcode in (pickle.INST, pickle.OBJ, pickle.NEWOBJ_EX)},
        pickle.SETITEM[0]: _changing(pickle.SETITEM, 3),
    }
)


@functools.lru_cache(maxsize=256)
def _by_reference(classes: tuple[type, ...]) -> dict[str, type]:
    return {reference(kind): kind for kind in classes}


_NOT_PLAIN = (
    "this process has loaded no dataclass, named tuple or enum of that name whose values are their fields alone"
)


def _advice(mode: PickleMode) -> str:
    return (
        f"the storage was connected with pickle={mode!r}; name the class as value_type= or key_type= or "
        "in connect(allowed=[...]), or, if only you can write the store, "
        'use connect(pickle="trusted") (`dstream docs security` says more)'
    )


def for_state(pickles: Pickles) -> Pickles:
    """Return a policy that also allows the state of collectors and steps."""
    return pickles if pickles.mode == "trusted" else _allowing(pickles, state_values())


@functools.lru_cache(maxsize=64)
def _allowing(pickles: Pickles, classes: tuple[type, ...]) -> Pickles:
    return pickles.allowing(*classes)


def check_are_loaded(pickles: Pickles, title: str) -> None:
    """Refuse to store state that could not be loaded again.

    Raises:
        TypeError: no pickles are loaded.
    """
    if pickles.mode == "never":
        raise ClassRefusedError(
            f"{title} has to be pickled, and the storage was connected with pickle='never'; connect with "
            "pickle='restricted' or, if only you can write there, 'trusted' (`dstream docs security` says more), or "
            "keep it elsewhere with JobConfig(files_at=...)"
        )
