"""Break each guard of columns on purpose: the tests have to see it.

`python -m tests.differential.column_mutations` runs the tests of columns against each mutation, in processes of their
own, and ends with an error if one of them is not seen.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["MUTATIONS", "ROOT", "RUN", "path_of"]

ROOT = Path(__file__).parents[2]

_TESTS = [
    "tests/engine/test_column_expressions.py",
    "tests/engine/test_column_groups.py",
    "tests/engine/test_column_steps.py",
]

MUTATIONS: list[tuple[str, str, str]] = [
    ("int_arithmetic", "if least < LEAST or greatest > GREATEST:\n                raise", "if False:\n                raise"),
    ("int_arithmetic", "if greatest > GREATEST:\n                raise", "if False:\n                raise"),
    ("int_arithmetic", "left.greatest + right.greatest", "left.greatest"),
    ("int_arithmetic", "left.least - right.greatest", "left.least"),
    ("int_arithmetic", "return min(corners), max(corners)\n\n\ndef _of_floor", "return corners[0], corners[0]\n\n\ndef _of_floor"),
    ("int_arithmetic", "(*_ends(right), -1, 1) if each", "_ends(right) if each"),
    ("int_arithmetic", "def _of_modulo(left: Ints, right: Ints) -> Interval:\n    nonzero(right)", "def _of_modulo(left: Ints, right: Ints) -> Interval:"),
    ("int_arithmetic", "if left.least == LEAST and right.least <= -1 <= right.greatest:", "if False:"),
    ("int_arithmetic", "return left & (right - 1)", "return left & right"),
    ("int_arithmetic", "multiples *= right\n", "multiples *= right + 1\n"),
    ("int_arithmetic", "if np.ndim(right) or right < 1:", "if np.ndim(right):"),
    ("int_arithmetic", "    if right.least < 0 or right.greatest > 63:\n        return _ANY\n    corners = [value << places", "    corners = [value << abs(places) % 64"),
    ("int_arithmetic", "    if right.least < 0 or right.greatest > 63:\n        return _ANY\n    corners = [value >> places", "    corners = [value >> abs(places) % 64"),
    ("int_arithmetic", "if exponent.least < 0 or (", "if ("),
    ("int_arithmetic", "_EXACT = 2**53", "_EXACT = 2**54"),
    ("int_arithmetic", "    if not np.all(divisor.values):", "    if False:"),
    ("int_arithmetic", "return 0, max(-of.least, of.greatest)", "return 0, of.greatest"),
    ("float_arithmetic", "        nonzero(right)\n", ""),
    ("column_comparing", "not all(map(_is_float, (one, other)))", "False"),
    ("column_comparing", "and np.any(one.values != one.values)", "and False"),
    ("column_comparing", "        if type(each) is not type(found):\n            raise Withheld(\"the least", "        if False:\n            raise Withheld(\"the least"),
    ("column_comparing", "np.where(better(each.values, found.values), each.values, found.values)", "np.where(better(found.values, each.values), found.values, each.values)"),
    ("column_comparing", "    if type(first) is not type(second):", "    if False:"),
    ("column_comparing", "        raise Withheld(\"the truth of an object\")", "        return np.ones(len(column.values), np.bool_)"),
    ("evaluating", "given.rows(~decided)", "given.rows(decided)"),
    ("evaluating", "    first = _value(chosen, given.rows(condition))\n", "    first = rows_of(_value(chosen, given), condition)\n"),
    ("evaluating", "named = {number: rows_of(each, chosen) for number, each in self.named.items()}", "named = self.named"),
    ("evaluating", "if isinstance(left, Floats) or isinstance(right, Floats):", "if isinstance(left, Floats) and isinstance(right, Floats):"),
    ("evaluating", "if sign in _OF_BOOLS and isinstance(left, Bools)", "if isinstance(left, Bools)"),
    ("evaluating", "    if sign == \"invert\" and isinstance(of, Bools):", "    if False:"),
    ("evaluating", "return sign == \"invert\" and isinstance(operand, Same)", "return False and isinstance(operand, Same)"),
    ("evaluating", "    if np.any(of.values < 0):", "    if False:"),
    ("evaluating", "np.rint(of.values)", "np.round(of.values + 0.0000001)"),
    ("evaluating", "np.trunc(of.values)", "np.floor(of.values)"),
    ("evaluating", "    if not -_BELOW_2_TO_63 <= least <= greatest < _BELOW_2_TO_63:", "    if False:"),
    ("evaluating", "    if not -len(of.members) <= index.value < len(of.members):", "    if False:"),
    ("column_values", "    if len(kinds) != 1:\n        raise Withheld(\"the items are of several types\")", "    if not kinds:\n        raise Withheld(\"none\")"),
    ("column_values", "    if len(set(map(len, items))) != 1:\n        raise Withheld(\"tuples of several lengths\")\n", ""),
    ("column_values", "        if isinstance(found, Floats):\n            raise Withheld(\"floats where ints are needed\")\n", "        if isinstance(found, Floats):\n            return Ints(found.values.astype(np.int64), LEAST, GREATEST)\n"),
    ("column_values", "if least < LEAST or greatest > GREATEST or not", "if not"),
    ("column_groups", "    if most > GREATEST:", "    if False:"),
    ("column_groups", "    if most <= _EXACT:", "    if most <= GREATEST:"),
    ("column_groups", "    hashes[hashes == -1] = -2\n", ""),
    ("column_groups", "% np.uint64(_HASH_MODULUS)", ""),
    ("column_groups", "first[numbers[::-1]] = np.arange(rows - 1, -1, -1)", "first[numbers] = np.arange(rows)"),
    ("column_groups", "if column.least * rows >= LEAST and column.greatest * rows <= GREATEST:", "if True:"),
    ("column_steps", "            made = run_chain(ops, given(block))\n            withheld += 1", "            made = iter(())\n            withheld += 1"),
    ("column_steps", "        if op.is_verified:\n", "        if False:\n"),
    ("steps_in_columns", "if op.action not in (\"map\", \"filter\", \"flat_map\") or op.guards:", "if op.action not in (\"map\", \"filter\", \"flat_map\"):"),
    ("column_items", "iter((self._items,)) if self._is_begun else self._blocks", "self._blocks"),
    ("column_collecting", "        if known.is_verified:\n            _verify(collector", "        if False:\n            _verify(collector"),
    ("column_collecting", "    if not isinstance(keys, Ints | Texts):\n        raise Withheld(\"keys that are no ints, nor texts\")\n", ""),
    ("column_collecting", "    if max(-values.least, values.greatest) * len(values.values) > GREATEST:", "    if False:"),
    ("verifying_columns", "    if type(one) is not type(other):", "    if False:"),
]  # fmt: skip
"""(module, text of a guard, what takes its place)."""


def path_of(module: str) -> Path:
    """Return the file of a module of columns."""
    return ROOT / f"dstream/engine/kernels/columns/{module}.py"


RUN = """
import importlib.util, sys
from pathlib import Path
import pytest
name, old, new = sys.argv[1:4]
name = "dstream.engine.kernels.columns." + name
found = importlib.util.find_spec(name)
module = importlib.util.module_from_spec(found)
source = Path(found.origin).read_text(encoding="utf-8").replace(old, new)
sys.modules[name] = module
exec(compile(source, found.origin, "exec"), module.__dict__)
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *sys.argv[4:]]))
"""


def _is_seen(module: str, old: str, new: str) -> bool:
    command = [sys.executable, "-c", RUN, module, old, new, *_TESTS]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 1


def main() -> None:
    """Run all of them."""
    unseen = []
    for module, old, new in MUTATIONS:
        if not _is_seen(module, old, new):
            unseen.append((module, old, new))
            print(f"not seen in {module}: {old!r} -> {new!r}", flush=True)
    print(f"{len(MUTATIONS) - len(unseen)} of {len(MUTATIONS)} mutations are seen")
    sys.exit(bool(unseen))


if __name__ == "__main__":
    main()
