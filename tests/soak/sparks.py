"""Small programs and the differential tests on each version of Spark: results must be the same.

python -m tests.soak.sparks --versions 3.5 4.0 --lowest

Each version gets an environment of its own, which finds all but PySpark in the environment that runs this. Making one
takes some 45 seconds of CPU; it is made again when `--fresh` says so. Connect is tried on no other version than that of
the tests.
"""

from __future__ import annotations

import argparse
import os
import site
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path

from dstream.engine.versions import LOWEST

ROOT = Path(__file__).parents[2]
ALL = [".".join(map(str, spark)) for spark in LOWEST]
TESTS = (
    "tests/differential/test_random_pipelines.py",
    "tests/differential/test_random_graphs.py",
    "tests/differential/test_gatherers.py",
    "tests/differential/test_against_the_jdk.py",
    "tests/stream/test_data_frames.py",
)
WARNINGS = ("ignore:distutils", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
"""What older versions warn about, which is an error in the tests: `distutils`, and sockets that they leave open."""
_NUMPY = "numpy<2"
"""What pandas and pyarrow of that time were compiled for."""


def environment(folder: Path, spark: str, lowest: bool, fresh: bool) -> Path:
    """Return the Python of an environment with a version of Spark, which is made if it is not there.

    Args:
        folder: of all environments.
        spark: the version, such as "3.5".
        lowest: whether pandas and pyarrow are the lowest that this version takes.
        fresh: whether it is made again.
    """
    home = folder / f"spark-{spark}{'-lowest' if lowest else ''}"
    python, finished = home / "bin" / "python", home / "finished"
    if finished.exists() and not fresh:
        return python
    venv.create(home, clear=True, with_pip=False, symlinks=True)
    [packages] = home.glob("lib/python3*/site-packages")
    needs = [f"pyspark=={spark}.*"]
    if lowest:
        bounds = LOWEST[int(spark.partition(".")[0]), int(spark.partition(".")[2])]
        needs += [f"{name}=={'.'.join(map(str, numbers))}.*" for name, numbers in bounds.items()] + [_NUMPY]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
        "--no-deps",
    ]
    subprocess.run([*pip, "--target", str(packages), *needs], check=True)
    # Its own packages come first, those of this environment behind them.
    (packages / "outer.pth").write_text("\n".join(map(line_of_site, site.getsitepackages())) + "\n")
    finished.touch()
    return python


def line_of_site(folder: str) -> str:
    """Return a line for a `.pth` file that reads a folder of packages, and the `.pth` files in it."""
    return f"import site; site.addsitedir({folder!r})"


def succeeds(python: Path, arguments: Sequence[str]) -> bool:
    """Run a program of this checkout, print its last lines, and return whether it ended well."""
    # Java's fast start is that of the tests; the folder of the checkout comes before all packages.
    fast = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_SUBMIT_OPTS": fast}
    ended = subprocess.run([str(python), *arguments], cwd=ROOT, env=variables, capture_output=True, text=True)
    last = (ended.stdout + (ended.stderr if ended.returncode else "")).splitlines()[-12:]
    print(*last, sep="\n", flush=True)
    return ended.returncode == 0


def main() -> int:
    """Try each version; the exit code is 1 if one of them gave something else."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--versions", nargs="+", default=ALL, choices=ALL)
    parser.add_argument("--lowest", action="store_true", help="with the lowest pandas and pyarrow")
    parser.add_argument("--smoke", action="store_true", help="the small programs alone")
    parser.add_argument("--fresh", action="store_true", help="make the environments again")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "sparks", help="where the environments are")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files of tests")
    wanted = parser.parse_args()
    failed = []
    for spark in wanted.versions:
        started = time.monotonic()
        python = environment(wanted.folder, spark, wanted.lowest, wanted.fresh)
        is_well = succeeds(python, ["-m", "tests.soak._spark_smoke"])
        if is_well and not wanted.smoke:
            warnings = [part for each in WARNINGS for part in ("-W", each)]
            is_well = succeeds(
                python, ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *warnings, *wanted.tests]
            )
        print(f"Spark {spark}: {'well' if is_well else 'FAILED'}, {time.monotonic() - started:.0f} s", flush=True)
        failed += [] if is_well else [spark]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
