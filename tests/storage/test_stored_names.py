"""Stored data name what is ours by the names of one registry, so that a move of a module breaks nothing."""

from __future__ import annotations

import os
import pickletools
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

import dstream as ds
from dstream.base.pickling import dumps_named
from dstream.base.registry import NAMES, by_name, reduced_to_name, stored_name
from dstream.schema.classes import ClassRefusedError, reference
from dstream.storage.codec.pickles import Pickles, for_state
from tests.storage.programs_of_moves import VALUES

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs_of_moves.py")
GOLDEN = Path(__file__).with_name("stored_names.txt")
LOADER = ("dstream.base.registry", "by_name")
"""The only global of ours that a stored pickle contains. It never moves."""
_OURS = re.compile(rb"(?:collectors|dstream|reducers|sources)\.[a-z_]+[a-z_.]*")


def test_stored_names_stay():
    """What was stored has them: a name may be added here, and none changed or removed, whatever becomes of modules."""
    assert "".join(f"{name}\n" for name in sorted(NAMES)) == GOLDEN.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_stored_names_find_what_they_name(name):
    """Both ways: a thing that has moved without its location here would be stored by its module."""
    found = by_name(name)

    assert stored_name(found) == name
    assert reduced_to_name(found) == (by_name, (name,))
    assert f"{found.__module__}:{found.__qualname__}" == NAMES[name]


def test_names_of_classes_in_types_and_keys():
    """Other classes are found by their modules."""
    assert (reference(ds.Entry), reference(Path)) == ("dstream:Entry", f"{Path.__module__}:Path")


def globals_of(data: bytes) -> set[tuple[str, str]]:
    """Return what a pickle imports."""
    found, texts = set(), []
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "STACK_GLOBAL":
            found.add((texts[-2], texts[-1]))
        elif isinstance(argument, str):
            texts.append(argument)
    return found


@pytest.mark.parametrize("mode", ["trusted", "restricted"])
def test_pickles_in_storages_import_one_thing_of_ours(mode):
    """The rest of them names the rest."""
    pickles = for_state(Pickles(mode))

    for value in (VALUES, by_name("lag-policy")(5), by_name("ExactSum")(), by_name("dumped-keys")):
        data = pickles.dump(value)
        assert {module for module, _ in globals_of(data)} & {*sys.modules} >= {LOADER[0]}
        assert {each for each in globals_of(data) if each[0].partition(".")[0] == "dstream"} == {LOADER}
        assert pickles.load(data) == value or not isinstance(value, dict)


def test_pickles_by_value_import_one_thing_of_ours():
    """Also what makes functions and classes that no other process knows."""

    class Local:
        pass

    data = dumps_named([MappingProxyType({"a": ds.Entry(1, 2)}), lambda: ds.Optional, Local()])

    assert _OURS.findall(data) == [b"dstream.base.registry"] * data.count(b"by_name")


def test_a_name_of_another_version_is_refused():
    """In one sentence, not as a damaged value."""
    data = dumps_named(ds.Entry(1, 2)).replace(b"Entry", b"Entrx")

    with pytest.raises(ClassRefusedError, match="under the name 'Entrx'; another version has written it"):
        Pickles("trusted").load(data)
    with pytest.raises(ClassRefusedError, match="dstream:Entrx is not loaded"):
        Pickles("restricted").load(data)


@pytest.mark.parametrize("name", ["cached-function", "lag-policy", "", 5])
def test_restricted_pickles_reach_only_values(name):
    """Not what makes functions, and the classes of state only where state is loaded."""
    data = b"\x80\x05" + b"".join(pickled(each) for each in LOADER) + b"\x93" + pickled(name) + b"\x85R."

    with pytest.raises(ClassRefusedError, match="is not loaded"):
        Pickles("restricted").load(data)


def pickled(name: object) -> bytes:
    """Return how a pickle pushes a name."""
    return b"K\x05" if name == 5 else b"\x8c" + bytes([len(str(name))]) + str(name).encode()


MOVED = sorted({location.partition(":")[0] for location in NAMES.values()})


@pytest.fixture(scope="module")
def moved_tree(tmp_path_factory):
    """A copy of all packages in which each module that is in the registry has another name."""
    root = tmp_path_factory.mktemp("moved")
    for package in ("collectors", "dstream", "reducers", "sources"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    names = re.compile(rf"\b(?:{'|'.join(re.escape(name) for name in MOVED)})\b")
    parts = [name.rpartition(".") for name in MOVED]
    imports = re.compile(
        "|".join(rf"from {package} import {name}(?= as |$)" for package, _, name in parts), re.MULTILINE
    )
    for path in root.rglob("*.py"):
        text = path.read_text()
        if names.search(text) or imports.search(text):
            text = names.sub(lambda found: f"{found[0]}_moved", text)
            path.write_text(imports.sub(imported_as, text))
    for name in MOVED:
        path = root / f"{name.replace('.', '/')}.py"
        path.rename(path.with_stem(f"{path.stem}_moved"))
    return root


def imported_as(found: re.Match[str]) -> str:
    """Return the import of a module that has moved, under the name that it had."""
    is_named = found.string[found.end() :].startswith(" as ")
    return f"{found[0]}_moved" if is_named else f"{found[0]}_moved as {found[0].rpartition(' ')[2]}"


def run(tree: Path, *arguments: str) -> None:
    """Run the program with one tree of modules."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DSTREAM_", "PYSPARK_"))}
    environment = {**kept, "PYTHONPATH": f"{tree}{os.pathsep}{ROOT}"}
    command = [sys.executable, str(PROGRAM), *arguments]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr[-3000:]


@pytest.mark.parametrize("url", ["sqlite:{}.db", "{}"], ids=["sqlite", "lake"])
def test_moved_modules_open_what_was_written_before(moved_tree, tmp_path, url):
    """Collections, a job with state, and a snapshot; in the mode first that may load no more than it has to."""
    places = [f"{mode}@{url.format(tmp_path / mode)}" for mode in ("restricted", "trusted")]
    run(ROOT, "write", *places)
    run(moved_tree, "read", *places)
