"""`verify_processor` calls a processor as an engine does: edges, ticks, snapshots, suppliers, the end."""

from __future__ import annotations

import pytest

from dstream.core import (
    AbstractProcessor,
    Processor,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    Watermark,
    processors,
    traverse,
)
from dstream.testing import TestProcessorContext, verify_processor
from sources import items, stream_of, text_files
from tests.failures.test_items import Mute, raising
from tests.testing.processors_to_verify import CLOCK, SavesNothing, Total, Twice


class Told(AbstractProcessor):
    """Emits what happens."""

    def start(self, context):
        """Have nothing to tell."""
        self.left = traverse([])

    def try_process(self, ordinal, item):
        """Emit the edge and the item."""
        return self.try_emit((ordinal, item))

    def complete_edge(self, ordinal):
        """Emit the edge."""
        return self.try_emit(ordinal)


def test_edges_of_one_priority_come_in_turn():
    """Item by item; each ends when it has no more."""
    told = verify_processor(Told).inputs([["a"], ["b", "c"]])

    told.expect_output([(0, "a"), (1, "b"), 0, (1, "c"), 1])


def test_an_edge_of_a_lower_number_comes_first():
    """With its end, before the first item of the others."""
    told = verify_processor(Told).inputs([["a"], ["b", "c"]], priorities=[0, -1])

    told.expect_output([(1, "b"), (1, "c"), 1, (0, "a"), 0])


def test_each_outbound_edge_is_compared():
    """By its ordinal; a watermark goes to all."""
    forked = type(
        "Forked", (AbstractProcessor,), {"try_process": lambda self, ordinal, item: self.try_emit(item, item % 2)}
    )
    verified = verify_processor(forked).input([1, 2, Watermark(5)])

    verified.expect_outputs([[2, Watermark(5)], [1, Watermark(5)]])
    with pytest.raises(AssertionError, match=r"edge 1 got something else .* unexpected: 1"):
        verified.expect_outputs([[2, Watermark(5)], [Watermark(5)]])


def test_a_processor_itself_runs_once():
    """It cannot be made again, so it is not restored."""
    verify_processor(SavesNothing()).input([1, 2]).expect_output([3])


def test_snapshots_are_disabled():
    """For what has none."""
    verify_processor(SavesNothing).input([1, 2]).disable_snapshots().expect_output([3])


class Waits(Processor):
    """Waits for the second call."""

    called = 0

    def complete(self):
        """Be done in every second call."""
        self.called += 1
        return self.called % 2 == 0


def test_progress_is_not_asserted():
    """For what waits for something outside."""
    verify_processor(Waits).disable_progress_assertion().disable_snapshots().expect_output([])
    with pytest.raises(AssertionError, match="made no progress"):
        verify_processor(Waits).expect_output([])


CALLS: list[str] = []
"""Processors are made again, so what they get is noted here."""


class Logged(Total):
    """Notes the calls that it gets, and all that is made for it."""

    def start(self, context):
        """Note the guarantee."""
        CALLS.append(context.guarantee)

    def tick(self):
        """Note it."""
        CALLS.append("tick")
        return True

    def finish_snapshot_restore(self):
        """Note it."""
        CALLS.append("restored")
        return True

    def close(self, error):
        """Note the error."""
        CALLS.append(f"close({error!r})")


def test_calls_come_in_the_order_of_the_protocol():
    """`tick` before items and before the end; a processor that is restored is another one."""
    CALLS.clear()
    verify_processor(Logged).input([1]).expect_output([1])
    once = ["tick", "tick", "tick", "close(None)"]

    assert CALLS[:5] == ["none", *once]
    assert CALLS[5:11] == ["none", "tick", *once]  # One more: the item is refused first.
    assert CALLS[11:16] == ["exactly-once", *once]
    assert CALLS[16:20] == ["exactly-once", "tick", "tick", "close(None)"]
    assert CALLS[20:22] == ["exactly-once", "restored"]


def test_a_failure_reaches_close_and_is_not_hidden_by_it():
    """What `close` raises then is less than why."""
    CALLS.clear()
    failing = type("Failing", (Logged,), {"close": lambda self, error: CALLS.append(error) or 1 // 0})

    with pytest.raises(AssertionError, match="unexpected: 1"):
        verify_processor(Logged).input([1]).expect_output([])
    with pytest.raises(TypeError, match="unsupported operand"):
        verify_processor(failing).input(["x"]).expect_output([])
    assert type(CALLS[-1]) is TypeError


@pytest.mark.parametrize("call", ["process", "close"])
def test_an_exception_that_takes_no_notes_is_raised(call):
    """The refusal does not hide it."""
    failing = type("Failing", (Logged,), {call: lambda self, *given: raising(Mute(), 1)(1)})

    with pytest.raises(Mute):
        verify_processor(failing).input([1]).expect_output([1])


class Suppliers(ProcessorMetaSupplier, ProcessorSupplier):
    """Notes its calls."""

    def __init__(self):
        self.calls = []

    def init(self, context):
        """Note it."""
        self.calls.append(type(context).__name__)

    def get(self, given):
        """Return itself, or a processor."""
        return (lambda address: self) if isinstance(given, list) else [Twice()]

    def close(self, error):
        """Note it."""
        self.calls.append("close")


def test_suppliers_are_used_as_engines_do():
    """Both are told where they are, and closed."""
    supplier = Suppliers()
    verify_processor(supplier).input([1]).disable_snapshots().expect_output([1, 1])

    assert supplier.calls == ["MetaSupplierContext", "SupplierContext", "close", "close"] * 2


def test_the_end_is_disabled():
    """As behind an input that has none."""
    verify_processor(Total).input([1, 2]).disable_complete_call().expect_output([])


class Endless(AbstractProcessor):
    """Counts seconds, and is never done."""

    def complete(self):
        """Advance the time by a second."""
        CLOCK.now += 1
        self.try_emit("tick")
        return False


def test_a_source_without_an_end_runs_for_a_time():
    """That of the clock of the test."""
    endless = verify_processor(Endless, clock=lambda: CLOCK.now).cooperative_timeout(0)

    endless.disable_run_until_completed(3).expect_output(["tick"] * 3)
    with pytest.raises(AssertionError, match="says that it never does"):
        verify_processor(Twice).disable_run_until_completed(3).expect_output([])


def test_a_snapshot_falls_between_calls_of_complete():
    """What goes on from the beginning after it was restored emits more."""
    again = type("Again", (AbstractProcessor,), {"complete": lambda self: self.emit_from_traverser(self.items)})
    again.start = lambda self, context: setattr(self, "items", traverse("ab"))

    with pytest.raises(AssertionError, match="restored after every"):
        verify_processor(again).expect_output(["a", "b"])


def breaking(name, method):
    """Return a class of processors that break the protocol in one method."""
    return type("Breaking", (AbstractProcessor,), {"try_process": lambda self, ordinal, item: True, name: method})


def emits_and_goes_on(self, ordinal, item):
    """Catch what the outbox raises."""
    try:
        return self.try_emit(None)
    except TypeError:
        return True


@pytest.mark.parametrize(
    ("name", "method", "said"),
    [
        (
            "try_process",
            lambda self, ordinal, item: self.try_emit(item) and self.try_emit(-item),
            "to be offered again",
        ),
        ("try_process", lambda self, ordinal, item: self.try_emit(item, 7), "there is no outbound edge 7"),
        ("try_process", lambda self, ordinal, item: self.try_emit(None), "a processor emits no None"),
        ("try_process", emits_and_goes_on, "a processor emits no None"),
        ("try_process", lambda self, ordinal, item: None, "must return True when it is done with the item"),
        ("complete", lambda self: None, "must return True or False, not None"),
        ("complete", lambda self: self.try_emit_to_snapshot("k", 1), "inside of save_to_snapshot"),
        (
            "save_to_snapshot",
            lambda self: all(self.try_emit_to_snapshot("k", n) for n in (1, 2)),
            "in this snapshot already",
        ),
    ],
)
def test_a_broken_protocol_is_an_assertion_error(name, method, said):
    """So that a test fails, and does not err; the message names the call and the run."""
    with pytest.raises(AssertionError, match=said) as caught:
        verify_processor(breaking(name, method)).input([1, 2]).expect_output([])

    assert "Breaking." in str(caught.value)


def test_the_logger_of_a_test_has_the_name_that_a_job_gives():
    """After the vertex and the number of the processor."""
    context = TestProcessorContext(vertex="mine", index=3)

    assert (context.logger.name, context.vertex, context.index) == ("dstream.core.mine.3", "mine", 3)
    other = context.logger.getChild("other")
    assert TestProcessorContext(logger=other).logger is other


def test_sources_are_verified(tmp_path):
    """Those that end, and those of jobs without an end; they go on behind what was emitted when they are restored."""
    for name, text in [("a", "1\n2\n"), ("b", "3\n")]:
        (tmp_path / f"{name}.txt").write_text(text)

    verify_processor(processors.read(items(1, 2, 3))).expect_output([1, 2, 3])
    verify_processor(processors.read(text_files(tmp_path / "*.txt"))).expect_output(["1", "2", "3"])
    verify_processor(processors.read(stream_of([1, 2, 3, 4], 2))).expect_output([1, 3, 2, 4])
    with pytest.raises(AssertionError, match="missing: 4"):
        verify_processor(processors.read(items(1, 2, 3))).expect_output([1, 2, 3, 4])
