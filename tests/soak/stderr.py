"""Jobs that fail on many cores: nothing of PySpark's may come to stderr, and all that functions print must.

python -m tests.soak.stderr --runs 100 --cores 8
"""

from __future__ import annotations

import argparse
import subprocess
import sys

JOBS = """
import sys
import dstream as ds

def fail(n):
    print(f"mine {n}")
    return 1 // (n % 3)

if __name__ == "__main__":
    with ds.connect(f"local[{sys.argv[2]}]", storage="memory:") as ctx:
        for _ in range(int(sys.argv[1])):
            try:
                ctx.stream(range(int(sys.argv[2]) * 2), int(sys.argv[2]) * 2).map(fail).to_list()
            except ZeroDivisionError:
                pass
"""


def foreign_lines(jobs: int, cores: int) -> list[str]:
    """Return the lines on stderr that no function printed; those of two workers may stand inside each other."""
    command = [sys.executable, "-c", JOBS, str(jobs), str(cores)]
    written = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return [line for line in written.splitlines() if line.strip("mine 0123456789")]


def main() -> int:
    """Run the jobs, print what was foreign, and say with the exit code whether anything was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cores", type=int, default=8)
    wanted = parser.parse_args()
    found = foreign_lines(wanted.runs, wanted.cores)
    print(f"{wanted.runs} failing jobs on local[{wanted.cores}]: {len(found)} foreign lines", *found[:40], sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
