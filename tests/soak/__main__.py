"""Run every soak of this folder at its long size, one after the other: `python -m tests.soak [--quick] [name ...]`.

With `--quick` each does little, which shows in minutes that all of them run. Of each the last lines are printed. The
program ends with 1 if one of them failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main", "names", "run"]

_ROOT = Path(__file__).parents[2]
_LONG: dict[str, Sequence[str]] = {
    "columns": ("--programs", "200000"),
    "contention": ("--runs", "200"),
    "epochs": ("--programs", "5000"),
    "hostile": ("--runs", "5000"),
    "hours": ("--hours", "1"),
    "jobs": ("--runs", "50"),
    "kafka": ("--runs", "60"),
    "memory": ("--mb", "500"),
    "moves": ("--drivers", "50", "--workers", "20"),
    "mutations": ("--runs", "2000"),
    "queues": ("--runs", "10000"),
    "requests": ("--runs", "500"),
    "scale": ("--items", "10000000"),
    "stderr": ("--runs", "200"),
    "unbounded": ("--runs", "200"),
}
"""What a soak is given to be long; one that is not here has no shorter size."""
_QUICK: dict[str, Sequence[str]] = {
    "columns": ("--programs", "200"),
    "contention": ("--runs", "5"),
    "epochs": ("--programs", "50"),
    "hostile": ("--runs", "20"),
    "hours": ("--hours", "0.01", "--rate", "1000"),
    "jobs": ("--runs", "4"),
    "kafka": ("--runs", "2"),
    "memory": ("sorted", "grouping", "--mb", "20"),
    "moves": ("--drivers", "4", "--workers", "1"),
    "mutations": ("--runs", "10"),
    "queues": ("--runs", "100"),
    "requests": ("--runs", "5"),
    "scale": ("--items", "100000"),
    "sparks": ("--versions", "3.5", "--smoke"),
    "stderr": ("--runs", "2"),
    "unbounded": ("--runs", "4", "--seconds", "10"),
}
"""What it is given to be short."""
_LAST_LINES = 40
_LONGEST = 4 * 3600


def names() -> list[str]:
    """Return the soaks of this folder."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def run(name: str, arguments: Sequence[str]) -> bool:
    """Run one soak, print its last lines, and say whether all was well."""
    started = time.monotonic()
    command = [sys.executable, "-m", f"tests.soak.{name}", *arguments]
    try:
        ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_LONGEST)
    except subprocess.TimeoutExpired:
        print(f"{name}: ended after {_LONGEST / 3600:.0f} hours", flush=True)
        return False
    is_well = ended.returncode == 0
    lines = (ended.stdout if is_well else ended.stdout + ended.stderr).splitlines()[-_LAST_LINES:]
    print(
        f"{name}: {'well' if is_well else 'FAILED'}, {time.monotonic() - started:,.0f} s",
        *lines,
        "",
        sep="\n",
        flush=True,
    )
    return is_well


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soaks that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=str(__doc__).partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(names())}; all of them by default")
    parser.add_argument("--quick", action="store_true", help="do little, to see that all of them run")
    given = parser.parse_args(arguments)
    wanted, sizes = given.names or names(), _QUICK if given.quick else _LONG
    if unknown := set(wanted) - set(names()):
        parser.error(f"there is no soak {', '.join(sorted(unknown))}")
    ended_well = [run(name, sizes.get(name, ())) for name in wanted]
    return 0 if all(ended_well) else 1


if __name__ == "__main__":
    sys.exit(main())
