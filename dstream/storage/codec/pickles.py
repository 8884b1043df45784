"""`Pickles`: which pickled values, and which classes named by stored data, are loaded.

Unpickling runs code that whoever can write the store has chosen; `docs/security.md` tells users what to choose.
"""

from __future__ import annotations

import functools
import importlib
import io
import pickle
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dstream import pickling
from dstream.storage.codec.classes import ClassRefusedError, NotStorableError, find, reference
from dstream.storage.settings import PickleMode

__all__ = ["Pickles"]

_PLAIN = {
    "builtins": "bool bytearray bytes complex dict float frozenset int list object range set slice str tuple",
    "collections": "ChainMap Counter OrderedDict defaultdict deque",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "dstream.pickling": "read_only",  # what `to_unmodifiable_map` makes
    "fractions": "Fraction",
    "pathlib": "PurePath PurePosixPath PureWindowsPath",
    "pathlib._local": "PurePath PurePosixPath PureWindowsPath",  # as Python 3.13 names them
    "uuid": "SafeUUID UUID",
}
"""What restricted mode loads besides `allowed`: what makes values, such as classes, and has no other effect."""

_PLAIN_CLASSES = frozenset((module, name) for module, names in _PLAIN.items() for name in names.split())
_BUILD = pickle.BUILD


@dataclass(frozen=True, slots=True)
class Pickles:
    """A policy for what is loaded by name.

    Attributes:
        mode: `"trusted"` loads everything, `"restricted"` plain types and `allowed`, `"never"` no pickle at all.
        allowed: classes whose instances may be loaded in every mode by reference, and in restricted mode by pickle.
    """

    mode: PickleMode = "restricted"
    allowed: tuple[type, ...] = ()

    def allowing(self, *classes: type) -> Pickles:
        """Return the same policy that also allows `classes`."""
        new = tuple(dict.fromkeys(kind for kind in classes if kind not in self.allowed))
        # The last one of a name counts: in a notebook a class is defined again and again.
        return replace(self, allowed=self.allowed + new) if new else self

    def dump(self, value: Any) -> bytes:
        """Pickle a value.

        Raises:
            TypeError: the value cannot be pickled, or would not be loaded again in this mode.
        """
        if self.mode == "never":
            raise ClassRefusedError(f"a {_named(type(value))} has to be pickled, and {_advice(self.mode)}")
        try:
            data = pickling.dumps(value) if self.mode == "trusted" else pickle.dumps(value, protocol=5)
        except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
            raise NotStorableError(
                f"a {_named(type(value))} cannot be stored: {error}; store plain values that you take out of it"
            ) from error
        if self.mode == "restricted":
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
        # Only the slow unpickler, written in Python, can refuse BUILD on a class; it is used where BUILD may be.
        unpickler = _CarefulUnpickler if _BUILD in data else _RestrictedUnpickler
        return unpickler(io.BytesIO(data), self).load()

    def resolve(self, reference: str) -> type:
        """Return the class that `reference` ("module:qualname") names.

        Raises:
            TypeError: there is none, or the mode does not allow to load it.
        """
        known = _by_reference(self.allowed).get(reference)
        if known is not None:
            return known
        if self.mode == "trusted":
            return find(reference)
        raise ClassRefusedError(f"the class {reference} is not loaded: {_advice(self.mode)}")

    def knows(self, kind: type) -> bool:
        """Say whether another process with this policy finds `kind` by its reference."""
        if _by_reference(self.allowed).get(reference(kind)) is kind:
            return True
        if self.mode != "trusted" or kind.__module__ == "__main__":
            return False
        try:
            return find(reference(kind)) is kind
        except ClassRefusedError:
            return False


class _Restricted:
    """Loads classes of the list above and of `allowed`, and nothing else."""

    def __init__(self, file: io.BytesIO, pickles: Pickles) -> None:
        super().__init__(file)  # type: ignore[call-arg]
        self._pickles = pickles

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN_CLASSES:
            # Every Python finds the classes of paths here, also where 3.13 pickled them.
            return getattr(importlib.import_module(module.removesuffix("._local")), name)
        known = _by_reference(self._pickles.allowed).get(f"{module}:{name}")
        if known is None:
            raise ClassRefusedError(f"{module}:{name} is not loaded from a pickle: {_advice('restricted')}")
        return known


class _RestrictedUnpickler(_Restricted, pickle.Unpickler):
    pass


class _CarefulUnpickler(_Restricted, pickle._Unpickler):
    """Refuses to set attributes of a class, which would change it for the whole process."""

    dispatch: ClassVar[Any] = dict(pickle._Unpickler.dispatch)

    def load_build(self) -> None:
        built = self.stack[-2]  # type: ignore[attr-defined]
        if isinstance(built, type):
            raise ClassRefusedError(f"a pickle would change {built!r}, which is no value")
        super().load_build()  # type: ignore[misc]

    dispatch[_BUILD[0]] = load_build


@functools.lru_cache(maxsize=256)
def _by_reference(classes: tuple[type, ...]) -> dict[str, type]:
    return {reference(kind): kind for kind in classes}


def _advice(mode: PickleMode) -> str:
    return (
        f"the storage was connected with pickle={mode!r}; name the class as value_type= or key_type= or "
        "in connect(allowed=[...]), or, if only you can write the store, "
        'use connect(pickle="trusted") (`dstream docs security` says more)'
    )


def _named(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
