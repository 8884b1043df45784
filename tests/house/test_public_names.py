"""Public names and their signatures stay: each change of one shows as a line of `public_names.txt` in its diff.

`python -m tests.house.test_public_names` writes the file anew. What is removed or changed in it breaks users' programs:
it is deprecated first, with a warning that names what to write in its place.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STORED = Path(__file__).with_name("public_names.txt")

PACKAGES = (
    *("dstream", "collectors", "reducers", "sources", "dstream.core", "dstream.core.processors", "dstream.errors"),
    *("dstream.failures", "dstream.gatherers", "dstream.jobs", "dstream.keys", "dstream.pipeline", "dstream.session"),
    *("dstream.spi", "dstream.stream", "dstream.testing", "dstream.values", "dstream.windows"),
)
"""A class that several of them offer has its attributes at the first of these."""

OURS = {"collectors", "reducers", "sources", "dstream"}


def lines() -> list[str]:
    """Return a line for each public name, and for each public attribute of a public class."""
    seen: set[type] = set()
    return sorted(line for package in PACKAGES for line in lines_of(package, seen))


def lines_of(package: str, seen: set[type]) -> Iterator[str]:
    """Give the lines of one package; `seen` are the classes whose attributes have lines."""
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", ()):
        found = getattr(module, name)
        yield f"{package}.{name}{shown(found)}"
        if inspect.isclass(found) and found not in seen:
            seen.add(found)
            for attribute in sorted({each for kind in ours_of(found) for each in vars(kind) if each[0] != "_"}):
                yield f"{package}.{name}.{attribute}{shown(inspect.getattr_static(found, attribute))}"


def ours_of(kind: type) -> list[type]:
    """Return a class and its bases, without those of Python, which differ between versions."""
    return [each for each in kind.__mro__ if is_ours(each)]


def is_ours(found: Any) -> bool:
    """Say whether a class or a function is written here, rather than inherited from Python."""
    return (getattr(found, "__module__", None) or "").partition(".")[0] in OURS


def shown(found: Any) -> str:
    """Return the signature of a function, of what makes a class, or nothing for any other value."""
    if isinstance(found, property):
        return f" -> {found.fget.__annotations__.get('return')}"
    if isinstance(found, staticmethod | classmethod):
        kind = "staticmethod" if isinstance(found, staticmethod) else "classmethod"
        return f": {kind} {written(inspect.signature(found.__func__))}"
    if inspect.isclass(found):
        return written(inspect.signature(found.__init__)) if is_ours(inspect.unwrap(found.__init__)) else ""
    return written(inspect.signature(found)) if inspect.isfunction(found) else ""


def written(signature: inspect.Signature) -> str:
    """Return a signature as it is written: defaults without addresses, annotations without modules and quotes.

    Without the type of `self` too, by which type checkers refuse a method on some types of items.
    """
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name == "self":
        parameters[0] = parameters[0].replace(annotation=inspect.Parameter.empty)
    text = str(signature.replace(parameters=parameters))
    text = re.sub(r"(: |-> )(?:'([^']*)'|\"([^\"]*)\")", r"\1\2\3", text)
    return re.sub(r" at 0x[0-9a-f]+|\b(?:dstream|sources|reducers|collectors)(?:\.\w+)+\.", "", text)


def test_public_names_and_signatures_are_those_stored():
    """A name that is gone, new, or takes something else needs a line of the stored file."""
    assert "\n".join(lines()) == STORED.read_text().rstrip("\n")


def test_stored_names_are_sorted():
    """So that a new name is one line of a diff."""
    stored = STORED.read_text().splitlines()

    assert stored == sorted(set(stored))


if __name__ == "__main__":
    STORED.write_text("\n".join(lines()) + "\n")
