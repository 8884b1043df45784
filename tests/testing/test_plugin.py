"""What pytest finds without any set-up: the fixtures, the decorator, and nothing that disturbs other tests."""

from __future__ import annotations

TESTS = """
    import sys

    import pytest

    from dstream.testing import on_both_engines, same_everywhere as imported


    @pytest.mark.parametrize("factor", [1, 2])
    @on_both_engines(partitions=[1, 3])
    def test_marked(ctx, factor, tmp_path):
        stream = ctx.stream(range(6)).map(lambda n: n * factor)
        assert stream.to_list() == [n * factor for n in range(6)]
        print("partitions", ctx.engine, len(ctx.stream(range(6)).partitions()))


    class TestMethods:
        @on_both_engines
        def test_method(self, ctx):
            assert ctx.collections() == []
            ctx.get_list("names").append("Ada")


    def test_fixture(both_engines):
        from dstream import default_context
        assert both_engines.stream("ab").map(str.upper).to_list() == ["A", "B"]
        assert default_context() is both_engines
        assert both_engines.collections() == []
        both_engines.get_list("names").append("Ada")


    def test_function(same_everywhere):
        assert same_everywhere is imported
        assert same_everywhere(lambda s: s.map(abs), [1, -2], partitions=[2]) == [1, 2]


    def test_one_session(both_engines):
        if both_engines.engine == "spark":
            conf = both_engines.spark.sparkContext.getConf()
            print("master", conf.get("spark.master"), conf.get("spark.ui.enabled"))


    def test_that_fails(same_everywhere):
        same_everywhere(lambda s: s.map(lambda pair: pair.append(1)), [[0]])
"""

LIGHT = """
    import sys

    def test_nothing_was_loaded():
        assert "pytest_dstream" in sys.modules
        loaded = {name.partition(".")[0] for name in sys.modules}
        assert not loaded & {"dstream", "collectors", "sources", "reducers", "pyspark", "cloudpickle"}
"""


def test_everything_runs_on_both_engines(run_pytest):
    """Each case has its name; partitions are as asked; one session serves all and ends without noise.

    The traceback of a test that fails ends in the user's test, not inside the kit.
    """
    done = run_pytest(TESTS, "-v", "-rP", "-W", "error")
    out = done.stdout

    for case in ("marked[local-1]", "marked[spark-1-2]", "marked[spark-3-1]", "method[spark-2]", "fixture[local]"):
        assert f"test_{case} PASSED" in out, out
    assert "1 failed, 15 passed" in out, out
    assert "partitions spark 3" in out
    assert "master local[2] false" in out
    assert "AssertionError: a step changed item 0 of input 1 from [0] to [0, 1]" in out
    assert "everywhere.py" not in out
    assert done.stderr == ""


def test_without_java_the_spark_half_is_skipped(run_pytest):
    """The reason says what is missing; the local half runs."""
    out = run_pytest(TESTS, "-rs", "-k", "not fails", JAVA_HOME="/nowhere").stdout

    assert "not run on Spark: JAVA_HOME is /nowhere" in out
    assert "5 passed, 10 skipped, 1 deselected" in out, out


def test_other_projects_are_left_alone(run_pytest, tmp_path):
    """The plug-in loads no part of dstream, so that a `sources.py` of someone else is no matter."""
    (tmp_path / "sources.py").write_text("raise RuntimeError('not yours')")

    done = run_pytest(LIGHT, "-W", "error", "--strict-markers")

    assert "1 passed" in done.stdout, done.stdout
