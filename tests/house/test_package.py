"""The wheel and the source distribution hold what a user needs, and nothing else."""

from __future__ import annotations

import email
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"collectors", "dstream", "reducers", "sources"}
PLUGIN = "pytest_dstream.py"
"""What pytest loads: it leaves `dstream.testing` for a place where it is imported without `dstream`."""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """Build both, the wheel from the source distribution as an installer would."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(distributions):
    """The wheel, open."""
    with zipfile.ZipFile(next(distributions.glob("*.whl"))) as archive:
        yield archive


@pytest.fixture(scope="module")
def sdist_files(distributions):
    """The files of the source distribution, below its own folder."""
    with tarfile.open(next(distributions.glob("*.tar.gz"))) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def source_files():
    """Every file of the four packages, as Git would see them."""
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*"))
    return {str(path.relative_to(ROOT)) for path in paths if path.is_file() and "__pycache__" not in path.parts}


def doc_files():
    """Every file of the documentation, as Git would see them."""
    paths = (path for path in (ROOT / "docs").rglob("*") if "__pycache__" not in path.parts)
    return {str(path.relative_to(ROOT)) for path in paths if path.is_file()}


def test_wheel_holds_the_four_packages_the_pages_and_nothing_else(wheel):
    """Every module and `py.typed` is in, and `dstream docs` finds its pages; tests are not."""
    files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    pages = {f"dstream/{path}" for path in doc_files()}

    assert files == source_files() - {f"dstream/testing/{PLUGIN}"} | {PLUGIN} | pages


def test_a_zipped_wheel_shows_its_pages(distributions):
    """As where Spark puts the wheel itself on the path of Python."""
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from dstream.command import main; main()"
    command = [sys.executable, "-c", code, next(distributions.glob("*.whl")), "docs"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=distributions)

    assert "how-to/read-files                   Read files\n" in run.stdout
    assert run.stdout.rstrip("/\n").endswith(".whl/dstream/docs")


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_wheel_marks_each_package_as_typed(wheel, package):
    """A user's type checker reads our annotations."""
    assert f"{package}/py.typed" in wheel.namelist()


def test_sdist_holds_the_packages_and_the_papers(sdist_files):
    """One can build from it: sources, pages, project file, README, license, changelog."""
    papers = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO", ".gitignore"}

    assert sdist_files == source_files() | doc_files() | papers


def test_wheel_metadata_says_what_the_project_file_says(wheel):
    """Name, version, license and Python are declared, and the run-time dependencies need no extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folder = f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata = email.message_from_bytes(wheel.read(f"{folder}/METADATA"))
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]

    assert (metadata["Name"], metadata["Version"]) == (project["name"], project["version"])
    assert (metadata["License-Expression"], metadata["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert len(required) == len(project["dependencies"])


def test_wheel_tells_pytest_of_its_plugin(wheel):
    """The entry point names the module beside the packages, which is the one in `dstream.testing`."""
    points = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))

    assert "[pytest11]\ndstream = pytest_dstream\n" in wheel.read(points).decode()
    assert wheel.read(PLUGIN) == (ROOT / "dstream" / "testing" / PLUGIN).read_bytes()


def test_wheel_carries_the_license(wheel):
    """The full text travels with the code."""
    license_file = next(name for name in wheel.namelist() if name.endswith("licenses/LICENSE"))

    assert wheel.read(license_file) == (ROOT / "LICENSE").read_bytes()
