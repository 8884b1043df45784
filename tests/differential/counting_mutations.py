"""Break what counts the items of blocks on purpose: `python -m tests.differential.counting_mutations`."""

from __future__ import annotations

from tests.differential.mutating import Mutation, of_columns, run_all

__all__ = ["MUTATIONS"]

MUTATIONS = of_columns([
    ("column_counting", "self._taken = taken = count(1)", "taken = count(1)"),
    ("column_counting", "each.add(rows)", "each.add(0)"),
    ("column_counting", "rows.append(last + 1)", "rows.append(last)"),
    ("column_counting", "int(np.flatnonzero(each)[last])", "last"),
    ("column_counting", "side=\"right\"", "side=\"left\""),
    ("column_counting", "            each.add(rows)\n        self._passed = ()\n", "            each.add(rows)\n"),
    ("column_counting", "return rows[::-1]", "return rows"),
    ("column_counting", "next(self._taken) - 1", "next(self._taken)"),
    ("column_counting", "rows[place] if place < len(rows) else 0", "rows[place]"),
    ("column_counting", "    if not items.is_read:", "    if True:"),
    ("column_counting", "            yield run_chain(one_by_one(ops), block)", "            yield block"),
    ("column_counting", "[size_of_block(block)] * len(ops)", "[size_of_block(block)]"),
    ("column_steps", "passed.append(size)", "passed.append(size_of_column(as_column(block)))"),
    ("column_steps", "made, passed = by_items(given(block)), []\n            withheld", "made = by_items(given(block))\n            withheld"),
    ("column_steps", "            open_block.end()\n", "            pass\n"),
    ("column_steps", "run_chain(one_by_one(ops[len(first) :]), made)", "run_chain(ops[len(first) :], made)"),
    ("column_steps", "None if open_block is None else open_block.items", "None"),
    ("column_steps", "            passed.append(lists := _lists(op, column, found))", "            lists = _lists(op, column, found)"),
    ("column_steps", "        passed.append(rows := truth(found))", "        rows = truth(found)"),
    ("column_steps", "    if all(op.action == \"count\" for op in ops):", "    if False:"),
    ("steps_in_columns", "    if op.action == \"count\":\n        return None\n", ""),
    ("dstream.engine.kernels.core_operations", "next((op for op in ops if op.action != \"count\"), None)", "ops[0]"),
    ("dstream.engine.kernels.item_count", "self._ones) + self._many", "self._ones)"),
    ("dstream.engine.kernels.item_count", "(self.of_open_block() if self.of_open_block else 0)", "0"),
])  # fmt: skip


def _tests_of(mutation: Mutation) -> list[str]:
    return ["tests/engine/test_column_counting.py", "tests/differential/test_counting_programs.py"]


if __name__ == "__main__":
    run_all(MUTATIONS, _tests_of)
