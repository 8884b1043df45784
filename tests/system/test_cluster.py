"""A cluster of two worker processes: the same results as in one process, and the user's code is there."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.servers.java_of_programs import JavaOfPrograms
from tests.system.conftest import REPOSITORY, Script, environment

HELPERS = """
    import dataclasses
    import enum
    import math

    @dataclasses.dataclass(frozen=True)
    class Point:
        x: object
        y: object

    class Colour(enum.Enum):
        RED = 1

    KEYS = [
        None, "a", "b", "", b"a", 0, 0.0, -0.0, 1, 1.0, True, -1, -2, 2**70, 1.5, math.nan, -math.nan, math.inf,
        (), (None,), ("a", None), (("a", None), 1), (math.nan, None), Point(None, 1), Point("a", None),
        Point(1.0, math.nan),
        frozenset({None}), Colour.RED, Point, range(3),
    ]

    def shout(word):
        return word.upper() + "!"
"""

# The driver's folder is gone before the pipelines run, so that workers cannot look there.
CLUSTER = """
    import json, operator, os, shutil, sys
    folder = sys.argv[1]
    sys.path.insert(0, folder)
    import dstream as ds
    from collectors import counting, grouping_by, to_list, to_map
    import helpers_of_user
    from helpers_of_user import KEYS, shout
    from reducers import to_ilist
    from sources import items
    from package_of_user.deep import inner
    import dstream.operators.rows.batches  # It is loaded late, when the driver's folder is gone.

    def kind_of_key(pair):
        return type(pair[0]).__name__

    def pipelines(ctx):
        keys = ctx.stream(KEYS * 3, 8)
        numbered = ctx.stream([(key, n) for n, key in enumerate(KEYS * 3)], 8)
        many = ctx.stream(range(50_000), 8)
        return {
            "grouping_by": lambda: keys.collect(grouping_by(lambda key: (key,), counting())),
            "grouping_by to_list": lambda: numbered.collect(grouping_by(kind_of_key, to_list())),
            "to_map": lambda: numbered.collect(to_map(operator.itemgetter(0), lambda pair: [pair[1]], operator.add)),
            "distinct": lambda: keys.distinct().to_list(),
            "distinct by key": lambda: numbered.distinct(operator.itemgetter(0)).to_list(),
            "sorted": lambda: keys.sorted(key=repr).to_list(),
            "sorted far": lambda: many.map(lambda n: n * 7919 % 50_000).sorted(reverse=True).to_list(),
            "limit": lambda: keys.skip(3).limit(40).to_list(),
            "user module": lambda: ctx.stream(["a", "b"], 2).map(shout).to_list(),
        }

    def outcome(run):
        try:
            return repr(run())
        except Exception as error:
            return repr(error)

    def results(ctx):
        return {name: outcome(run) for name, run in pipelines(ctx).items()}

    def who(_):
        return os.getpid(), sys.executable, os.environ["PYTHONHASHSEED"]

    def told(word):
        import package_of_job.rules, rules_of_job
        return [len(ds.attached("words").read_text()), package_of_job.rules.answer(), rules_of_job.answer(), word]

    def archives_on_path():
        return [each for each in sys.path if each.endswith(".zip") and "python3" not in os.path.basename(each)]

    with ds.connect(engine="local") as ctx:
        expected = results(ctx)
    fast_start = os.environ.get("SPARK_SUBMIT_OPTS", "")
    config = {"spark.executorEnv.PYTHONPATH": "", "spark.executor.extraJavaOptions": fast_start}
    with ds.connect("local-cluster[2,1,1024]", config=config, storage=sys.argv[2]) as ctx:
        words = ctx.stream(["a", "b", "a"], 2)
        words.to_list()
        pipeline, carried = ds.Pipeline(), os.path.join(folder, "carried")
        pipeline.read_from(items("a")).map(told).write_to(to_ilist("told"))
        files = {"words": carried + "/words.txt"}
        modules = ["package_of_job", carried + "/rules_of_job.py"]
        job = ctx.new_job(pipeline, config=ds.JobConfig(files=files, modules=modules))
        shutil.rmtree(folder)
        job.join(100)
        print(json.dumps({
            "expected": expected,
            "found": results(ctx),
            "workers": sorted(set(ctx.stream(range(8), 8).map(who).to_list())),
            "shouted": words.map(helpers_of_user.shout).distinct().to_list(),
            "files": words.map(lambda word: helpers_of_user.__file__).distinct().to_list(),
            "grouped": words.collect(grouping_by(inner.first, counting())),
            "told": ctx.get_list("told").copy(),
            "path": archives_on_path(),
        }))
"""


@pytest.fixture(scope="module")
def cluster(script: Script, java: JavaOfPrograms, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the same pipelines give in this process and on two workers that cannot look into the driver's folders."""
    folder = tmp_path_factory.mktemp("only_the_driver_has_this")
    for package in ("dstream", "collectors", "reducers", "sources"):
        shutil.copytree(REPOSITORY / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "helpers_of_user.py").write_text(textwrap.dedent(HELPERS))
    inner = Path(folder, "package_of_user", "deep", "inner.py")
    inner.parent.mkdir(parents=True)
    for file in (inner.parent.parent / "__init__.py", inner.parent / "__init__.py"):
        file.write_text("")
    inner.write_text("def first(word):\n    return word[0]\n")
    carried = folder / "carried"
    carried.mkdir()
    (carried / "words.txt").write_text("the whale " * 500_000)
    for file, answer in ((carried / "rules_of_job.py", 1), (folder / "package_of_job/rules.py", 2)):
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"def answer():\n    return {answer}\n")
    ended = script(
        CLUSTER,
        str(folder),
        str(tmp_path_factory.mktemp("data")),
        env=environment(PYTHONPATH=None, **java()),
    )
    assert ended.stderr == ""
    return json.loads(ended.stdout)


@pytest.mark.parametrize(
    "operation",
    [
        "grouping_by",
        "grouping_by to_list",
        "to_map",
        "distinct",
        "distinct by key",
        "sorted",
        "sorted far",
        "limit",
        "user module",
    ],
)
def test_a_cluster_gives_what_one_process_gives(cluster: Any, operation: str) -> None:
    """None, NaN, zeros, tuples, dataclasses, enums and classes are the same keys in every worker process."""
    assert cluster["found"][operation] == cluster["expected"][operation]


def test_two_processes_run_the_interpreter_of_the_driver(cluster: Any) -> None:
    """Work is spread over two workers, each with the driver's interpreter and a fixed hash seed."""
    pids, interpreters, seeds = map(set, zip(*cluster["workers"], strict=True))

    assert len(pids) == 2
    assert interpreters == {sys.executable}
    assert seeds == {"0"}


def test_the_packages_and_the_modules_of_the_user_are_shipped(cluster: Any) -> None:
    """Workers that see none of the driver's folders import dstream and the user's modules and packages."""
    assert cluster["shouted"] == ["A!", "B!"]
    assert cluster["grouped"] == {"a": 2, "b": 1}


def test_what_travels_with_a_job_reaches_workers(cluster: Any) -> None:
    """A file, which is too large to travel with each task, and modules by name and by path."""
    assert cluster["told"] == [[5_000_000, 2, 1, "a"]]


def test_shipping_leaves_the_search_path_of_the_driver_alone(cluster: Any) -> None:
    """No archive stands on the driver's own search path, where it would hide the files that are edited."""
    assert cluster["path"] == []
