"""Imports point the way that the contracts in pyproject.toml say, and each contract bites."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.servers.loaded_python import running_python

ROOT = Path(__file__).parents[2]

LEGAL = {
    "dstream/__init__.py": "from dstream.session import connect",
    "dstream/errors.py": "",
    "dstream/base/__init__.py": "import dstream.errors",
    "dstream/failures/__init__.py": "import dstream.errors, dstream.base",
    "dstream/values/__init__.py": "import dstream.errors, dstream.base, dstream.failures",
    "dstream/keys/__init__.py": "import dstream.errors, dstream.values",
    "dstream/expressions/__init__.py": "import dstream.values",
    "dstream/filesystem/__init__.py": "import dstream.base, dstream.values",
    "dstream/spi/__init__.py": "import dstream.values, dstream.failures",
    "dstream/schema/__init__.py": "import dstream.spi, dstream.keys",
    "dstream/arguments.py": "import dstream.spi, dstream.values",
    "dstream/windows/__init__.py": "import dstream.spi, dstream.values",
    "dstream/delta/__init__.py": "import dstream.schema, dstream.filesystem",
    "dstream/gatherers/__init__.py": "import dstream.spi, dstream.errors, dstream.keys, dstream.arguments",
    "dstream/plan/__init__.py": "import dstream.spi, dstream.keys",
    "dstream/plan/operations/streams.py": "import dstream.spi",
    "dstream/plan/operations/__init__.py": "",
    "dstream/plan/operations/calls.py": "import dstream.plan.operations.streams",
    "dstream/plan/rewrite.py": "import dstream.plan.operations.calls",
    "dstream/operators/__init__.py": "import dstream.spi, dstream.keys, dstream.windows, dstream.plan",
    "dstream/operators/rows/__init__.py": "",
    "dstream/operators/rows/operations.py": "import dstream.plan.operations.streams, dstream.failures",
    "dstream/processors/__init__.py": "import dstream.operators, dstream.plan",
    "dstream/storage/__init__.py": "import dstream.spi, dstream.base, dstream.delta, dstream.schema",
    "dstream/connectors/__init__.py": "",
    "dstream/connectors/memory.py": "import dstream.spi",
    "dstream/connectors/base.py": "import dstream.schema, dstream.connectors.memory",
    "dstream/connectors/files/__init__.py": "import dstream.filesystem, dstream.delta, dstream.connectors.base",
    "dstream/connectors/kafka/__init__.py": "import dstream.connectors.base",
    "dstream/engine/__init__.py": "",
    "dstream/engine/inprocess/__init__.py": "import dstream.processors",
    "dstream/engine/local/__init__.py": "import dstream.operators.rows.operations, dstream.processors",
    "dstream/engine/tasks/__init__.py": "import dstream.operators.rows.operations, pyspark.sql",
    "dstream/engine/spark/__init__.py": "import dstream.engine.tasks, pyspark.sql",
    "dstream/explain/__init__.py": "import dstream.engine, dstream.plan",
    "dstream/stream/__init__.py": "import dstream.plan, dstream.gatherers, dstream.explain, dstream.collectors",
    "dstream/collections/__init__.py": "import dstream.stream",
    "dstream/pipeline/__init__.py": (
        "import dstream.stream, dstream.plan, dstream.collectors, dstream.suggestions.stages"
    ),
    "dstream/core/__init__.py": "import dstream.pipeline, dstream.stream, dstream.collectors",
    "dstream/jobs/__init__.py": "import dstream.pipeline",
    "dstream/suggestions/__init__.py": "",
    "dstream/suggestions/packages.py": "",
    "dstream/suggestions/stages.py": "import dstream.stream",
    "dstream/session/__init__.py": "import dstream.session.context",
    "dstream/session/context.py": "import dstream.collections, dstream.stream, dstream.collectors",
    "dstream/session/connection.py": "import dstream.engine.local, dstream.engine.spark, dstream.storage",
    "dstream/testing/__init__.py": "import dstream.session, dstream.stream, dstream.plan, dstream.sources",
    "dstream/command/__init__.py": "import dstream.session, dstream.collectors, dstream.reducers, dstream.sources",
    "dstream/__main__.py": "import dstream.command",
    "dstream/collectors/__init__.py": (
        "import dstream.arguments, dstream.keys, dstream.spi, dstream.suggestions.packages"
    ),
    "dstream/reducers/__init__.py": "import dstream.connectors.files, dstream.schema, dstream.suggestions.packages",
    "dstream/sources/__init__.py": "import dstream.connectors.files, dstream.filesystem, dstream.suggestions.packages",
    **{f"{name}/__init__.py": f"import dstream.{name}" for name in ("collectors", "reducers", "sources")},
}
"""The smallest tree with every module that the contracts name, and every kind of import that they allow."""

LAYERS = "A room of dstream imports only from the lines below its own"
FACES = "Sources and reducers are faces of connectors"
SHORT_NAMES = "The library never needs the short names: a user's file may have one of them"
FACE_USERS = "Only packages that users call import sources and reducers"
COLLECTOR_USERS = "Only packages that users call import collectors"
CONNECTORS = "Connectors do not import each other"
ENGINE_USERS = "Only the session imports an engine"
STORAGE_USERS = "Only the session imports the storage"
ENGINES = "No engine imports another"
CALLS = "Engines know no call that is rewritten as other operations"
PYSPARK = "Only the Spark engine, and what its workers run, import pyspark"

ILLEGAL = [
    (LAYERS, "dstream/errors.py", "import dstream.values"),
    (LAYERS, "dstream/base/__init__.py", "import dstream.values"),
    (LAYERS, "dstream/failures/__init__.py", "import dstream.values"),
    (LAYERS, "dstream/keys/__init__.py", "import dstream.spi"),
    (LAYERS, "dstream/spi/__init__.py", "import dstream.plan"),
    (LAYERS, "dstream/spi/__init__.py", "import dstream.windows"),
    (LAYERS, "dstream/filesystem/__init__.py", "import dstream.schema"),
    (LAYERS, "dstream/schema/__init__.py", "import dstream.delta"),
    (LAYERS, "dstream/windows/__init__.py", "import dstream.operators"),
    (LAYERS, "dstream/operators/__init__.py", "import dstream.processors"),
    (LAYERS, "dstream/processors/__init__.py", "import dstream.engine"),
    (LAYERS, "dstream/plan/__init__.py", "import dstream.stream"),
    (LAYERS, "dstream/plan/__init__.py", "import dstream.gatherers"),
    (LAYERS, "dstream/gatherers/__init__.py", "import dstream.plan"),
    (LAYERS, "dstream/operators/rows/operations.py", "import dstream.stream"),
    (LAYERS, "dstream/engine/spark/__init__.py", "import dstream.explain"),
    (LAYERS, "dstream/storage/__init__.py", "import dstream.connectors"),
    (LAYERS, "dstream/connectors/memory.py", "import dstream.plan, dstream.storage"),
    (LAYERS, "dstream/collections/__init__.py", "import dstream.session"),
    (LAYERS, "dstream/pipeline/__init__.py", "import dstream.collections"),
    (LAYERS, "dstream/stream/__init__.py", "import dstream.pipeline"),
    (LAYERS, "dstream/session/__init__.py", "import dstream.testing"),
    (LAYERS, "dstream/session/__init__.py", "import dstream.command"),
    (LAYERS, "dstream/unplaced.py", ""),
    (LAYERS, "dstream/collectors/__init__.py", "import dstream.stream"),
    (LAYERS, "dstream/collectors/__init__.py", "import dstream.plan"),
    (LAYERS, "dstream/collectors/__init__.py", "import dstream.windows"),
    (LAYERS, "dstream/collectors/__init__.py", "import dstream.testing"),
    (LAYERS, "dstream/spi/__init__.py", "import dstream.collectors"),
    (LAYERS, "dstream/sources/__init__.py", "import dstream.session"),
    (FACES, "dstream/sources/__init__.py", "import dstream.plan"),
    (FACES, "dstream/reducers/__init__.py", "import dstream.collectors"),
    (FACES, "dstream/reducers/__init__.py", "import dstream.storage"),
    (SHORT_NAMES, "dstream/connectors/files/__init__.py", "import sources"),
    (SHORT_NAMES, "dstream/stream/__init__.py", "import collectors"),
    (SHORT_NAMES, "dstream/command/__init__.py", "import reducers"),
    (FACE_USERS, "dstream/stream/__init__.py", "import dstream.reducers"),
    (FACE_USERS, "dstream/session/context.py", "import dstream.sources"),
    (COLLECTOR_USERS, "dstream/engine/local/__init__.py", "import dstream.collectors"),
    (COLLECTOR_USERS, "dstream/plan/__init__.py", "import dstream.collectors"),
    (CONNECTORS, "dstream/connectors/files/__init__.py", "import dstream.connectors.kafka"),
    (CONNECTORS, "dstream/connectors/base.py", "import dstream.connectors.files"),
    (ENGINE_USERS, "dstream/stream/__init__.py", "import dstream.engine.local"),
    (ENGINE_USERS, "dstream/command/__init__.py", "import dstream.engine.local"),
    (ENGINE_USERS, "dstream/collections/__init__.py", "import dstream.engine.local"),
    (ENGINE_USERS, "dstream/testing/__init__.py", "import dstream.engine.local"),
    (STORAGE_USERS, "dstream/collections/__init__.py", "import dstream.storage"),
    (STORAGE_USERS, "dstream/testing/__init__.py", "import dstream.storage"),
    (ENGINES, "dstream/engine/inprocess/__init__.py", "import dstream.engine.local"),
    (ENGINES, "dstream/engine/local/__init__.py", "import dstream.engine.spark"),
    (ENGINES, "dstream/engine/spark/__init__.py", "import dstream.engine.local"),
    (CALLS, "dstream/engine/local/__init__.py", "import dstream.plan.operations.calls"),
    (CALLS, "dstream/engine/local/__init__.py", "import dstream.plan"),
    (CALLS, "dstream/engine/spark/__init__.py", "import dstream.plan.rewrite"),
    (PYSPARK, "dstream/session/context.py", "import pyspark"),
    (PYSPARK, "dstream/operators/rows/operations.py", "import pyspark.sql"),
    (PYSPARK, "dstream/sources/__init__.py", "import pyspark"),
]


LINT = "import importlinter.cli as cli, sys; sys.exit(cli.lint_imports(no_cache=True, no_logo=True))"


@pytest.fixture(scope="module")
def broken_contracts(tmp_path_factory):
    """Run the contracts of this repository on a tree and return the names of those that do not hold."""
    script = tmp_path_factory.mktemp("lint") / "lint.py"
    script.write_text(LINT)

    def broken_contracts(tree: Path) -> set[str]:
        run = python.run(script, cwd=tree, env=os.environ)
        broken = set(re.findall(r"^(.+) BROKEN(?: \(.*\))?$", run.stdout, re.MULTILINE))
        assert bool(broken) == bool(run.returncode), f"the contracts could not be checked:\n{run.stdout}{run.stderr}"
        return broken

    with running_python(["importlinter.cli"]) as python:  # Without dstream, which is that of the tree.
        yield broken_contracts


@pytest.fixture
def tree(tmp_path):
    """A copy of the smallest legal tree, under the contracts of this repository."""
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    for path, text in LEGAL.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text + "\n")
    return tmp_path


def test_imports_of_this_repository_keep_every_contract(broken_contracts):
    """No module imports what its contract forbids."""
    assert broken_contracts(ROOT) == set()


def test_imports_that_the_design_allows_break_no_contract(broken_contracts, tree):
    """The contracts forbid no more than they should."""
    assert broken_contracts(tree) == set()


def test_imports_for_type_checking_do_not_count(broken_contracts, tree):
    """An import that only a type checker sees loads nothing, so it may point anywhere."""
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import dstream.stream, pyspark\n"
    (tree / "dstream/values/__init__.py").write_text(text)

    assert broken_contracts(tree) == set()


@pytest.mark.parametrize(("contract", "path", "text"), ILLEGAL, ids=[f"{path}: {text}" for _, path, text in ILLEGAL])
def test_imports_that_point_the_wrong_way_break_their_contract(broken_contracts, tree, contract, path, text):
    """One forbidden import is enough for the contract against it to fail."""
    (tree / path).write_text(LEGAL.get(path, "") + "\n" + text + "\n")

    assert contract in broken_contracts(tree)


def test_imports_each_contract_has_a_case_that_breaks_it():
    """A contract that is added without a case above could be one that never fails."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]

    assert {contract["name"] for contract in stated} == {contract for contract, _, _ in ILLEGAL}


def test_imports_of_dstream_load_no_pyspark():
    """`import dstream` and the plug-ins are quick: Spark comes with the first job that needs it."""
    command = "import collectors, dstream, reducers, sources, sys; print('pyspark' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)

    assert run.stdout == "False\n"


def test_imports_of_sources_and_reducers_load_no_library_of_a_format():
    """Each comes with the first call that needs it: pyarrow takes a second on a busy machine."""
    command = (
        "import collectors, reducers, sources, sys\n"
        "for package in (collectors, reducers, sources): [getattr(package, name) for name in package.__all__]\n"
        "print({'confluent_kafka', 'fastavro', 'fsspec', 'numpy', 'pandas', 'pyarrow', 'sqlalchemy'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)

    assert run.stdout == "set()\n"


@pytest.mark.parametrize(
    ("written", "is_loaded"), [("text", False), ("json", False), ("csv", False), ("parquet", True), ("delta", True)]
)
def test_imports_of_written_files_have_pyarrow_for_columnar_formats_alone(tmp_path, written, is_loaded):
    """On the local engine: lines of text are written without it."""
    command = (
        "import sys; from dstream import Stream; from reducers import to_files\n"
        f"Stream.of({{'n': 1}}, {{'n': 2}}).collect(to_files({str(tmp_path / 'out')!r}, format={written!r}))\n"
        "print('pyarrow' in sys.modules)"
    )
    environment = {**os.environ, "DSTREAM_ENGINE": "local"}
    run = subprocess.run([sys.executable, "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True)

    assert run.stdout == f"{is_loaded}\n", run.stderr


def test_imports_of_dstream_load_no_pipelines():
    """Their modules come when somebody asks for `dstream.Pipeline`."""
    command = "import dstream, sys; print('dstream.pipeline' in sys.modules, dstream.Pipeline.__name__)"
    run = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)

    assert run.stdout == "False Pipeline\n"


def test_imports_of_dstream_are_quick():
    """What takes long to import comes when it is used; it may take 0.15 s, and ten times as much is a mistake.

    The packages are counted, since that is the same on every machine; the time is that of the CPU, with a wide margin.
    """
    command = "import dstream, sys, time; print(time.process_time(), *sys.modules)"
    run = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, *modules = run.stdout.split()

    slow = {
        "pyarrow",
        "pandas",
        "fsspec",
        "cloudpickle",
        "msgpack",
        "pyspark",
        "click",
        "rich",
        "IPython",
        "more_itertools",
    }
    rare = {"html", "shutil", "random", "traceback"}
    assert (slow | rare).isdisjoint(modules)
    ours = [name for name in modules if name.partition(".")[0] == "dstream"]
    unused = {
        "dstream.engine.local",
        "dstream.engine.spark",
        "dstream.connectors.files.text",
        "dstream.connectors.files.parquet",
        "dstream.reducers",
        "dstream.sources",
        "dstream.collections",
        "tomllib",
    }
    assert unused.isdisjoint(modules)
    assert len(ours) <= 145
    assert float(seconds) < 1.5


def test_imports_of_a_first_local_result_are_what_its_plan_needs():
    """What spills, pickles, processes graphs or evaluates expressions comes with the first plan that does."""
    command = "import dstream, sys; dstream.Stream.of(1, 2).map(str).to_list(); print(*sys.modules)"
    environment = {**os.environ, "DSTREAM_ENGINE": "local"}
    run = subprocess.run([sys.executable, "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True)

    others = {"cloudpickle", "tempfile", "dstream.expressions", "dstream.plan.processor_graph", "dstream.spi.processor"}
    assert others.isdisjoint(run.stdout.split()), run.stderr
    assert "dstream.engine.local" in run.stdout.split(), run.stderr


def test_imports_of_a_first_result_by_a_graph_in_this_process_are_what_its_plan_needs(tmp_path):
    """A plan over few lines takes a tenth of the time of its imports: what it does not need waits."""
    command = (
        "import sys, dstream as ds; from sources import text_files; from reducers import to_imap\n"
        "open('few.txt', 'w').write('one two\\nthree')\n"
        "with ds.connect() as ctx:\n"
        "    words = ctx.read(text_files('few.txt')).flat_map(str.split)\n"
        "    words.collect(to_imap('words', lambda word: word, lambda word: 1, int.__add__))\n"
        "print(*sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)

    others = {"importlib.metadata", "tarfile", "email.message", "pandas", "pyspark", "obstore", "fsspec"}
    assert others.isdisjoint(run.stdout.split()), run.stderr
    assert "dstream.engine.inprocess" in run.stdout.split(), run.stderr
