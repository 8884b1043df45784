"""What pip installs is `dstream-spark`; a package of another author has the name `dstream`.

Each line for pip in the packages, the pages, the samples and the messages names the distribution of `pyproject.toml`,
and extras that it has.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dstream as ds
from dstream.base.environment import DISTRIBUTION, VERSION, pip_install

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
FILES = sorted(
    path
    for top in ("collectors", "docs", "dstream", "reducers", "sources", "README.md", "CHANGELOG.md", "pyproject.toml")
    for path in [ROOT / top, *(ROOT / top).rglob("*")]
    if path.suffix in (".md", ".py", ".toml")
)
PIP_LINE = re.compile(r"""(?:pip3? install|uv (?:add|pip install)|pip_install)[ (](?:-\S+ )*(['"]?)([^\s`)'"]+)""")
"""A line for pip, and a call that makes one: the quote, and the requirement that is behind it."""
OTHER_REQUIREMENT = re.compile(r"\.|\{wanted\}|[\w-]*(?<!dstream)(\[[\w,-]+\])?", re.ASCII)
"""The folder of a checkout, what `doctor` found to be missing, and other packages."""


def faults(text):
    """Return each line for pip in `text` that would install something else, or would not reach pip."""
    for line in PIP_LINE.finditer(text):
        quote, requirement = line[1], line[2]
        name, _, extras = requirement.rstrip("]").partition("[")
        if line[0].startswith("pip_install"):
            is_right = requirement in EXTRAS or not quote
        elif "dstream" in name.lower() and not name.startswith("{"):
            is_right = name == DISTRIBUTION and set(filter(None, extras.split(","))) <= EXTRAS and (quote or not extras)
        else:
            is_right = OTHER_REQUIREMENT.fullmatch(requirement) or "{" in requirement
        if not is_right:
            yield line[0]


def test_the_constants_are_those_of_the_project_file():
    """One name and one version, also for `dstream.__version__` and for the extras of the project itself."""
    assert (DISTRIBUTION, VERSION, ds.__version__) == (PROJECT["name"], PROJECT["version"], PROJECT["version"])
    own = [need for needs in PROJECT["optional-dependencies"].values() for need in needs if "dstream" in need]

    assert own
    assert all(need.startswith(f"{DISTRIBUTION}[") for need in own)


def test_each_line_for_pip_installs_this_project():
    """Under its own name, with extras that it has, and quoted where there are brackets."""
    found = {str(path.relative_to(ROOT)): list(faults(path.read_text("utf-8"))) for path in FILES}

    assert len(found) > 500
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    ["pip install dstream", "pip install 'dstream[sql]'", "pip install DStream", "pip install dstream-spark[sql]"]
    + [
        "pip install 'dstream-spark[sequel]'",
        "pip_install('sequel')",
        "uv add dstream",
        "pip install -U 'dstream[sql]'",
    ],
)
def test_a_line_that_installs_something_else_is_found(line):
    """The name of the other project, an extra that is not there, and brackets that zsh would read."""
    assert list(faults(f"It needs `{line}`, then."))


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_the_line_for_pip_names_an_extra(extra):
    """The function that messages call makes a line that the test above takes."""
    assert list(faults(pip_install(extra))) == []


def test_the_version_costs_no_import():
    """`import dstream` reads no metadata of installed packages."""
    code = "import sys, dstream; print(dstream.__version__, 'importlib.metadata' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert run.stdout == f"{VERSION} False\n"
