"""Break each guard of columns on purpose: the tests have to see it.

`python -m tests.differential.column_mutations` runs the tests of columns against each mutation, in processes of their
own, and ends with an error if one of them is not seen.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["FAILED", "MUTATIONS", "NOT_RUN", "ROOT", "RUN", "path_of"]

ROOT = Path(__file__).parents[2]

_TESTS = [
    "tests/engine/test_column_expressions.py",
    "tests/engine/test_column_distinct.py",
    "tests/engine/test_column_groups.py",
    "tests/engine/test_column_joining.py",
    "tests/engine/test_column_sorting.py",
    "tests/engine/test_column_steps.py",
    "tests/engine/test_column_windows.py",
    "tests/differential/test_column_operators.py",
]
_TESTS_OF_SOURCES = [
    "tests/engine/test_column_records.py",
    "tests/sources/test_source_columns.py",
    "tests/storage/lake/test_lake_columns.py",
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
    ("column_sorting", "    return ~values if reverse else values", "    return -values if reverse else values"),
    ("column_sorting", "(values + 0.0).view", "values.view"),
    ("column_sorting", "np.where(bits < 0, bits ^ np.int64(GREATEST), bits)", "bits.copy()"),
    ("column_sorting", "    bits[values != values] = GREATEST\n", ""),
    ("column_sorting", "type(keys[0]) not in _NUMBERS", "False"),
    ("column_sorting", "np.argsort(ranks.values, kind=\"stable\")", "np.lexsort((-np.arange(len(ranks.values)), ranks.values))"),
    ("column_sorting", "for batch in batches]), kind=\"stable\")", "for batch in batches]), kind=\"stable\")[::-1]"),
    ("column_sorting", "np.searchsorted(values, borders.values, side=\"left\")", "np.searchsorted(values, borders.values, side=\"right\")"),
    ("column_sorting", "    if columns.is_verified:\n", "    if False:\n"),
    ("column_sorting", "return Ranks(\"floats\", ", "return Ranks(\"ints\", "),
    ("column_top", "limit.kind != ranks.kind", "False"),
    ("column_top", "values < before.values[0]", "values <= before.values[0]"),
    ("column_joining", "type(keys[0]) is not int", "False"),
    ("column_joining", "not isinstance(block.members[0], Ints)", "False"),
    ("column_joining", "stable_hashes_of_ints(keys) % targets", "keys % targets"),
    ("column_joining", "        self._rows = np.argsort(numbers, kind=\"stable\")", "        self._rows = np.arange(len(numbers))"),
    ("column_joining", "counts = np.where(is_found, ", "counts = np.where(is_found | True, "),
    ("column_joining", "self._is_matched[numbers[is_found]] = True", "pass"),
    ("column_joining", "is_held if self._membership.is_wanted else ~is_held", "is_held"),
    ("column_joining", "return self._membership.entries(index, passing)", "return iter(())"),
    ("column_joining", "np.flatnonzero(~self._is_matched)", "np.flatnonzero(self._is_matched)"),
    ("column_distinct", "np.where(column.values == column.values, column.values, np.nan)", "column.values + 1"),
    ("column_distinct", "stable_hashes_of_ints(whole(column).values)", "whole(column).values"),
    ("column_distinct", "first[numbers_of_rows[::-1]] = np.arange(rows - 1, -1, -1)", "first[numbers_of_rows] = np.arange(rows)"),
    ("column_distinct", "firsts + before", "firsts"),
    ("column_distinct", "np.lexsort((places, sources))", "np.lexsort((sources, places))"),
    ("column_windows", "rows_at(column, np.arange(rows - size + 1, rows)), _is_not_first", "rows_at(column, np.arange(rows - size + 1, rows)), is_first"),
    ("column_windows", "np.arange(rows - size + 1, rows)", "np.arange(rows - size, rows)"),
    ("column_windows", "else [tail, block]", "else [block]"),
    ("column_windows", "np.arange(max(rows - count, 0), rows)", "np.arange(0, min(count, rows))"),
    ("evaluating", "numbers(Same(0, column.size))", "numbers(Same(-0.0, column.size))"),
    ("column_stacking", "max(each.greatest for each in columns)", "columns[0].greatest"),
    ("column_stacking", "    if len(set(map(type, columns))) > 1:", "    if False:"),
    ("verifying_columns", "    if type(one) is not type(other):", "    if False:"),
    ("column_records", "if name not in self.rows.parts:", "if False:"),
    ("column_records", "        if array is None:\n            raise", "        if False:\n            raise"),
    ("column_records", "places if self._places is None else self._places[places]", "places"),
    ("column_records", "few if self._places is None else self._places[few]", "few"),
    ("column_records", "return column if self._places is None else rows_at(column, self._places)", "return column"),
    ("column_records", "not array.null_count and _is_number(array.type):\n                column", "_is_number(array.type):\n                column"),
    ("column_records", "if not array.null_count and _is_number(array.type):\n        return", "if _is_number(array.type):\n        return"),
    ("column_records", "or \"attribute\" not in column.rows.reached_by", ""),
    ("column_records", "and \"key\" in records.rows.reached_by", ""),
    ("column_records", "and \"place\" in records.rows.reached_by", ""),
    ("column_records", "-len(names) <= index < len(names)", "True"),
    ("column_records", "if type(index) is int and", "if isinstance(index, int) and"),
    ("column_records", "    if greatest > GREATEST:", "    if False:"),
    ("column_records", "Floats(values.astype(np.float64, copy=False))", "Floats(values)"),
    ("column_records", "            with naming(self._step):\n                array", "            if True:\n                array"),
    ("column_records", "        with naming(self._step):\n            for start", "        if True:\n            for start"),
    ("column_records", "            yield _named(each, step)", "            yield each"),
    ("column_comparing", "Objects | Unmade", "Objects"),
    ("sources.parquet_columns", "return None if way is None or may_hold_nulls() else way", "return way"),
    ("sources.parquet_columns", "way: _Way | None = \"as floats\"", "way: _Way | None = \"as it is\""),
    ("sources.parquet_columns", "if fits is not None and any(getattr(pa.types, each)(kind) for each in fits)", "if fits is not None"),
    ("sources.parquet_columns", "return bool(self.column(name).null_count)", "return False"),
    ("sources.parquet_columns", "return bool(each.statistics.null_count)", "return False"),
    ("sources.parquet_columns", "or _is_plain(form.kind)", "or True"),
    ("sources.parquet_columns", "and tuple(names) == field_names(kind)", ""),
    ("sources.parquet_columns", "if self._parquet.closed:", "if False:"),
    ("sources.tables", "not has_plain_fields(kind) or", ""),
    ("sources.tables", "and names == field_names(kind)", ""),
    ("dstream.values.fields", "            and kind.__getitem__ is tuple.__getitem__\n", ""),
    ("dstream.values.fields", "            and [type(each) for each in held] == [_FIELD_OF_TUPLE] * len(names)\n            and [each.__reduce__()[1][0] for each in held] == list(range(len(names)))\n", ""),
    ("dstream.values.fields", "_own_code(kind.__new__).startswith(\"namedtuple_\")", "True"),
    ("dstream.values.fields", "        and not hasattr(kind, \"__post_init__\")\n", ""),
    ("dstream.values.fields", "        and init.__code__.co_filename == \"<string>\"\n", ""),
    ("dstream.values.fields", "        and kind.__getattribute__ is object.__getattribute__\n", ""),
    ("dstream.values.fields", "        and kind.__new__ is object.__new__\n", ""),
    ("dstream.values.fields", "        and not any(hasattr(type(each), \"__set__\")", "        and not any(False"),
    ("dstream.storage.lake.lake_rows", "return None if beside.null_count < batch.num_rows else", "return"),
    ("dstream.storage.lake.lake_rows", "    if kind.hint in _AS_THEY_ARE:", "    if not isinstance(kind, Record):"),
    ("dstream.storage.lake.lake_rows", "not has_plain_fields(made) or", ""),
    ("dstream.storage.lake.lake_rows", "    return batch.filter(kept)", "    return batch"),
    ("dstream.storage.lake.lake_rows", "max(start - place, 0), min(stop - place, batch.num_rows)", "0, batch.num_rows"),
    ("dstream.storage.lake.lake_rows", "skipped = before", "skipped = 0"),
    ("dstream.storage.lake.map_split", "        if len(files) > 1:", "        if False:"),
    ("dstream.distributed.collection_sources", "if arrow_rows and self.predicate is None and self.projection is None else", "if arrow_rows else"),
]  # fmt: skip
"""(module, text of a guard, what takes its place); a module without a dot is one of columns."""


def path_of(module: str) -> Path:
    """Return the file of a module."""
    return ROOT / f"{_full(module).replace('.', '/')}.py"


def _full(module: str) -> str:
    return module if "." in module else f"dstream.engine.kernels.columns.{module}"


RUN = """
import importlib.machinery, sys
from pathlib import Path
import pytest
name, old, new = sys.argv[1:4]
run = []
class Mutated(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        source = Path(self.path).read_text(encoding="utf-8")
        assert old in source, old
        run.append(fullname)
        return compile(source.replace(old, new), self.path, "exec", dont_inherit=True)
class Finder:
    def find_spec(self, fullname, path=None, target=None):
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if fullname == name and found is not None:
            found.loader = Mutated(fullname, found.origin)
        return found if fullname == name else None
assert name not in sys.modules
sys.meta_path.insert(0, Finder())
ended = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *sys.argv[4:]])
loaded = [each for each in list(sys.modules.values()) if getattr(each, "__file__", None) == getattr(sys.modules.get(name), "__file__", "")]
is_run = run == [name] and all(isinstance(each.__spec__.loader, Mutated) for each in loaded)
sys.exit(100 + ended if is_run else 70)
"""
"""Run tests with a module whose first import, by whomever, is the mutated code.

Ends with 100 and the exit code of pytest: a process that fails by itself ends with 1, which is not a failed test.
"""

NOT_RUN, FAILED = 70, 101


def _is_seen(module: str, old: str, new: str) -> bool:
    assert old in path_of(module).read_text(encoding="utf-8"), f"{module} has no {old!r} any more"
    tests = _TESTS_OF_SOURCES if "." in module or module == "column_records" or "Unmade" in old else _TESTS
    command = [sys.executable, "-c", RUN, _full(module), old, new, "-k", "not spark", *tests]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode
    assert ended != NOT_RUN, f"the tests have not run the mutated {module}"
    return ended == FAILED


def main() -> None:
    """Run all of them, or those of the modules that are named."""
    unseen = []
    for module, old, new in MUTATIONS:
        if len(sys.argv) > 1 and module.rpartition(".")[2] not in sys.argv[1:]:
            continue
        if not _is_seen(module, old, new):
            unseen.append((module, old, new))
            print(f"not seen in {module}: {old!r} -> {new!r}", flush=True)
    print(f"{len(MUTATIONS) - len(unseen)} of {len(MUTATIONS)} mutations are seen")
    sys.exit(bool(unseen))


if __name__ == "__main__":
    main()
