"""What counts as a mutation that tests see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential import (
    column_mutations,
    counting_mutations,
    endless_mutations,
    expression_mutations,
    reader_mutations,
    text_mutations,
)
from tests.differential.mutating import Outcome, outcome_of, path_of

_TEST = "from toy import value\n\ndef test_value():\n    assert value() == 1\n"


@pytest.mark.parametrize(
    ("new", "seconds", "outcome"),
    [
        ("2", 400, Outcome.SEEN),
        ("1.0", 400, Outcome.NOT_SEEN),
        ("__import__('os').kill(__import__('os').getpid(), 9)", 400, Outcome.BROKEN),
        ("__import__('time').sleep(600)", 3, Outcome.BROKEN),
        ("(", 400, Outcome.BROKEN),
        ("len(bytearray(1 << 45))", 400, Outcome.SEEN),
    ],
)
def test_mutation_is_seen_if_a_test_fails(tmp_path: Path, new: str, seconds: float, outcome: Outcome) -> None:
    """Not if the process is killed, takes too long, or cannot import the module."""
    (tmp_path / "toy.py").write_text("def value():\n    return 1\n")
    (tmp_path / "test_toy.py").write_text(_TEST)

    assert outcome_of(("toy", "1", new), ["test_toy.py"], tmp_path, seconds) is outcome


def test_mutation_of_a_module_that_no_test_imports_is_not_run(tmp_path: Path) -> None:
    """Also where a test fails for another reason."""
    (tmp_path / "toy.py").write_text("def value():\n    return 1\n")
    (tmp_path / "test_toy.py").write_text("def test_value():\n    assert False\n")

    assert outcome_of(("toy", "1", "2"), ["test_toy.py"], tmp_path) is Outcome.NOT_RUN


@pytest.mark.parametrize(
    "mutation",
    [
        *column_mutations.MUTATIONS,
        *counting_mutations.MUTATIONS,
        *endless_mutations.MUTATIONS,
        *expression_mutations.MUTATIONS,
        *reader_mutations.MUTATIONS,
        *text_mutations.MUTATIONS,
    ],
)
def test_mutations_are_python_that_differs(mutation: tuple[str, str, str]) -> None:
    """A guard that was rewritten takes its mutation along."""
    module, old, new = mutation
    source = path_of(module).read_text(encoding="utf-8")

    assert old in source
    compile(source.replace(old, new), module, "exec", dont_inherit=True)
    assert source.replace(old, new) != source
