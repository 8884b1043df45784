"""Discovery of files by path, folder, glob or URL.

A path is a local path, a local glob, a directory, or any URL that fsspec supports. `find_files` runs in the caller when
a terminal operation starts.
"""

from __future__ import annotations

import codecs
import contextlib
import fnmatch
import itertools
import json
import os
import reprlib
import stat
from collections.abc import Iterable, Iterator
from typing import Any

from dstream.base.urls import Paths, has_reference, resolved_url, shown_url
from dstream.errors import SourceError
from dstream.filesystem.access import File, ReferredFiles, raw, reading
from dstream.filesystem.urls import URL, check_scheme, opened_url
from dstream.values.user_functions import shown_function

__all__ = ["find_files", "path_list", "within", "written_call"]


_SHORT = reprlib.Repr()
_SHORT.maxstring, _SHORT.maxlist, _SHORT.maxtuple = 80, 3, 3


def path_list(*given: Paths) -> tuple[str, ...]:
    """Return the paths of a source, each argument one or several, as strings that are not yet resolved.

    Raises:
        TypeError: a path is neither a str nor an `os.PathLike` of one, or it is the name of an encoding.
        ValueError: there are no paths, a path is empty, or it is a URL that fsspec does not support.
        SetupError: the package that fsspec needs for a URL is not installed.
    """
    for path in given[1:]:
        _refuse_encoding(path)
    names = tuple(map(_text, itertools.chain.from_iterable(map(_each, given))))
    if not all(names):
        raise ValueError("a path is empty")
    if not names:
        raise ValueError("paths is empty: name at least one file, directory or glob")
    for scheme in sorted({scheme for name in names if URL.match(name) for scheme in _schemes(name)}):
        check_scheme(scheme, "nothing here reads")
    return names


def _schemes(url: str) -> list[str]:
    """Return the schemes of a chained URL: `zip://a.txt::s3://bucket/b.zip`."""
    return [scheme for link in url.split("::") for scheme, mark, _ in [link.partition("://")] if mark]


def _refuse_encoding(path: Paths) -> None:
    """Refuse an encoding among the paths, unless there is a file of that name."""
    if not isinstance(path, str) or os.path.exists(path):
        return
    with contextlib.suppress(LookupError, ValueError):
        codecs.lookup(path)
        raise TypeError(f"{path!r} is the name of an encoding, not of a file: write encoding={path!r}")


def _each(paths: Paths) -> Iterable[str | os.PathLike[str]]:
    if isinstance(paths, str | os.PathLike):
        return [paths]
    given: Any = paths  # Despite the types.
    is_one = isinstance(given, bytes | bytearray) or hasattr(given, "read") or not isinstance(given, Iterable)
    return [_text(paths)] if is_one else paths


def written_call(maker: str, paths: tuple[str, ...], **others: object) -> str:
    """Return the call that makes a source as a user would write it, without defaults.

    Example:
        >>> written_call("text_files", ("a.txt",), encoding="utf-8", with_path=True)
        "text_files('a.txt', with_path=True)"
    """
    given = [
        *(_SHORT.repr(shown_url(path)) for path in paths[: _SHORT.maxlist]),
        *(["..."] if len(paths) > _SHORT.maxlist else []),
    ]
    named = [f"{name}={_shown(other)}" for name, other in others.items() if other not in (None, "utf-8")]
    return f"{maker}({', '.join([*given, *named])})"


def _shown(value: object) -> str:
    if isinstance(value, type):
        return value.__qualname__.rpartition("<locals>.")[2]
    return shown_function(value) if callable(value) else _SHORT.repr(value)


def _text(path: object) -> str:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(name, str):
        raise TypeError(f"a path must be a str or an os.PathLike, not {type(name).__name__}{_instead_of(name)}")
    return name


def _instead_of(path: object) -> str:
    """Return advice where the argument is an open file, or bytes."""
    if isinstance(path, bytes | bytearray | os.PathLike):
        return ": os.fsdecode(path) makes a str of it"
    if hasattr(path, "read"):
        return (
            ": give the name of the file, which the workers open themselves; "
            "the lines of a file that is open are ctx.stream(file)"
        )
    return ""


def within(directory: str, pattern: str) -> str:
    """Return the path for the files below a directory that match a glob.

    Example:
        >>> within("logs[1]", "*.txt")
        'logs[[]1]/*.txt'
    """
    import glob

    is_url = URL.match(directory) is not None  # fsspec has no escapes.
    return f"{(directory if is_url else glob.escape(directory)).rstrip('/')}/{pattern}"


def find_files(paths: Iterable[str]) -> list[File]:
    """Return the files of the paths, sorted by name, without duplicates.

    An existing path is literal, even with a `*` in its name; else it is a glob. A glob means the files that it matches,
    a directory the files directly inside it; both without files whose names start with "." or "_", such as `_SUCCESS`,
    unless the glob itself has such a name. `**` follows no links to folders, as in bash. A file with several names, by
    links or hard links, is one file: it has the name without links, or the first name. A directory that `to_files`
    wrote without an item has no files.

    Raises:
        SourceError: a path does not exist, a glob matches no file, a directory has no files, or is a table of Delta.
    """
    found: dict[str, File] = {}
    for path in paths:
        with reading(path):
            found.update((file.name, file) for file in _find(path))
    return sorted(_each_once(found.values()), key=lambda file: file.name)


def _each_once(files: Iterable[File]) -> Iterable[File]:
    """Return one of the names of each file, by the device and the inode that local ones have."""
    names: dict[object, list[File]] = {}
    for file in files:
        names.setdefault(file.name if file.inode is None else file.inode, []).append(file)
    return (each[0] if len(each) == 1 else min(each, key=_links_and_name) for each in names.values())


def _links_and_name(file: File) -> tuple[bool, str]:
    return os.path.realpath(file.path) != file.path, file.name


def _find(path: str) -> list[File]:
    if not URL.match(path):
        return _find_local(path)
    fs, inside = opened_url(resolved_url(path, quoted=False))
    # A URL of a local file is treated as its path, so that links and hard links count as one file.
    if "file" in ((fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol):
        return _find_local(inside)
    return _find_remote(ReferredFiles(path) if has_reference(path) else fs, inside, path)


def _find_local(path: str) -> list[File]:
    import glob

    path = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(path):
        with os.scandir(path) as listed:
            entries = list(listed)
        _refuse_table(path, [entry.name for entry in entries])
        names = [entry.path for entry in entries if not _is_hidden(entry.name) and not entry.is_dir()]
        # An empty result of `to_files` is a result; any other empty folder is more likely a mistake in the path.
        if not names and any(_is_list_of_none(_local(entry.path)) for entry in entries if entry.name == _LIST):
            return []
        return _some([_local(name) for name in names], f"the directory {path} holds no files")
    if not glob.has_magic(path) or os.path.lexists(path):
        return [_local(path)]
    names = [name for name in _matches(path) if _is_meant(name, path) and not os.path.isdir(name)]
    return _some([_local(name) for name in names], f"no file matches {path} ({_PASSED_OVER})")


def _matches(pattern: str) -> list[str]:
    """Return the matches of an absolute glob.

    `glob` of the standard library follows links to folders in `**`, into circles too, and passes over directories that
    cannot be listed.
    """
    names = [os.sep]
    for part in pattern.split(os.sep)[1:]:
        # `**` may match one folder several times, as in `**/**`.
        names = list(dict.fromkeys(itertools.chain.from_iterable(_below(name, part) for name in names)))
    return names


def _below(folder: str, part: str) -> Iterator[str]:
    """Yield the matches of one part of a glob in a folder."""
    import glob

    if part != "**" and not glob.has_magic(part):
        name = os.path.join(folder, part)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.lstat(name)  # A folder that may not be searched is an error, which `lexists` passes over.
            yield name
    elif os.path.isdir(folder):
        yield from _all_below(folder) if part == "**" else _listed(folder, part)


def _listed(folder: str, part: str) -> list[str]:
    with os.scandir(folder) as listed:
        matching = fnmatch.filter((entry.name for entry in listed), part)
    return [os.path.join(folder, name) for name in matching if part.startswith(".") or not name.startswith(".")]


def _all_below(folder: str) -> Iterator[str]:
    """Yield a folder and its contents, recursively, without following links."""
    waiting = [folder]
    while waiting:
        yield (above := waiting.pop())
        with os.scandir(above) as listed:
            for entry in listed:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not os.path.isdir(entry.path):  # A later part of a glob would continue beyond a link to a folder.
                    yield entry.path


def _local(path: str) -> File:
    with reading(path):
        status = os.stat(path)
    size = status.st_size if stat.S_ISREG(status.st_mode) else None
    # `/proc` reports 0 bytes for files with content, which would count as empty.
    if size == 0 and _has_content(path):
        size = None
    # A file system without inodes returns 0 for each file, and they are not all the same one.
    return File(path, path, size, inode=(status.st_dev, status.st_ino) if status.st_ino else None)


def _has_content(path: str) -> bool:
    """Return whether a file with a size of 0 has bytes nevertheless, as those of `/proc` have."""
    with contextlib.suppress(OSError), open(path, "rb") as file:  # What cannot be read is an error when it is read.
        return bool(file.read(1))
    return False


def _find_remote(fs: Any, path: str, url: str) -> list[File]:
    chain = "".join(url.partition("::")[1:])  # What is left of "zip://*.txt::s3://bucket/a.zip".
    fs.invalidate_cache()  # fsspec caches listings, and would miss a file that was added since the last run.
    try:
        info = fs.info(path)
    except FileNotFoundError:
        if "*" not in path and "?" not in path and "[" not in path:
            raise
        infos = [each for each in fs.glob(path, detail=True).values() if _is_meant(each["name"], path)]
        found = [_remote(fs, each, chain) for each in infos if each["type"] == "file"]
        return _some(found, f"no file matches {shown_url(url)} ({_PASSED_OVER})")
    if info["type"] != "directory":
        return [_remote(fs, {**info, "name": path}, chain)]  # obstore leaves out the bucket (0.12).
    named = {each["name"].rstrip("/").rpartition("/")[2]: each for each in fs.ls(path, detail=True)}
    _refuse_table(shown_url(url), named)
    infos = [each for name, each in named.items() if each["type"] == "file" and not _is_hidden(name)]
    if not infos and _LIST in named and _is_list_of_none(_remote(fs, named[_LIST], chain)):
        return []
    return _some([_remote(fs, each, chain) for each in infos], f"the directory {shown_url(url)} holds no files")


_LIST = "_SUCCESS"


def _is_list_of_none(file: File) -> bool:
    """Return whether a sink of files has finished, and listed none: files in folders within are listed, too."""
    with raw(file) as stream, contextlib.suppress(ValueError):  # The `_SUCCESS` of Spark is empty.
        found: bool = json.load(stream) == {"files": []}
        return found
    return False


def _refuse_table(path: str, names: Iterable[str]) -> None:
    """Refuse a folder in which not all files may be valid.

    Raises:
        SourceError: it is a table of Delta.
    """
    if "_delta_log" in names:
        raise SourceError(
            f"the directory {path} is a table of Delta, which may hold files that were replaced: its log says which "
            "ones count, and parquet_rows(DeltaTable(...).file_uris()) reads those, with the package deltalake"
        )


def _remote(fs: Any, info: dict[str, Any], chain: str) -> File:
    size = info.get("size") if info.get("partial", True) else None  # Some web servers do not support ranges.
    return File(shown_url(fs.unstrip_protocol(info["name"]) + chain), info["name"], size, fs)


_PASSED_OVER = "a glob matches no directories, and no names that begin with '.' or '_' unless it has them itself"


def _is_meant(name: str, pattern: str) -> bool:
    """Return whether a match is no marker, and in no folder of markers that is not in the glob."""
    asked = [part for part in pattern.split("/") if _is_hidden(part)]
    hidden = filter(_is_hidden, name.split("/"))
    return all(any(fnmatch.fnmatchcase(part, each) for each in asked) for part in hidden)


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _some(files: list[File], complaint: str) -> list[File]:
    if not files:
        raise SourceError(complaint) from FileNotFoundError(complaint)
    return files
