"""Files and modules that travel with a job: where functions find them, and what is refused."""

from __future__ import annotations

import shutil
import signal
import sys
import tarfile
import threading
import zipfile
from pathlib import Path
from uuid import uuid4

import pytest

import dstream as ds
from dstream.engine.tasks.process import archived, unpacked
from dstream.errors import IllegalStateError
from dstream.gatherers import map_concurrent
from dstream.jobs import attachments as job_files
from dstream.jobs.attachments import gathered, removed
from dstream.jobs.state import forget_driver
from dstream.values.attachments import files_here, using_files
from reducers import to_ilist
from tests.jobs.planned import plan_of


def text_of(item):
    """Return what is in the file `words`, and an item."""
    return f"{ds.attached('words').read_text()} {item}"


def answer_of(item):
    """Return what the module `rules_of_test` says."""
    import rules_of_test

    return rules_of_test.answer() + item


@pytest.fixture
def words(tmp_path):
    """A file."""
    path = tmp_path / "words.txt"
    path.write_text("the whale")
    return path


def module(folder: Path, answer: int, name: str = "rules_of_test") -> Path:
    """Write a module that gives an answer."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(f"def answer():\n    return {answer}\n")
    return path


DATA_BESIDE = """
from pathlib import Path

def answer():
    return int(Path(__file__).with_name("n").read_text())
"""


def ran(ctx, function, config, items=(1, 2)):
    """Run a job over some items, and return what it wrote."""
    out = f"out {uuid4()}"
    ctx.new_job(plan_of(ctx.stream(list(items), 2).map(function), to_ilist(out)), config=config).join(240)
    return ctx.get_list(out).copy()


def test_functions_of_a_job_read_its_files(engine, words):
    """In tasks, by the name that was given."""
    config = ds.JobConfig(files={"words": words})

    assert ran(engine.context, text_of, config) == ["the whale 1", "the whale 2"]


def test_functions_of_a_job_read_its_folders(engine, words):
    """Whole, with the last part of its path as its name."""
    config = ds.JobConfig(files=[words.parent])
    name = words.parent.name

    assert ran(engine.context, lambda n: (ds.attached(name) / "words.txt").read_text(), config) == ["the whale"] * 2


def test_functions_of_a_job_import_its_modules(engine, tmp_path):
    """By path; another job brings another module of the same name, and nothing is left behind."""
    path = list(sys.path)
    for answer in (10, 20):
        config = ds.JobConfig(modules=[module(tmp_path / f"in {answer}", answer)])
        assert ran(engine.context, answer_of, config) == [answer + 1, answer + 2]

    assert sys.path == path
    with pytest.raises(ModuleNotFoundError, match="rules_of_test"):
        ran(engine.context, answer_of, None)


def test_a_module_in_a_zip_file_is_unpacked(engine, tmp_path):
    """With the data beside it."""
    with zipfile.ZipFile(tmp_path / "rules.zip", "w") as archive:
        archive.writestr("rules_of_test/__init__.py", "from rules_of_test.inner import answer")
        archive.writestr("rules_of_test/inner.py", DATA_BESIDE)
        archive.writestr("rules_of_test/n", "30")
    config = ds.JobConfig(modules=[tmp_path / "rules.zip"])

    assert ran(engine.context, answer_of, config) == [31, 32]


def test_files_are_as_they_were_when_the_job_was_submitted(ctx, gate, words):
    """Also when it runs again."""
    out, config = f"out {uuid4()}", ds.JobConfig(files={"words": words})
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate).map(text_of), to_ilist(out)), config=config)
    assert gate.was_reached.wait(10)
    words.unlink()
    assert job.restart()
    gate.is_open.set()
    job.join(10)

    assert ctx.get_list(out).copy() == ["the whale 1"]


def test_whoever_goes_on_with_a_job_brings_its_files(connect, gate, words):
    """A driver in another process may stand on another machine."""
    ctx, other, out = connect(), connect(), f"out {uuid4()}"
    plan = plan_of(ctx.stream([1]).map(gate).map(text_of), to_ilist(out))
    cut_off = ctx.new_job(plan, name="one", config=ds.JobConfig(files={"words": words}))
    assert gate.was_reached.wait(10)
    forget_driver(cut_off.driver)
    words.write_text("the ship")
    plan = plan_of(other.stream([1]).map(text_of), to_ilist(out))
    again = other.new_job(plan, name="one", config=ds.JobConfig(files={"words": words}))
    again.join(10)
    gate.is_open.set()

    assert (again.id, other.get_list(out).copy()) == (cut_off.id, ["the ship 1"])


def test_a_job_with_files_goes_on_after_its_driver_was_killed(start, connect, place, words):
    """SIGKILL: nobody reads the folder that it leaves behind; without files the error says what is missing."""
    driver = start(KILLED, place, str(words))
    driver.says("reading")
    driver.signal(signal.SIGKILL)
    driver.ended()
    words.write_text("the ship")
    ctx = connect()
    plan = plan_of(ctx.stream([1]).map(text_of), to_ilist("out"))
    with pytest.raises(IllegalStateError, match=r"attached\('words'\): no job that runs here has files"):
        ctx.new_job(plan, name="one").join(10)
    ctx.new_job(plan, name="one", config=ds.JobConfig(files={"words": words})).join(10)

    assert ctx.get_list("out").copy() == ["the ship 1"]


KILLED = """
import sys, time, dstream as ds
from reducers import to_ilist
from tests.jobs.planned import plan_of

def text_of(item):
    text = ds.attached("words").read_text()
    print("reading", flush=True)
    time.sleep(3600)

with ds.connect(engine="local", storage=sys.argv[1]) as ctx:
    plan = plan_of(ctx.stream([1]).map(text_of), to_ilist("out"))
    ctx.new_job(plan, name="one", config=ds.JobConfig(files={"words": sys.argv[2]})).join()
"""


def test_two_jobs_at_once_have_each_their_own(ctx, tmp_path):
    """Of the same name, also in the threads of `map_concurrent`."""
    both = threading.Barrier(2, timeout=20)

    def read(item):
        both.wait()
        return ds.attached("words").read_text()

    jobs = {}
    for content in ("the whale", "the ship"):
        path, out = tmp_path / content, f"out {uuid4()}"
        path.write_text(content)
        plan = plan_of(ctx.stream([1]).gather(map_concurrent(2, read)), to_ilist(out))
        jobs[out] = ctx.new_job(plan, config=ds.JobConfig(files={"words": path}))
    for job in jobs.values():
        job.join(20)

    assert [ctx.get_list(out).copy() for out in jobs] == [["the whale"], ["the ship"]]


def test_a_thread_of_the_users_finds_what_only_one_job_has(words):
    """A thread that a function has started knows of no job; with two jobs the name may mean either."""
    first, second = gathered({"words": str(words)}, None), gathered({"words": str(words)}, None)

    def asked():
        found = []
        thread = threading.Thread(target=lambda: found.append(_tried(lambda: ds.attached("words").read_text())))
        thread.start()
        thread.join()
        return found[0]

    with using_files(first):
        assert asked() == "the whale"
        with using_files(second):
            assert isinstance(asked(), IllegalStateError)
    assert files_here() is None
    removed(first)
    removed(second)
    assert not Path(first.folder).exists()


def _tried(function):
    try:
        return function()
    except Exception as error:
        return error


def test_attached_says_what_there_is(ctx, words):
    """Outside of a job, and where the name is another one."""
    with pytest.raises(IllegalStateError, match=r"attached\('x'\): no job that runs here has files"):
        ds.attached("x")
    with pytest.raises(FileNotFoundError, match=r"no file 'words' is attached to this job; .* names 'word'"):
        ran(ctx, text_of, ds.JobConfig(files={"word": words}))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"files": "a.txt"}, TypeError, "files must be a list of paths, or a dictionary of them, not 'a.txt'"),
        ({"files": [3]}, TypeError, "files must hold paths, not 3"),
        ({"files": [""]}, ValueError, "one is empty"),
        ({"files": ["a/x", "b/x"]}, ValueError, "two files have the name 'x'"),
        ({"files": {1: "x"}}, TypeError, "the name of a file must be a text, not 1"),
        ({"modules": "rules"}, TypeError, "modules must be a list of names or paths, not 'rules'"),
        ({"modules": [3]}, TypeError, "modules must hold paths, not 3"),
        ({"modules": ["a b"]}, ValueError, "'a b' is no name of a module"),
        ({"modules": ["json"]}, ValueError, "'json' is a module that workers have"),
        ({"modules": ["x/dstream"]}, ValueError, "'dstream' is a module that workers have"),
    ],
)
def test_job_config_refuses_what_cannot_travel(given, error, message):
    """By name, when the config is made."""
    with pytest.raises(error, match=f"JobConfig: .*{message}"):
        ds.JobConfig(**given)


def test_what_is_not_there_is_refused_before_the_job_is_registered(ctx, tmp_path):
    """The message names the file or the module."""
    broken = tmp_path / "broken.zip"
    broken.write_text("no archive")
    for given, error, message in (
        ({"files": {"words": tmp_path / "gone"}}, FileNotFoundError, r"'words' is to be .*/gone, which is not there"),
        ({"modules": [tmp_path / "gone.py"]}, FileNotFoundError, "gone.py is not there"),
        ({"modules": ["gone_of_test"]}, ModuleNotFoundError, "there is no module 'gone_of_test' here"),
        ({"modules": [broken]}, ValueError, "broken.zip is no zip file"),
    ):
        with pytest.raises(error, match=message):
            ran(ctx, str, ds.JobConfig(**given))
    assert ctx.jobs() == []


def test_a_module_of_another_content_is_refused(ctx, tmp_path):
    """Where this process has loaded it, or another job that runs here brings it: a process has one of a name."""
    other = module(tmp_path / "one", 1, "planned_of_test")
    sys.path.insert(0, str(other.parent))
    __import__("planned_of_test")
    sys.path.remove(str(other.parent))
    with pytest.raises(ValueError, match="this process has loaded another module 'planned_of_test'"):
        ran(ctx, str, ds.JobConfig(modules=[module(tmp_path / "two", 2, "planned_of_test")]))
    assert ran(ctx, str, ds.JobConfig(modules=[other])) == ["1", "2"]
    del sys.modules["planned_of_test"]
    running = gathered(None, [str(module(tmp_path / "three", 3))])
    with (
        using_files(running),
        pytest.raises(IllegalStateError, match=r"another job .* 'rules_of_test' of other content"),
    ):
        ran(ctx, answer_of, ds.JobConfig(modules=[module(tmp_path / "four", 4)]))
    removed(running)


def test_what_travels_is_kept_as_plain_data(words):
    """Paths are whole, so that the folder of the process does not matter."""
    config = ds.JobConfig(files=[words], modules=["rules", "x/rules.py"])

    assert config.files == {"words.txt": str(words)}
    assert config.modules == ("rules", str(Path.cwd() / "x/rules.py"))
    assert ds.JobConfig.from_json(config.to_json()) == config
    assert hash(config) == hash(ds.JobConfig.from_json(config.to_json()))


def test_a_fork_removes_no_files(words):
    """They are those of the process that has made them."""
    files = gathered({"words": str(words)}, None)
    job_files._gathered[files.folder] += 1  # as if another process had made them
    removed(files)
    assert Path(files.folder).exists()
    shutil.rmtree(files.folder)


def test_an_archive_is_unpacked_once(words, tmp_path):
    """By whichever task is first; the others find it whole."""
    words.chmod(0o755)
    files = gathered({"words": str(words)}, ["tests.jobs.planned"])
    pieces, target = archived(files.folder), tmp_path / "unpacked"
    threads = [threading.Thread(target=unpacked, args=(pieces, target)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    removed(files)

    assert (target / files.files["words"]).read_text() == "the whale"
    assert (target / files.files["words"]).stat().st_mode & 0o100
    assert (target / "named/tests/jobs/planned.py").exists()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("unpacked")] == ["unpacked"]


def test_an_archive_that_is_cut_off_leaves_nothing(words, tmp_path):
    """As where the disk of a worker is full: the attempt of a task that comes next finds as much room as this one."""
    job = gathered({"words.txt": str(words)}, None)
    target = tmp_path / "worker" / job.name
    target.parent.mkdir()
    whole = b"".join(archived(job.folder))
    with pytest.raises(tarfile.ReadError):
        unpacked([whole[: whole.index(words.read_bytes()) + 1]], target)

    assert list(target.parent.iterdir()) == []
    removed(job)


def test_files_that_cannot_be_told_apart_are_removed(words, tmp_path, monkeypatch):
    """A module that cannot be read any more, as its disk is gone."""
    (tmp_path / "counted.py").write_text("COUNT = 1")
    folders = set(job_files._gathered)

    def fails(place):
        raise OSError("no such device")

    monkeypatch.setattr(job_files, "_digest", fails)
    with pytest.raises(OSError, match="no such device"):
        gathered(None, [str(tmp_path / "counted.py")])

    assert set(job_files._gathered) == folders
