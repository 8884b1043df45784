"""Run tests against mutated modules, each in a process of its own, and say which mutations they see.

A mutation is seen if a test fails. A process that is killed, takes too long or cannot collect its tests proves nothing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path

__all__ = ["COLUMNS", "Mutation", "Outcome", "of_columns", "outcome_of", "path_of", "run_all"]

COLUMNS = "dstream.operators.columns"

Mutation = tuple[str, str, str]
"""(module, text of a guard, what takes its place)."""

_ROOT = Path(__file__).parents[2]
_SECONDS = 400
_BYTES = 8 << 30
"""A mutation may ask for more memory than there is: it gets an error, and the machine stays alive."""


class Outcome(Enum):
    """How the tests have ended."""

    SEEN = "seen"
    NOT_SEEN = "not seen"
    NOT_RUN = "the tests have not run the mutated module"
    BROKEN = "the tests have not run to their end"


_RUN = """
import importlib.machinery, resource, sys
from pathlib import Path
import pytest
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
name, old, new = sys.argv[2:5]
run = []
class Mutated(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        source = Path(self.path).read_text(encoding="utf-8")
        assert old in source, old
        run.append(fullname)
        return compile(source.replace(old, new) if old else source, self.path, "exec", dont_inherit=True)
class Finder:
    def find_spec(self, fullname, path=None, target=None):
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if fullname == name and found is not None:
            found.loader = Mutated(fullname, found.origin)
        return found if fullname == name else None
assert name not in sys.modules
sys.meta_path.insert(0, Finder())
ended = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *sys.argv[5:]])
loaded = [each for each in list(sys.modules.values()) if getattr(each, "__file__", None) == getattr(sys.modules.get(name), "__file__", "")]
is_run = run == [name] and all(isinstance(each.__spec__.loader, Mutated) for each in loaded)
sys.exit(100 + ended if is_run else 70)
"""  # noqa: E501
"""Run tests with a module whose first import, by whomever, is the mutated code.

Ends with 100 and the exit code of pytest: a process that fails by itself ends with 1, which is not a failed test.
"""

_OUTCOMES = {100: Outcome.NOT_SEEN, 101: Outcome.SEEN, 70: Outcome.NOT_RUN}


def of_columns(mutations: Sequence[Mutation]) -> list[Mutation]:
    """Return mutations with full names of modules; a module without a dot is one of columns."""
    return [(module if "." in module else f"{COLUMNS}.{module}", old, new) for module, old, new in mutations]


def path_of(module: str) -> Path:
    """Return the file of a module."""
    return _ROOT / f"{module.replace('.', '/')}.py"


def outcome_of(mutation: Mutation, tests: Sequence[str], folder: Path = _ROOT, seconds: float = _SECONDS) -> Outcome:
    """Run tests against a mutation; one of "" by "" changes nothing."""
    command = [sys.executable, "-c", _RUN, str(_BYTES), *mutation, *tests]
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        return Outcome.BROKEN
    return _OUTCOMES.get(ended, Outcome.BROKEN)


def run_all(mutations: Sequence[Mutation], tests_of: Callable[[Mutation], Sequence[str]]) -> None:
    """Run all mutations, or those of the modules that the command line names; end with an error if one is not seen."""
    chosen = [each for each in mutations if len(sys.argv) < 2 or each[0].rpartition(".")[2] in sys.argv[1:]]
    for module, old, new in chosen:
        source = path_of(module).read_text(encoding="utf-8")
        assert old in source, f"{module} has no {old!r}"
        compile(source.replace(old, new), f"{module} with {new!r} for {old!r}", "exec", dont_inherit=True)
    _check_baselines(chosen, tests_of)
    seen = 0
    for each in chosen:
        outcome = outcome_of(each, tests_of(each))
        seen += outcome is Outcome.SEEN
        if outcome is not Outcome.SEEN:
            print(f"{each[0]}: {each[1]!r} -> {each[2]!r}: {outcome.value}", flush=True)
    print(f"{seen} of {len(chosen)} mutations are seen; the list has {len(mutations)}")
    sys.exit(seen < len(chosen))


def _check_baselines(mutations: Sequence[Mutation], tests_of: Callable[[Mutation], Sequence[str]]) -> None:
    """Check that the tests pass where nothing is mutated: else whatever they say of a mutation is wrong."""
    for tests, module in {tuple(tests_of(each)): each[0] for each in mutations}.items():
        outcome = outcome_of((module, "", ""), tests)
        if outcome is not Outcome.NOT_SEEN:
            sys.exit(f"without a mutation, {module} and {' '.join(tests)}: {outcome.value}")
