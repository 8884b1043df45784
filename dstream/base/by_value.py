"""Pickling by value of functions and classes that a worker cannot import by name.

`cloudpickle` does so for functions and classes. `ValuePickler` adds what else has a name: types of `typing`, functions
with a cache, functions that dispatch by type. An object that insists on its name is refused with it.
"""

from __future__ import annotations

import copyreg
import enum
import functools
import hashlib
import importlib
import io
import pickle
import sys
import types
import typing
import weakref
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import cloudpickle

from dstream.base.registry import reduced_to_name
from dstream.base.showing import shown

__all__ = [
    "SharedInProcess",
    "ValuePickler",
    "dumps_by_value",
    "dumps_with_shared",
    "implementations_of",
    "is_importable",
    "loads_with_shared",
]


class SharedInProcess:
    """A base class of objects that a copy of a stage in this process shares with the original."""

    __slots__ = ()


def dumps_by_value(value: Any, is_named: bool = False) -> bytes:
    """Pickle `value`, with all that has a name in `__main__` by value.

    Args:
        value: anything.
        is_named: it is stored, so that what is ours gets the names of the registry.

    Raises:
        pickle.PicklingError: something in it pickles as a name of `__main__`; the message has the name.
    """
    return _dumps(_NamingPickler if is_named else ValuePickler, value)


def _dumps(kind: type[ValuePickler], value: Any) -> bytes:
    with io.BytesIO() as target:
        kind(target, 5).dump(value)
        return target.getvalue()


def dumps_with_shared(value: Any) -> tuple[bytes, list[Any]]:
    """Pickle `value` as for another process, except for shared objects, which are returned separately.

    Shared are `SharedInProcess` objects, and classes that others cannot import.

    Raises:
        pickle.PicklingError: something in it pickles as a name of `__main__`; the message has the name.
    """
    with io.BytesIO() as target:
        pickler = _SharingPickler(target, 5)
        pickler.dump(value)
        return target.getvalue(), pickler.shared


def loads_with_shared(data: bytes, shared: list[Any]) -> Any:
    """Load what `dumps_with_shared` returned."""
    return _SharingUnpickler(io.BytesIO(data), shared).load()


def is_importable(value: Any) -> bool:
    """Return whether a function, class or the like is found by its name in a module that a worker imports."""
    module = getattr(value, "__module__", None)
    if module is None or not _is_elsewhere(module):
        return False
    found: Any = sys.modules.get(module)
    for part in _name(value).split("."):
        found = getattr(found, part, None)
    return found is value


def _name(value: Any) -> str:
    return getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or ""


def _is_elsewhere(module: str) -> bool:
    """Return whether other processes import a module, too: neither it nor a package around it is registered."""
    registered = cloudpickle.list_registry_pickle_by_value()
    return module != "__main__" and not any(f"{module}.".startswith(f"{each}.") for each in registered)


_flattened: tuple[list[dict[Any, Any]], dict[Any, Any]] = ([], {})
"""Copies of the reducers of cloudpickle and of `copyreg`, and both in one."""


def _dispatch_table() -> dict[Any, Any]:
    """Return the reducers of cloudpickle, and those that are registered now."""
    global _flattened
    registered, reducers = _flattened
    maps = cloudpickle.Pickler.dispatch_table.maps  # pyright: ignore[reportAttributeAccessIssue]
    if registered != maps:
        registered = list(map(dict, maps))
        reducers = {kind: reducer for each in reversed(registered) for kind, reducer in each.items()}
        _flattened = (registered, reducers)
    return reducers


class ValuePickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickler of everything with a name in `__main__` by value."""

    def __init__(self, *args: Any) -> None:
        # cloudpickle (3.1) has a ChainMap, whose Python code runs for each object: 3 us of 8.
        self.dispatch_table = _dispatch_table()
        super().__init__(*args)

    def reducer_override(self, obj: Any) -> Any:
        """Return the reduction of `obj`; `NotImplemented` for the default."""
        kind: Any = type(obj)
        reduce = _reducer_of(kind)
        return NotImplemented if reduce is None else reduce(self, obj)

    def reduce_cached(self, function: Any) -> Any:
        """Return the reduction of a function with a cache: without the contents of the cache."""
        return self.cached_parts(function, hashlib.blake2b(_dumps(_PlainPickler, function), digest_size=16).digest())

    def cached_parts(self, function: Any, digest: bytes | None) -> Any:
        """Return the parts of a function with a cache; `digest` covers its code and everything that it uses."""
        parameters = function.cache_parameters()
        identity = None if digest is None else (_identity(function), digest)
        state = {name: value for name, value in vars(function).items() if name not in _MADE_BY_CACHE}
        arguments = (function.__wrapped__, parameters["maxsize"], parameters["typed"], identity)
        return _cached, arguments, state, None, None, _set_attributes


class _PlainPickler(ValuePickler):
    """Pickles functions with a cache without their identity, to compare them by their content."""

    def reduce_cached(self, function: Any) -> Any:
        return self.cached_parts(function, None)


class _NamingPickler(ValuePickler):
    """Pickler of our objects under the names of the registry, and of the rest by value."""

    def reducer_override(self, obj: Any) -> Any:
        """Return the reduction of `obj`; `NotImplemented` for the default."""
        reduced = reduced_to_name(obj)
        return super().reducer_override(obj) if reduced is NotImplemented else reduced


class _SharingPickler(ValuePickler):
    """Pickler that leaves out `SharedInProcess` objects, and classes that have no name elsewhere, and collects them.

    A copy has the same class object as its original, since both are in this process.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.shared: list[Any] = []

    def persistent_id(self, obj: Any) -> int | None:
        """Return the position of a shared object; None for objects that are copied."""
        is_shared = isinstance(obj, SharedInProcess) or (isinstance(obj, type) and not is_importable(obj))
        if not is_shared:
            return None
        self.shared.append(obj)
        return len(self.shared) - 1


class _SharingUnpickler(pickle.Unpickler):
    """Unpickler that puts shared objects back."""

    def __init__(self, source: io.BytesIO, shared: list[Any]) -> None:
        super().__init__(source)
        self._shared = shared

    def persistent_load(self, pid: Any) -> Any:
        """Return the shared object at a position."""
        return self._shared[pid]


@functools.lru_cache(maxsize=1024)
def _reducer_of(kind: Any) -> Callable[[ValuePickler, Any], Any] | None:
    """Return the function that reduces objects of a class; None for the default."""
    if kind in _REDUCERS:
        return _REDUCERS[kind]
    if issubclass(kind, type):
        return _reduce_class
    is_usual = kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__
    has_reducer = kind in copyreg.dispatch_table
    is_of_python = bool(kind.__flags__ & _HEAP_TYPE)  # an object of C is found by a name in its own module, if any
    return _reduce_checked if has_reducer or (is_of_python and not is_usual) else None


# `Py_TPFLAGS_HEAPTYPE` of CPython, which a static type of C does not have.
_HEAP_TYPE = 1 << 9
_module_of: Callable[[Any, str], str] = vars(pickle)["whichmodule"]


def _reduce_class(pickler: ValuePickler, kind: type) -> Any:
    """Return the reduction of a class: a class pickled by value is reused in the process that made it."""
    reduced = cloudpickle.Pickler.reducer_override(pickler, kind)
    if type(reduced) is not tuple or len(reduced) < _WITH_SETTER:
        return reduced
    if kind not in _copied_classes:
        _own_classes.add(kind)
    return *reduced[:-1], _complete_class


_WITH_SETTER = 6
"""Number of parts of a reduction whose last part sets the state."""
_own_classes: weakref.WeakSet[type] = weakref.WeakSet()
_copied_classes: weakref.WeakSet[type] = weakref.WeakSet()
"""Classes made by this process, and those that another one has sent."""


def _complete_class(kind: type, state: Any) -> None:
    # cloudpickle (3.1) finds the class of this process, and replaces its methods by copies, with other globals.
    if kind not in _own_classes:
        _copied_classes.add(kind)
        _set_class_state(kind, state)


_set_class_state: Callable[[type, Any], Any] = vars(cloudpickle.cloudpickle)["_class_setstate"]


def _reduce_checked(pickler: ValuePickler, value: Any) -> Any:
    """Return the reduction of an object, unless that is a name of `__main__`."""
    reduce = pickler.dispatch_table.get(type(value))
    reduced = value.__reduce_ex__(5) if reduce is None else reduce(value)
    if type(reduced) is not str:
        return reduced
    module = _module_of(value, reduced)
    if _is_elsewhere(module):
        return reduced
    if isinstance(value, enum.Enum):  # as `enum.global_enum` makes flags
        return type(value), (value.value,)
    raise pickle.PicklingError(
        f"{shown(value)} pickles as the name {reduced!r} of {module}, which workers do not import; define it and "
        "its class in a module that they import, or let its __reduce__ return a function and arguments that make it"
    )


def _reduce_function(pickler: ValuePickler, function: Any) -> Any:
    registered = implementations_of(function)
    if registered is None or is_importable(function):
        return cloudpickle.Pickler.reducer_override(pickler, function)
    # The implementation for `object` is the function that `singledispatch` decorated.
    return functools.singledispatch, (registered.pop(object),), registered, None, None, _register_all


def implementations_of(function: types.FunctionType) -> dict[type, Any] | None:
    """Return the implementations of a function of `functools.singledispatch`, by class; None for other functions."""
    return dict(vars(function)["registry"]) if function.__code__ is _DISPATCHING else None


_dispatching: Any = functools.singledispatch(lambda value: value)
# All functions of `singledispatch` share the code of one wrapper.
_DISPATCHING = _dispatching.__code__


def _register_all(function: Any, registered: Mapping[type, Any]) -> None:
    for kind, implementation in registered.items():
        function.register(kind, implementation)


def _reduce_cached(pickler: ValuePickler, function: Any) -> Any:
    if is_importable(function):
        return NotImplemented
    name = (function.__module__, _name(function))
    if _is_elsewhere(name[0]) and _found_function(*name) is function:
        return _function_of, name
    return pickler.reduce_cached(function)


def _found_function(module: str, qualname: str) -> Any:
    """Return the function of the class method with a qualified name; None if there is none.

    With Python 3.11 the class of a generic named tuple has the class method of `typing.Generic`.
    """
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return getattr(found, "__func__", None)


def _function_of(module: str, qualname: str) -> Any:
    importlib.import_module(module)
    return _found_function(module, qualname)


# `lru_cache` sets these attributes on each function that it makes.
_MADE_BY_CACHE = frozenset({"__annotate__", "__wrapped__", "cache_parameters"})
_MOST_CACHES = 256
_caches: dict[str, tuple[bytes, Any]] = {}


def _cached(function: Any, maxsize: int | None, typed: bool, identity: tuple[str, bytes] | None) -> Any:
    """Return a function with a cache: the function of this process, unless its code or its globals have changed.

    So a client that it makes, such as a pool of connections, is made once in each worker.
    """
    name, digest = identity or ("", b"")
    known = _known.get(name) or (_caches[name][1] if _caches.get(name, (b"",))[0] == digest else None)
    if known is not None:
        return known
    made = functools.lru_cache(maxsize, typed)(function)
    if identity is not None:
        _identities[made] = name
        # Removed first, so that a changed function becomes the newest: the oldest ones are removed below.
        _caches.pop(name, None)
        _caches[name] = (digest, made)
        for oldest in list(_caches)[:-_MOST_CACHES]:
            _caches.pop(oldest, None)
    return made


def _set_attributes(function: Any, attributes: Mapping[str, Any]) -> None:
    if _known.get(_identities.get(function, "")) is not function:  # the original has newer ones
        vars(function).update(attributes)


def _reduce_cached_property(pickler: ValuePickler, made: Any) -> Any:
    # Its lock, which Python 3.11 has, does not travel.
    state = {name: value for name, value in vars(made).items() if name != "lock"}
    return functools.cached_property, (made.func,), state


def _reduce_new_type(pickler: ValuePickler, made: Any) -> Any:
    return _reduce_type(made, (typing.NewType, (made.__name__, made.__supertype__), {}))


def _reduce_parameter(pickler: ValuePickler, made: Any) -> Any:
    options = {name: getattr(made, f"__{name}__") for name in _OPTIONS if hasattr(made, f"__{name}__")}
    if getattr(made, "has_default", lambda: False)():
        options["default"] = made.__default__
    return _reduce_type(made, (type(made), (made.__name__,), options))


_OPTIONS = ("bound", "contravariant", "covariant", "infer_variance")


def _reduce_alias(pickler: ValuePickler, made: Any) -> Any:
    # It takes no weak reference, so that it has no identity, and is copied.
    parts = (type(made), made.__name__, made.__value__, made.__type_params__)
    return NotImplemented if is_importable(made) else (_made_alias, parts)


def _made_alias(kind: Any, name: str, value: Any, parameters: tuple[Any, ...]) -> Any:
    return kind(name, value, type_params=parameters)


def _reduce_type(made: Any, parts: tuple[Any, tuple[Any, ...], dict[str, Any]]) -> Any:
    if is_importable(made):
        return NotImplemented
    qualname = getattr(made, "__qualname__", None)
    return _made_type, (_identity(made), made.__module__, qualname, *parts)


def _made_type(
    name: str, module: str, qualname: str | None, kind: Any, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Return a type of `typing`: the existing object of this process, so that two pickles load as the same object."""
    known = _known.get(name)
    if known is not None:
        return known
    made = kind(*arguments, **options)
    made.__module__ = module
    if qualname is not None:
        made.__qualname__ = qualname
    _identities[made] = name
    # Two threads that unpickle the type at the same time get the same object.
    return _known.setdefault(name, made)


_identities: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
_known: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


def _identity(value: Any) -> str:
    """Return the name of an object in all processes; in the process that made it, the name loads the object itself."""
    name = _identities.get(value)
    if name is None:
        name = _identities.setdefault(value, uuid4().hex)
        _known[name] = value
    return name


_REDUCERS: dict[type, Callable[[ValuePickler, Any], Any]] = {
    types.FunctionType: _reduce_function,
    type(functools.cache(len)): _reduce_cached,
    functools.cached_property: _reduce_cached_property,
    typing.NewType: _reduce_new_type,
    typing.ParamSpec: _reduce_parameter,
    typing.TypeVarTuple: _reduce_parameter,
}
if sys.version_info >= (3, 12):
    _REDUCERS[typing.TypeAliasType] = _reduce_alias
