"""Break what counts the items of blocks on purpose: `python -m tests.differential.counting_mutations`."""

from __future__ import annotations

from tests.differential.mutating import Mutation, of_columns, run_all

__all__ = ["MUTATIONS"]

MUTATIONS = of_columns([
    ("steps", "self._taken = taken = count(1)", "taken = count(1)"),
    ("steps", "each.add(rows)", "each.add(0)"),
    ("steps", "rows.append(last + 1)", "rows.append(last)"),
    ("steps", "int(np.flatnonzero(each)[last])", "last"),
    ("steps", "side=\"right\"", "side=\"left\""),
    ("steps", "            each.add(rows)\n        self._passed = ()\n", "            each.add(rows)\n"),
    ("steps", "return rows[::-1]", "return rows"),
    ("steps", "next(self._taken) - 1", "next(self._taken)"),
    ("steps", "rows[place] if place < len(rows) else 0", "rows[place]"),
    ("steps", "    if not items.is_read:", "    if True:"),
    ("steps", "            yield run_chain(one_by_one(ops), block)", "            yield block"),
    ("steps", "[size_of_block(block)] * len(ops)", "[size_of_block(block)]"),
    ("steps", "passed.append(size)", "passed.append(size_of_column(as_column(block)))"),
    ("steps", "made, passed = by_items(given(block)), []\n            withheld", "made = by_items(given(block))\n            withheld"),
    ("steps", "            open_block.end()\n", "            pass\n"),
    ("steps", "run_chain(one_by_one(ops[len(first) :]), made)", "run_chain(ops[len(first) :], made)"),
    ("steps", "None if open_block is None else open_block.items", "None"),
    ("steps", "            passed.append(lists := _lists(op, column, found))", "            lists = _lists(op, column, found)"),
    ("steps", "        passed.append(rows := truth(found))", "        rows = truth(found)"),
    ("dstream.operators.rows.operations", " or any(op.action != \"count\" for op in ops):\n        return None", ":\n        return None"),
    ("capabilities", "    if op.action == \"count\":\n        return None\n", ""),
    ("dstream.plan.steps", "takewhile(lambda op: op.evaluation.obstacle is None, ops)", "ops"),
    ("dstream.operators.rows.operations", "self._ones) + self._many", "self._ones)"),
    ("dstream.operators.rows.operations", "(self.of_open_block() if self.of_open_block else 0)", "0"),
])  # fmt: skip


def _tests_of(mutation: Mutation) -> list[str]:
    return ["tests/engine/test_column_counting.py", "tests/differential/test_counting_programs.py"]


if __name__ == "__main__":
    run_all(MUTATIONS, _tests_of)
