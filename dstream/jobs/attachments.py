"""Files and modules that are attached to a job: checked at submission, copied to a separate folder."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from dstream.failures import shown
from dstream.values.attachments import GIVEN, NAMED, JobFiles, forget_modules, is_of_a_job

__all__ = ["check_files", "checked_modules", "gathered", "named_files", "removed"]


def named_files(given: Any) -> dict[str, str]:
    """Return the paths of files by their names, from `JobConfig(files=)`.

    Raises:
        TypeError: they are neither paths nor paths by names.
        ValueError: two have one name.
    """
    if isinstance(given, str | os.PathLike) or not isinstance(given, Iterable):
        raise TypeError(f"JobConfig: files must be a list of paths, or a dictionary of them, not {shown(given)}")
    pairs = list(given.items()) if isinstance(given, Mapping) else [(_last_part(path), path) for path in given]
    named: dict[str, str] = {}
    for name, path in pairs:
        if not isinstance(name, str) or not name:
            raise TypeError(f"JobConfig: the name of a file must be a text, not {shown(name)}")
        if name in named:
            raise ValueError(f"JobConfig: two files have the name {name!r}; a dictionary gives them others")
        named[name] = _path(path, "files")
    return named


def _last_part(path: Any) -> str:
    return Path(_path(path, "files")).name


def _path(path: Any, what: str) -> str:
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise TypeError(f"JobConfig: {what} must hold paths, not {shown(path)}")
    if not os.fspath(path):
        raise ValueError(f"JobConfig: {what} must hold paths, and one is empty")
    return os.path.abspath(path)


def checked_modules(given: Any) -> tuple[str, ...]:
    """Return names and absolute paths of modules, from `JobConfig(modules=)`.

    Raises:
        TypeError: they are no names, paths or modules.
        ValueError: a module of that name cannot travel.
    """
    if isinstance(given, str | os.PathLike | ModuleType) or not isinstance(given, Iterable):
        raise TypeError(f"JobConfig: modules must be a list of names or paths, not {shown(given)}")
    return tuple(map(_name_or_path, given))


_ARCHIVES = (".zip", ".whl")


def _name_or_path(given: Any) -> str:
    if isinstance(given, ModuleType):
        given = given.__name__
    if not isinstance(given, str) or os.sep in given or given.endswith((".py", *_ARCHIVES)):
        path = _path(given, "modules")
        if not path.endswith(_ARCHIVES):
            _check_name(Path(path).name.removesuffix(".py"))
        return path
    _check_name(given.partition(".")[0])
    return given


_NEVER = frozenset({"dstream", "collectors", "reducers", "sources", "pyspark", "py4j", *sys.stdlib_module_names})


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise ValueError(f"JobConfig: modules: {name!r} is no name of a module")
    if name in _NEVER:
        raise ValueError(f"JobConfig: modules: {name!r} is a module that workers have, and that no job replaces")


def check_files(files: Mapping[str, str] | None, modules: Iterable[str] | None) -> None:
    """Refuse missing files and modules, before the job is registered.

    Raises:
        FileNotFoundError: a file is missing.
        ModuleNotFoundError: a module is missing.
        ValueError: this process has loaded another module of that name.
    """
    for name, path in (files or {}).items():
        if not os.path.exists(path):
            raise FileNotFoundError(f"JobConfig: files: {name!r} is to be {path}, which is not there")
    for each in modules or ():
        if not os.path.isabs(each):
            list(_places(each))
        elif not os.path.exists(each):
            raise FileNotFoundError(f"JobConfig: modules: {each} is not there")
        elif each.endswith(_ARCHIVES) and not zipfile.is_zipfile(each):
            raise ValueError(f"JobConfig: modules: {each} is no zip file")
        elif not each.endswith(_ARCHIVES):
            _check_loaded(Path(each))


def _places(name: str) -> Iterator[Path]:
    """Yield the file or the folders of a module that this process can import, including its complete package."""
    top = name.partition(".")[0]
    try:
        spec = find_spec(top)
    # `find_spec` raises ValueError for a loaded module without a spec, such as `__main__` of a script.
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise ModuleNotFoundError(f"JobConfig: modules: there is no module {top!r} here", name=top)
    places = spec.submodule_search_locations or [spec.origin or ""]
    for place in places:
        if not os.path.exists(place):
            raise ValueError(f"JobConfig: modules: {top!r} has no file of its own: give the zip file as a path")
        yield Path(place)


def _check_loaded(path: Path) -> None:
    """Refuse a module of a name under which this process has loaded another one: a process has one of a name."""
    name = path.name.removesuffix(".py")
    loaded = getattr(sys.modules.get(name), "__file__", None)
    if loaded is None or not os.path.exists(loaded):
        return
    place = Path(loaded).parent if Path(loaded).name == "__init__.py" else Path(loaded)
    # A module that another job brought does not count: it is forgotten when this job begins.
    if not is_of_a_job(str(place.parent)) and _digest(place) != _digest(path):
        raise ValueError(f"JobConfig: modules: this process has loaded another module {name!r} than {path}: {loaded}")


def gathered(files: Mapping[str, str] | None, modules: Iterable[str] | None) -> JobFiles | None:
    """Copy the files of a job to a separate folder; None if it has none.

    Raises:
        OSError: a file cannot be read, or the disk is full.
        ValueError: two modules are the same file of their packages, with other contents.
    """
    if not files and not modules:
        return None
    folder = Path(tempfile.mkdtemp(prefix="dstream-job-"))
    # Before anything is copied: a program that ends meanwhile has to find the folder to remove.
    _gathered[str(folder)] = os.getpid()
    try:
        placed = _placed_files(folder, files or {})
        _place_modules(folder, modules or ())
        digests = {each.name.removesuffix(".py"): _digest(each) for each in _modules_in(folder / GIVEN)}
    except BaseException:
        _remove(str(folder))
        raise
    # A random part, since the system may use the name of a folder again that was removed.
    return JobFiles(f"{folder.name}-{uuid.uuid4().hex}", str(folder), placed, digests)


def removed(files: JobFiles | None) -> None:
    """Remove the copied files; a second call does nothing."""
    if files is not None:
        _remove(files.folder)
        forget_modules()


_gathered: dict[str, int] = {}
"""The existing folders, and the processes that made them: a fork of one ends without removing them."""


def _remove(folder: str) -> None:
    if _gathered.pop(folder, None) == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


@atexit.register
def _remove_all() -> None:
    for folder in list(_gathered):
        _remove(folder)


_FILES = "files"


def _placed_files(folder: Path, files: Mapping[str, str]) -> dict[str, str]:
    """Copy files and folders, each into a separate folder; their last parts are retained, since they may matter."""
    placed: dict[str, str] = {}
    for number, (name, path) in enumerate(files.items()):
        inside = Path(_FILES, str(number), Path(path).name or "root")
        _copy(Path(path), folder / inside)
        placed[name] = str(inside)
    return placed


def _place_modules(folder: Path, modules: Iterable[str]) -> None:
    for each in modules:
        if each.endswith(_ARCHIVES):
            # Inside of the folder of the job, so that it is removed with that if the program ends meanwhile.
            with zipfile.ZipFile(each) as archive, tempfile.TemporaryDirectory(dir=folder) as unpacked:
                archive.extractall(unpacked)
                for inside in Path(unpacked).iterdir():
                    _merge(inside, folder / GIVEN / inside.name)
            continue
        is_path = os.path.isabs(each)
        for place in [Path(each)] if is_path else _places(each):
            _merge(place, folder / (GIVEN if is_path else NAMED) / place.name)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


def _merge(source: Path, target: Path) -> None:
    """Copy a module, or merge the files of a package with the files of its other folders."""
    for file in _contents(source):
        inside = target / file.relative_to(source) if source.is_dir() else target
        if inside.exists() and inside.read_bytes() != file.read_bytes():
            raise ValueError(f"JobConfig: modules: two of them hold {inside.relative_to(target.parent)}, not the same")
        _copy(file, inside)


def _contents(place: Path) -> list[Path]:
    """Return the files of a package, or the file of a module."""
    if not place.is_dir():
        return [place]
    # Compiled files contain the times of their sources, so equal modules would differ by them.
    return sorted(file for file in place.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


def _modules_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _digest(place: Path) -> str:
    """Return a digest that differs for modules of different contents."""
    digest = hashlib.sha256()
    for file in _contents(place):
        inside = str(file.relative_to(place)) if place.is_dir() else ""
        content = file.read_bytes()
        # With the length: otherwise bytes could move from one file to the next without another digest.
        digest.update(f"{inside} {len(content)} ".encode() + content)
    return digest.hexdigest()
