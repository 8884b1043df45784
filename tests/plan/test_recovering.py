"""`Recover`: how a step and what looks after its failures become one."""

from __future__ import annotations

from dstream import Stream
from dstream.gatherers import map_concurrent
from dstream.plan import rewrite, topological
from dstream.plan.operations.elementwise import CallResults, Chain


def test_a_step_and_its_guards_become_one_step():
    """The guards stand with the step, in the order of the calls; the other steps have none."""
    core = rewrite(Stream.of("1").map(int).ignore(ValueError).resolve(OSError, max).filter(bool)._node)

    assert isinstance(core, Chain)
    assert [op.action for op in core.ops] == ["map", "filter"]
    assert [guard.treatment for guard in core.ops[0].guards] == ["ignored", "resolved"]
    assert [guard.step.position for guard in core.ops[0].guards] == [3, 4]
    assert (core.ops[0].step.position, core.ops[1].step.position, core.ops[1].guards) == (2, 5, ())
    assert core.label() == ".map(int).ignore(ValueError).resolve(OSError, max).filter(bool)"


def test_a_step_that_others_read_too_keeps_its_own_run():
    """The guarded step runs on its own; what stands before it is shared."""
    before = Stream.of("1").map(str)
    numbers = before.map(int)
    core = rewrite((numbers + numbers.ignore(ValueError))._node)
    plain, guarded = core.inputs()

    assert [len(op.guards) for op in (*plain.ops, *guarded.ops)] == [0, 1]
    assert plain.upstream is guarded.upstream


def test_calls_with_a_value_instead_of_a_result_have_a_guard_without_a_name():
    """It counts as the call that it stands in: no step of the chain is added."""
    core = rewrite(Stream.of("1").gather(map_concurrent(2, int, on_error=0)).map(str)._node)
    (called,) = [each for each in topological(core) if isinstance(each, CallResults)]

    assert [(guard.treatment, guard.step.label, guard.of.position) for guard in called.guards] == [("resolved", "", 2)]
    assert core.ops[0].step.total == 3


def test_a_long_row_of_guards_is_put_together_without_recursion():
    """Twenty thousand of them."""
    stream = Stream.of("1").map(int)
    for _ in range(20_000):
        stream = stream.ignore(ValueError)
    core = rewrite(stream._node)

    assert len(core.ops[0].guards) == 20_000
