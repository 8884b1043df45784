"""Smoke tests come from all rooms, and run on the Pythons that are installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
APART = {
    "connect": "needs packages that only the whole suite installs",
    "differential": "takes long",
    "gatherers": "takes long",
    "house": "is about files, which are the same on every Python",
    "mistakes": "takes long",
    "notebook": "needs packages that only the whole suite installs",
    "system": "starts clusters",
}
"""Rooms without smoke tests, and why."""


def test_each_room_has_smoke_tests():
    """A room is a folder of tests; the list names files that exist."""
    named = (ROOT / "tests/smoke.txt").read_text().split()
    rooms = {path.relative_to(ROOT).parts[1] for path in ROOT.glob("tests/*/**/test_*.py")}

    assert [name for name in named if not (ROOT / name).is_file()] == []
    assert {name.split("/")[1] for name in named} == rooms - set(APART)


def test_pythons_that_cannot_make_an_environment_are_left_out(tmp_path):
    """The name in `PATH` may be one of pyenv's that leads nowhere; then the next place is looked at."""
    kept = tmp_path / "versions/3.12.9/bin"
    kept.mkdir(parents=True)
    for path, status in ((tmp_path / "python3.12", 1), (kept / "python", 0), (tmp_path / "python3.13", 1)):
        path.write_text(f"#!/bin/sh\nexit {status}\n")
        path.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYENV_ROOT": str(tmp_path), "HOME": str(tmp_path)}

    run = subprocess.run([ROOT / ".ci/pythons"], env=environment, capture_output=True, text=True, check=True)
    found = [line for line in run.stdout.splitlines() if line.startswith(("3.12", "3.13"))]

    assert found == [f"3.12 {kept}/python"]


def chosen(tmp_path, *named, **statuses):
    """Run what chooses the Python of an environment, where some are there that can make one (0) or cannot (1)."""
    for name in ("python3", *(f"python3.{minor}" for minor in range(11, 15))):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\nexit {statuses.get(name.replace('.', '_'), 1)}\n")
        path.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYENV_ROOT": str(tmp_path), "HOME": str(tmp_path)}
    run = subprocess.run([ROOT / ".ci/python", *named], env=environment, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout.strip(), run.stderr


def test_the_python_of_an_environment_is_one_that_will_do(tmp_path):
    """`python3` where it is new enough, else one that is installed beside it, as on a system whose own is older."""
    assert chosen(tmp_path, python3=0, python3_12=0)[:2] == (0, "python3")
    assert chosen(tmp_path, "python3", python3_12=0, python3_13=0)[:2] == (0, f"{tmp_path}/python3.12")


def test_without_a_python_that_will_do_one_line_says_so(tmp_path):
    """Also where the one that is named will not do; another one does not take its place."""
    for named in ([], ["python3.13"]):
        status, output, error = chosen(tmp_path, *named, python3_12=int(not named))

        assert (status, output) == (1, "")
        assert error.count("\n") == 1
        assert "Python 3.11 or newer" in error
