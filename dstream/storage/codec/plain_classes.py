"""Plain classes and values of NumPy, which restricted storages rebuild without permission of the user.

They are the library's own values, and the dataclasses, named tuples and enums that this process has loaded, as long as
building an instance runs none of their code. A user who can write to a storage controls only names and fields. Arrays
and scalars of NumPy are stored by dtype, shape, order and bytes, so that loading one calls no function that the store
names. NumPy is imported only when such a value is loaded.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import math
import pickle
import re
import sys
import types
from abc import ABCMeta
from collections.abc import Mapping
from typing import Any, Literal, cast

from dstream.base import pickling
from dstream.base.records import record
from dstream.base.registry import is_value
from dstream.failures import is_our_name
from dstream.keys import has_generated_eq, has_generated_hash
from dstream.schema import classes
from dstream.schema.classes import ClassRefusedError, find, own_name, reference
from dstream.values.fields import is_missing

__all__ = [
    "LoadedClasses",
    "Parts",
    "from_parts",
    "is_of_numpy",
    "is_own",
    "is_plain",
    "loaded_class",
    "loaded_classes",
    "parts_of_numpy",
]


def is_own(name: str) -> bool:
    """Return whether a reference names one of the library's own values."""
    own = own_name(name)
    return own is not None and is_value(own)


def is_plain(kind: type) -> bool:
    """Return whether instances can be built from named fields without running code of the class.

    That excludes classes with a `__del__`, with a custom hash or equality (a set calls them), with properties in place
    of fields, with custom metaclasses, and the library's own classes other than its values.
    """
    # Checked before the cache, which hashes the class: a metaclass of the user's may have no hash.
    return is_own(reference(kind)) or (type(kind) in (type, ABCMeta, enum.EnumMeta) and bool(_is_plain(kind)))


@functools.lru_cache(maxsize=4096)
def _is_plain(kind: Any) -> bool:
    if not (dataclasses.is_dataclass(kind) or issubclass(kind, _OTHERS)) or is_our_name(kind.__module__):
        return False
    if type(kind) is enum.EnumMeta:
        members: Any = kind
        return members._missing_.__func__ in _MISSING and getattr(kind, "__del__", None) is None
    names = classes.field_names(cast(type, kind))
    return (
        type(kind) in (type, ABCMeta)
        and names is not None
        and getattr(kind, "__del__", None) is None
        and _compares_by_fields(kind)
        and not any(_is_computed(kind, name) for name in names)
    )


_OTHERS = (tuple, enum.Enum)
# A `_missing_` of the user's would be called with any value that is stored.
_MISSING = (enum.Enum._missing_.__func__, enum.Flag._missing_.__func__)  # type: ignore[attr-defined]


def _compares_by_fields(kind: Any) -> bool:
    plain = (object, tuple)
    equal = any(kind.__eq__ is base.__eq__ for base in plain) or has_generated_eq(kind)
    hashed = kind.__hash__ is None or any(kind.__hash__ is base.__hash__ for base in plain) or has_generated_hash(kind)
    return equal and hashed


def _is_computed(kind: Any, name: str) -> bool:
    """Return whether assigning a field calls a function of the class; so may its default, where keys leave it out."""
    if issubclass(kind, tuple):
        return False
    found = inspect.getattr_static(kind, name, None)
    default = kind.__dataclass_fields__[name]
    make = default.default_factory
    is_made = not default.compare and not is_missing(make) and getattr(make, "__module__", "") != "builtins"
    return is_made or (hasattr(type(found), "__set__") and not isinstance(found, types.MemberDescriptorType))


def loaded_class(name: str) -> type | None:
    """Return the plain class that a reference names, if this process has loaded it; nothing is imported or called."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = _attributes(found).get(part)
    # A module may know a class under another name, as after `import ... as`; only its own name counts.
    if not isinstance(found, type) or reference(found) != name:
        return None
    return found if is_plain(found) else None


def _attributes(owner: Any) -> Mapping[str, Any]:
    # A module may import others when an attribute is read.
    if issubclass(type(owner), types.ModuleType):  # Others only claim to be modules, such as the libraries of cffi.
        return cast(Mapping[str, Any], object.__getattribute__(owner, "__dict__"))
    return vars(owner) if isinstance(owner, type) else {}


@record
class LoadedClasses:
    """The plain classes that the driver has loaded, for workers, which may lack their modules so far.

    Attributes:
        modules: the names of modules with plain classes.
        pickled: the plain classes of `__main__`, which no worker can import, by their references.
    """

    modules: frozenset[str]
    pickled: tuple[tuple[str, bytes], ...]

    def find(self, name: str) -> type | None:
        """Return the plain class that a reference names, if the driver has loaded it.

        Raises:
            ClassRefusedError: its module cannot be imported in this process.
        """
        for known, data in self.pickled:
            if known == name:
                found: type = pickle.loads(data)
                return found
        if name.partition(":")[0] not in self.modules:
            return None
        find(name)
        return loaded_class(name)


def loaded_classes() -> LoadedClasses:
    """Return the plain classes that this process has loaded."""
    of_main = list(_attributes(sys.modules.get("__main__")).values())
    pickled = ((reference(kind), _pickled(kind)) for kind in of_main if _is_defined_in(kind, "__main__"))
    return LoadedClasses(_modules(len(sys.modules)), tuple((name, data) for name, data in pickled if data is not None))


@functools.lru_cache(maxsize=1)
def _modules(loaded: int) -> frozenset[str]:
    """Return the modules that define plain classes; looked for again when more modules are loaded."""
    # A copy, since other threads may import modules meanwhile.
    modules = list(sys.modules.items())
    return frozenset(name for name, module in modules if _has_plain_classes(name, len(_attributes(module))))


def _is_defined_in(kind: Any, module: str) -> bool:
    return isinstance(kind, type) and kind.__module__ == module and is_plain(kind)


@functools.lru_cache(maxsize=8192)
def _has_plain_classes(name: str, attributes: int) -> bool:
    """Return whether a module with this number of attributes defines a plain class; counted again when it grows."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top in ("__main__", "__mp_main__") or is_our_name(name):
        return False
    return any(_is_defined_in(kind, name) for kind in list(_attributes(sys.modules.get(name)).values()))


@functools.lru_cache(maxsize=1024)
def _pickled(kind: type) -> bytes | None:
    try:
        return pickling.dumps(kind)
    except Exception:
        # Its methods use objects that cannot be pickled, such as a connection; the class is unknown there then.
        return None


Parts = tuple[bool, str, list[int], str, Any]
"""Whether it is a scalar; the dtype; the shape; the order, "C" or "F"; the bytes, or the str of a scalar."""

# `O` is missing: an array of objects would be a pickle.
_DTYPE = re.compile(r"[<>|](?:[biufc][0-9]{1,2}|[SU][1-9][0-9]{0,9}|[mM]8(?:\[[0-9]*[a-zA-Z]+\])?)")
_TEXTS = {"S": bytes, "U": str}


def is_of_numpy(value: Any) -> bool:
    """Return whether a value is an array or a scalar of NumPy, which is not imported for that."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def parts_of_numpy(value: Any) -> Parts | None:
    """Return the parts of a value of NumPy; None if its dtype has objects or fields, or its class adds attributes."""
    import numpy as np

    whole = slice(None)
    if type(value) is np.str_:  # An array would drop the zeros at its end, and so does `str`.
        return True, "U", [], "C", str.__getitem__(value, whole)
    if type(value) is np.bytes_:
        return True, "S", [], "C", bytes.__getitem__(value, whole)
    is_scalar = isinstance(value, np.generic)
    if not (is_scalar or type(value) is np.ndarray) or not _DTYPE.fullmatch(value.dtype.str) or value.dtype.names:
        return None
    array = np.asarray(value)
    order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return is_scalar, array.dtype.str, list(array.shape), order, array.tobytes(order)


def from_parts(is_scalar: Any, dtype: Any, shape: Any, order: Any, data: Any) -> Any:
    """Return the value from the result of `parts_of_numpy`.

    Raises:
        ClassRefusedError: NumPy is not installed.
        ValueError: these are no such parts.
    """
    try:
        import numpy as np
    except ImportError as error:
        raise ClassRefusedError(
            "the value is one of NumPy, which cannot be imported here: pip install numpy"
        ) from error
    if is_scalar is True and type(dtype) is str and dtype in _TEXTS and type(data) is _TEXTS[dtype]:
        return np.str_(data) if dtype == "U" else np.bytes_(data)
    if type(dtype) is not str or not _DTYPE.fullmatch(dtype) or type(data) is not bytes or order not in ("C", "F"):
        raise ValueError("no array of NumPy was stored there")
    kind = np.dtype(dtype)
    if type(shape) is not list or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("an array of NumPy was stored without its shape")
    # `np.ndarray` takes a buffer that is longer than the array.
    if math.prod(shape) * kind.itemsize != len(data):
        raise ValueError(f"an array of NumPy of the shape {tuple(shape)} was stored with {len(data):,} bytes")
    # A copy, since an array on foreign memory cannot grow, or be written.
    array = np.ndarray(tuple(shape), kind, data, order=order).copy(order="K")
    return array[()] if is_scalar is True else array
