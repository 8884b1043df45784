"""Break what counts the items of blocks on purpose: `python -m tests.differential.counting_mutations`."""

from __future__ import annotations

from tests.differential.mutating import Mutation, of_columns, run_all

__all__ = ["MUTATIONS"]

MUTATIONS = of_columns([
    ("chain_evaluation", "self._taken = taken = count(1)", "taken = count(1)"),
    ("chain_evaluation", "each.add(rows)", "each.add(0)"),
    ("chain_evaluation", "rows.append(last + 1)", "rows.append(last)"),
    ("chain_evaluation", "int(np.flatnonzero(each)[last])", "last"),
    ("chain_evaluation", "side=\"right\"", "side=\"left\""),
    ("chain_evaluation", "            each.add(rows)\n        self._passed = ()\n", "            each.add(rows)\n"),
    ("chain_evaluation", "return rows[::-1]", "return rows"),
    ("chain_evaluation", "next(self._taken) - 1", "next(self._taken)"),
    ("chain_evaluation", "rows[place] if place < len(rows) else 0", "rows[place]"),
    ("chain_evaluation", "    if not items.is_read:", "    if True:"),
    ("chain_evaluation", "            yield run_chain(one_by_one(ops), block)", "            yield block"),
    ("chain_evaluation", "[size_of_block(block)] * len(ops)", "[size_of_block(block)]"),
    ("chain_evaluation", "passing.effects.append(size)", "passing.effects.append(size + 1)"),
    ("chain_evaluation", "first = 0 if open_block is not None or are_shared(block) else", "first = 0 if are_shared(block) else"),
    ("chain_evaluation", "            open_block.end()\n", "            pass\n"),
    ("chain_evaluation", "run_chain(one_by_one(ops[len(first) :]), made)", "run_chain(ops[len(first) :], made)"),
    ("chain_evaluation", "None if open_block is None else open_block.items", "None"),
    ("chain_evaluation", "        effects.append(lists := _lists(op, column, found))", "        lists = _lists(op, column, found)"),
    ("chain_evaluation", "    effects.append(rows := truth(found))", "    rows = truth(found)"),
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
