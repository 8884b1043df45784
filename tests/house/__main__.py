"""`python -m tests.house`: how the house is built, in figures: what an operation walks through, and the modules."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.house.walks import MASTER, walks

_HOME = Path(__file__).parents[2]
_PACKAGES = ("collectors", "dstream", "reducers", "sources")
_FEW_LINES = 60
_MANY_LINES = 500


def main() -> None:
    """Print the tables."""
    print(f"{'operation on Spark, ' + MASTER:40} {'modules':>8} {'calls between them':>19}")
    for name, walk in walks():
        print(f"{name:40} {len(walk.modules):8} {walk.calls:19}")
    print()
    for name, figure in _figures():
        print(f"{name:62} {figure}")


def _figures() -> Iterator[tuple[str, str]]:
    files = [file for package in _PACKAGES for file in sorted((_HOME / package).rglob("*.py"))]
    lengths = {file: len(file.read_text("utf-8").splitlines()) for file in files}
    yield "modules", f"{len(files):,}"
    yield "lines", f"{sum(lengths.values()):,}"
    yield f"modules below {_FEW_LINES} lines", f"{sum(length < _FEW_LINES for length in lengths.values())}"
    long = [f"{_name(file)} {length}" for file, length in lengths.items() if length > _MANY_LINES]
    yield f"modules above {_MANY_LINES} lines", ", ".join(long) or "none"
    names = Counter(file.stem for file in files if file.is_relative_to(_HOME / "dstream") and file.stem != "__init__")
    twice = [f"{name} x {count}" for name, count in sorted(names.items()) if count > 1]
    yield "names that several modules below dstream/ share", ", ".join(twice) or "none"
    yield "signatures that say Any", _signatures_with_any(files)


def _name(file: Path) -> str:
    return ".".join(file.relative_to(_HOME).with_suffix("").parts)


def _signatures_with_any(files: list[Path]) -> str:
    signatures = with_any = anys = 0
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                hints = [argument.annotation for argument in ast.walk(node.args) if isinstance(argument, ast.arg)]
                found = sum(_anys(hint) for hint in (*hints, node.returns) if hint is not None)
                signatures, with_any, anys = signatures + 1, with_any + (found > 0), anys + found
    return f"{with_any:,} of {signatures:,}, {anys:,} times"


def _anys(hint: ast.expr) -> int:
    return sum(isinstance(each, ast.Name) and each.id == "Any" for each in ast.walk(hint))


if __name__ == "__main__":
    main()
