"""A page that names a file, a module or an exception of ours names one that is there."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.util
import keyword
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("collectors", "dstream", "reducers", "sources")
PATH = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)`")
MODULE = re.compile(r"`([a-z][a-z_0-9]*[a-z0-9])`")
RAISES = re.compile(r"^( *)Raises:\n((?:\1 +.*\n|\n)+)", re.MULTILINE)
CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)
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


@functools.cache
def parsed(text: str) -> ast.Module:
    """Return the syntax of a module, which several tests look at."""
    return ast.parse(text)


def raised_names(text: str) -> Iterator[str]:
    """Give the names of exceptions that docstrings of a module have under `Raises:`."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = (ast.get_docstring(each) or "" for each in ast.walk(parsed(text)) if isinstance(each, documented))
    for _, section in (found for doc in docs for found in RAISES.findall(doc + "\n")):
        lines = [line for line in section.splitlines() if line]
        depth = min(len(line) - len(line.lstrip()) for line in lines)
        named = [line.strip() for line in lines if len(line) - len(line.lstrip()) == depth]
        yield from (name for line in named if not line.startswith("As ") for name in line.split(":")[0].split(", "))


def unknown_exceptions(text: str, known: set[str]) -> list[str]:
    """Return the names among these that are no class that is known or that the module imports, nor one of a package."""
    imports = [each for each in ast.walk(parsed(text)) if isinstance(each, ast.Import | ast.ImportFrom)]
    known = known | {name.asname or name.name for each in imports for name in each.names}
    return [
        name
        for name in raised_names(text)
        if name.split(".")[0] not in known and not ("." in name and importlib.util.find_spec(name.split(".")[0]))
    ]


def test_exceptions_that_docstrings_name_are_there():
    """A reader who catches one must find it."""
    texts = {path: path.read_text("utf-8") for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    known = {*dir(builtins), *(name for text in texts.values() for name in CLASS.findall(text))}
    wrong = {str(path.relative_to(ROOT)): unknown_exceptions(text, known) for path, text in texts.items()}

    assert sum(1 for text in texts.values() for _ in raised_names(text)) > 1000
    assert {page: names for page, names in wrong.items() if names} == {}


@pytest.mark.parametrize(("named", "missing"), [("Gone: why\n            it is.", ["Gone"]), ("ValueError: why", [])])
def test_an_exception_that_is_gone_is_missed(named: str, missing: list[str]):
    """Its first line alone begins with a name."""
    text = f'def fn():\n    """Do.\n\n    Raises:\n        As `other`.\n        {named}\n    """\n'

    assert unknown_exceptions(text, {"ValueError"}) == missing


def test_modules_that_a_module_names_are_there():
    """Names at the beginning of a module are those of modules, of something defined, or words of its own text."""
    texts = {path: path.read_text("utf-8") for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    known = {
        *dir(builtins),
        *keyword.kwlist,
        *_OF_SQLITE,
        *(name for path in texts for name in (path.stem, path.parent.name)),
    }
    known |= {name for text in texts.values() for name in DEFINED.findall(text)}
    wrong = {}
    for path, text in texts.items():
        doc = ast.get_docstring(parsed(text)) or ""
        words = set(re.findall(r"\w+", text.replace(doc, "", 1)))
        wrong[str(path.relative_to(ROOT))] = [name for name in MODULE.findall(doc) if name not in known | words]

    assert {page: names for page, names in wrong.items() if names} == {}


def unnamed_modules(package: Path) -> list[str]:
    """Return the modules and packages inside of a package that its docstring does not name."""
    doc = ast.get_docstring(parsed((package / "__init__.py").read_text("utf-8"))) or ""
    named = {name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)`", doc)}
    inside = {path.stem for path in package.glob("*.py")} | {path.parent.name for path in package.glob("*/__init__.py")}
    return sorted(inside - named - {"__init__"})


def test_packages_name_their_modules():
    """A reader finds each module from the page of its package."""
    packages = [path.parent for path in (ROOT / "dstream").rglob("__init__.py")]
    unnamed = {package.relative_to(ROOT).as_posix(): unnamed_modules(package) for package in packages}

    assert len(packages) > 40
    assert {package: modules for package, modules in unnamed.items() if modules} == {}


_OF_SQLITE = ("sqlite_schema", "typeof", "map_counts_7", "map_counts_7_journal")
"""Names that SQLite has itself, and those of tables in an example."""


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
