"""`python -m tests.house`: how the house is built, in figures: what an operation walks through, and the modules."""

from __future__ import annotations

from tests.house.figures import figures, sources
from tests.house.walks import MASTER, walks


def main() -> None:
    """Print the tables."""
    print(f"{'operation on Spark, ' + MASTER:45} {'modules':>8} {'calls between them':>19}")
    for name, walk in walks():
        print(f"{name:45} {len(walk.modules):8} {walk.calls:19}")
    print()
    for name, figure in figures(sources()):
        print(f"{name:52} {figure}")


if __name__ == "__main__":
    main()
