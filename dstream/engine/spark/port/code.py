"""Code of the driver on the workers of a cluster, which have no access to the driver's folders.

dstream, its short names and the user's own modules are sent as zip files. Packages that are installed on the driver
(the standard library, site-packages) must be installed on the workers too.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from types import ModuleType

from dstream.base.threads import RenewedLock, in_this_process
from dstream.failures import is_installed
from dstream.values.attachments import is_of_a_job

__all__ = ["Code"]


_OURS = ("dstream", "collectors", "reducers", "sources")
_HOME = Path(__file__).parents[4]
_NEVER = frozenset({"__main__", "__mp_main__", "pyspark", "py4j"})
_LARGEST_FILE = 2**20
"""A larger file inside a user's package is data; zip files are for code and small resources."""


class Code:
    """Sends modules to the workers of one Spark session, each top-level module or package once and whole.

    Args:
        send: adds a zip file to what workers import from.
    """

    def __init__(self, send: Callable[[str], object]) -> None:
        self._send_file = send
        self._known: set[str] = set(_NEVER)
        self._zips = 0
        self._lock = RenewedLock()
        self._folder: Path | None = None

    def of_clone(self, send: Callable[[str], object]) -> Code:
        """Return a sender of modules to the workers of a clone of the session, which has all modules sent so far."""
        code = Code(send)
        with self._lock:
            code._known = set(self._known)
        return code

    def ship(self) -> None:
        """Send the modules imported since the last call; to be called before a stage is defined.

        What another thread is sending has arrived, too, when this returns.
        """
        with self._lock:
            self._ship()

    def _ship(self) -> None:
        # Workers get all four of ours, loaded or not: one of another release there would not fit the others.
        ours = (name for name in _OURS if name not in self._known and _is_ours(name))
        names = {*ours, *(name.partition(".")[0] for name in list(sys.modules))} - self._known
        # A package without an `__init__.py` may be found twice in one folder.
        paths = list(dict.fromkeys(path for name in sorted(names) for path in _places(name)))
        if paths:
            self._send(paths)
        self._known |= names

    def _send(self, paths: list[Path]) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="dstream-code-"))
            atexit.register(in_this_process(shutil.rmtree, self._folder, ignore_errors=True))
        self._zips += 1
        # Spark stores files by name: two contexts of one session must not share one.
        archive = self._folder / f"{self._folder.name}-{self._zips}.zip"
        _write(archive, paths)
        search_path = list(sys.path)
        self._send_file(str(archive))
        # A classic session puts the zip before the driver's own folders, where it would hide what the user edits (4.3).
        sys.path[:] = search_path


def _places(name: str) -> Iterator[Path]:
    """Yield the file or the folders of a top-level module that workers lack."""
    module = sys.modules.get(name)
    if name in _OURS and _is_ours(name):
        yield _home() / name
    elif isinstance(module, ModuleType):
        yield from (path for path in _files(module) if path.exists() and _is_of_the_user(path))


def _is_ours(name: str) -> bool:
    """Return whether Python finds our package by this name: a file of the user's may have a short name."""
    module = sys.modules.get(name)
    file = getattr(find_spec(name), "origin", None) if module is None else getattr(module, "__file__", None)
    return file is not None and os.path.realpath(file) == os.path.realpath(_HOME / name / "__init__.py")


def _home() -> Path:
    """Return the folder of the four packages."""
    return _unpacked(_HOME)


@functools.cache
def _unpacked(home: Path) -> Path:
    """Return the folder of the four packages; they are unpacked once, where they were imported from a wheel or a zip.

    Spark sends a wheel of `--py-files` to the workers, and does not put it where they import from (4.3).
    """
    archive = next((path for path in (home, *home.parents) if path.is_file()), None)
    if archive is None:
        return home
    folder = Path(tempfile.mkdtemp(prefix="dstream-code-"))
    atexit.register(in_this_process(shutil.rmtree, folder, ignore_errors=True))
    inside = home.relative_to(archive)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder, [name for name in packed.namelist() if _top(name, inside) in _OURS])
    return folder / inside


def _top(name: str, folder: Path) -> str:
    path = PurePosixPath(name)
    return path.relative_to(folder.as_posix()).parts[0] if path.is_relative_to(folder.as_posix()) else ""


def _files(module: ModuleType) -> Iterator[Path]:
    if hasattr(module, "__path__"):
        yield from (Path(os.path.abspath(entry)) for entry in module.__path__)
    elif str(getattr(module, "__file__", None)).endswith(".py"):
        yield Path(os.path.abspath(str(module.__file__)))


def _is_of_the_user(path: Path) -> bool:
    """Return whether `path` is in a folder of the search path, and is neither installed nor of one job alone."""
    folder = str(path.parent)
    return not is_installed(str(path)) and folder in map(os.path.abspath, sys.path) and not is_of_a_job(folder)


def _write(archive: Path, paths: list[Path]) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as target:
        for name, file in _files_by_name(paths).items():
            target.write(file, name)


def _files_by_name(paths: list[Path]) -> dict[Path, Path]:
    """Return the file of each name in the archive: a package may have one twice, and Python imports the first."""
    files: dict[Path, Path] = {}
    for path in paths:
        for file in sorted(_contents(path)):
            files.setdefault(file.relative_to(path.parent), file)
    return files


def _contents(path: Path) -> Iterator[Path]:
    """Yield the files of a package, without caches, hidden folders and data; or the one file of a module."""
    folders = [path]
    while folders:
        current = folders.pop()
        if current == _home() / "dstream" / "docs":
            continue  # The pages of an installed dstream: no worker reads them.
        if current.is_dir():
            if not _leads_back(current):
                folders += (entry for entry in current.iterdir() if not entry.name.startswith((".", "__pycache__")))
        # A broken link is no file.
        elif current.is_file() and (current.suffix == ".py" or current.stat().st_size <= _LARGEST_FILE):
            yield current


def _leads_back(folder: Path) -> bool:
    """Return whether a folder is a link to one that it lies in, which would have it again, and so on."""
    return folder.is_symlink() and folder.resolve() in (above.resolve() for above in folder.parents)
