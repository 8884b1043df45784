"""A job that is submitted from a cell, and looked at from later ones."""

from __future__ import annotations

CELLS = (
    "import dstream as ds\nfrom reducers import to_ilist\nfrom tests.jobs.planned import plan_of\n"
    "ctx = ds.connect(engine='local', storage='lake')",
    "class Sour(Exception): pass\ndef taste(n):\n    if n == 0:\n        raise Sour('no sugar')\n    return n",
    "job = ctx.new_job(plan_of(ctx.stream([1, 2]).map(taste), to_ilist('cups')), name='tea')",
    "job.join(240)\nprint(job, ctx.get_list('cups').copy())",
    "bad = ctx.new_job(plan_of(ctx.stream([0]).map(taste), to_ilist('cups')))\n"
    "try:\n    bad.join(240)\nexcept Sour as error:\n    print(error.__notes__[1].splitlines()[0])",
    "import asyncio\nlast = ctx.new_job(plan_of(ctx.stream([3]).map(taste), to_ilist('cups')))\n"
    "await asyncio.wrap_future(last.future())\nprint(ctx.get_list('cups').copy())\nctx.close()",
)


def test_a_job_is_submitted_from_a_notebook(notebook):
    """Functions and classes of cells are its own; its future is awaited in a cell; a failure names the cell."""
    # A job that lasts shows its progress, and an empty output takes the place of that in the end.
    outputs = [[each for each in cell if each.get("data") != {"text/plain": ""}] for cell in notebook(*CELLS)]
    said = ["".join(each.get("text", "") or str(each) for each in cell) for cell in outputs]

    assert said[:3] == ["", "", ""]
    assert said[3] == "<job 'tea', COMPLETED> [1, 2]\n"
    assert said[4].startswith("Where: step 2 of 3, .map(taste) at cell 5, line 1, on the item 0")
    assert said[5] == "[1, 2, 3]\n"
