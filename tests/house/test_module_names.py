"""Who reads the name of a module knows which one it is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_two_modules_have_one_name():
    """Below `dstream/`; packages stand for themselves."""
    modules = [path for path in (ROOT / "dstream").rglob("*.py") if not path.stem.startswith("__")]
    counts = Counter(path.stem for path in modules)

    assert len(modules) > 200
    assert [str(path.relative_to(ROOT)) for path in modules if counts[path.stem] > 1] == []
