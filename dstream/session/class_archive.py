"""Maker of a class data archive: a program of typical calls, and Java's dump of the classes that it loaded.

`python -m dstream.session.class_archive FOLDER KEY` is started at the end of a program, at a low priority; one process
makes archives at a time. `engine/spark/session/java.py` describes archives.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dstream.engine.spark.session.java import ClassArchive, find_java, is_private
from dstream.engine.spark.session.startup import JVM_OPTIONS, end_java
from dstream.session import connect

__all__ = ["main", "make"]


_LONGEST = 60 * 60
"""Seconds, on a machine that is busy; a process that takes longer ends."""


def main(folder: str, key: str) -> None:
    """Make the archive of a key in a folder, unless another process is at it."""
    signal.alarm(_LONGEST)
    with suppress(OSError):  # Where memory runs out, this process is the one to go.
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(OSError):
        make(ClassArchive(Path(folder), key))


def make(archive: ClassArchive) -> None:
    """Make an archive, unless it is there, or another process makes one; remove unused ones.

    Raises:
        OSError: the folder cannot be written to.
    """
    os.umask(0o077)  # Java makes the file, with the permissions that this leaves.
    archive.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _turn(archive.folder) as is_mine:
        if not is_mine or not archive.is_wanted():
            return
        for path in archive.unused():
            path.unlink()
        unfinished = archive.folder / f"{archive.key}.unfinished"
        is_made = False
        try:
            is_made = _is_usable(unfinished, _run_what_runs_first(unfinished))
        finally:
            if is_made:
                _publish(archive, unfinished)
            else:
                # `is_wanted` finds it, so that not every program tries again.
                (archive.folder / f"{archive.key}.failed").touch()
                unfinished.unlink(missing_ok=True)


@contextmanager
def _turn(folder: Path) -> Iterator[bool]:
    """Return whether this process is the only one that makes an archive in the folder."""
    import fcntl  # imported lazily: not available on every system

    with open(folder / "making.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield is_private(folder)


def _run_what_runs_first(unfinished: Path) -> str:
    """Run jobs in a Java that writes its classes when it ends; return the path that its classes were loaded from."""
    os.environ["SPARK_SUBMIT_OPTS"] = f'{JVM_OPTIONS} "-XX:ArchiveClassesAtExit={unfinished}"'
    with connect("local[2]", engine="spark", storage="memory:", progress=False, file="") as ctx:
        numbers = ctx.stream(range(1000), 4)
        numbers.map(abs).filter(bool).to_list()
        numbers.sorted().distinct().to_list()
        numbers.key_by(abs).count_by_key().to_list()
        numbers.find_first()
        list(numbers.cache())
    return end_java()


def _is_usable(unfinished: Path, class_path: str) -> bool:
    """Return whether Java takes the archive, and finds its own contents in it."""
    if not unfinished.exists():
        return False
    options = [*JVM_OPTIONS.split(), "-Xshare:on", "-XX:+VerifySharedSpaces", f"-XX:SharedArchiveFile={unfinished}"]
    command = [find_java().path, *options, "-cp", class_path, "org.apache.spark.deploy.SparkSubmit", "--version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _publish(archive: ClassArchive, unfinished: Path) -> None:
    """Rename a complete archive to its final name, after it was flushed to disk."""
    unfinished.chmod(0o400)
    with open(unfinished, "rb") as file:
        os.fsync(file.fileno())
        size = os.fstat(file.fileno()).st_size
    unfinished.rename(archive.folder / archive.name_of(size))


if __name__ == "__main__":
    main(*sys.argv[1:])
