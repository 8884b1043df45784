"""A page that names a file or a module of ours names one that is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("collectors", "dstream", "reducers", "sources")
PATH = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)`")
MODULE = re.compile(r"`([a-z][a-z_0-9]*[a-z0-9])`")
DEFINED = re.compile(r"^ *(?:def|class) (\w+)", re.MULTILINE)
IMPORT = re.compile(r"^ *from (dstream(?:\.\w+)*) import (\([^)]*\)|[^#\n]*)", re.MULTILINE)
PATCHED = re.compile(r"setattr\(\s*\"(dstream(?:\.[a-z_]+)+)\.\w+\"")


def missing_files(text: str) -> list[str]:
    """Return the paths in a page at which there is nothing, from the root on or from `dstream` on."""
    return [path for path in PATH.findall(text) if not any((ROOT / top / path).exists() for top in ("", "dstream"))]


def test_files_that_pages_name_are_there():
    """Decisions too, which outlive the files that they were written for."""
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    wrong = {str(page.relative_to(ROOT)): missing_files(page.read_text("utf-8")) for page in pages}

    assert sum(len(PATH.findall(page.read_text("utf-8"))) for page in pages) > 50
    assert {page: paths for page, paths in wrong.items() if paths} == {}


def test_modules_that_a_package_names_are_there():
    """Its page is where readers begin. What it names is a module, or something that it defines."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    modules = {name for path in files for name in (path.stem, path.parent.name)}
    wrong = {}
    for page in (path for path in files if path.name == "__init__.py"):
        named = MODULE.findall(ast.get_docstring(ast.parse(page.read_text("utf-8"))) or "")
        inside = [path.read_text("utf-8") for path in files if path.is_relative_to(page.parent)]
        known = modules | {name for text in inside for name in DEFINED.findall(text)}
        wrong[str(page.relative_to(ROOT))] = [name for name in named if name not in known]

    assert {page: names for page, names in wrong.items() if names} == {}


def missing_imports(text: str) -> list[str]:
    """Return what a test imports or replaces by name in our modules, and is not there."""
    imported = [
        (module, name.split()[0])
        for module, names in IMPORT.findall(text)
        for name in names.strip("()\n ").split(",")
        if name.strip()
    ]
    patched = [module.rpartition(".")[::2] for module in PATCHED.findall(text)]
    return [f"{module}.{name}" for module, name in [*imported, *patched] if not _is_there(module, name)]


def _is_there(module: str, name: str) -> bool:
    place = ROOT / module.replace(".", "/")
    if (place / name).is_dir() or (place / f"{name}.py").exists():
        return True
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return file.exists() and re.search(rf"\b{name}\b", file.read_text("utf-8")) is not None


def test_modules_that_tests_import_are_there():
    """A test outside of the ones that are run after a move would fail at its import."""
    texts = {path: path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)}
    wrong = {str(path.relative_to(ROOT)): missing_imports(text) for path, text in texts.items()}

    assert {path: names for path, names in wrong.items() if names} == {}


def test_a_module_that_is_gone_is_missed():
    """Whether it is imported or replaced."""
    assert missing_imports("from dstream.plan import (\n    rewrite,\n    gone,\n)") == ["dstream.plan.gone"]
    assert missing_imports("from dstream.gone import rewrite as again  # why") == ["dstream.gone.rewrite"]
    assert missing_imports('setattr("dstream.plan.gone.name", 1)') == ["dstream.plan.gone"]
