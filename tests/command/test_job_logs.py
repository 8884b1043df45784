"""`dstream jobs logs`: what drivers have said, and no other file that a record may name."""

from __future__ import annotations

import os

import pytest

from dstream.command.jobs import is_log, log_of, noted
from dstream.command.submission import _appending
from reducers import to_ilist
from tests.jobs.planned import plan_of


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """A folder of the user's programs that nobody else uses."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def logs_of(command, storage, monkeypatch):
    """Run the command for a job whose record names this file."""

    def run(path):
        monkeypatch.setenv("DSTREAM_JOB_LOG", str(path))
        storage.new_job(plan_of(storage.stream([1]), to_ilist("out")), name="sales").join()
        return command("jobs", "logs", "sales")

    return run


def test_a_file_that_is_no_log_is_not_shown(logs_of, tmp_path):
    """Whoever wrote the record may have named any file of the user's."""
    (tmp_path / "key").write_text("secret")
    ended = logs_of(tmp_path / "key")

    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr.endswith("/key, which no dstream submit of yours has written\n")


def test_a_log_elsewhere_is_known_by_the_note_of_it(logs_of, tmp_path):
    """`--log FILE` may name any place."""
    (tmp_path / "there").write_text("begins\n")
    noted("sales", tmp_path / "there")

    assert logs_of(tmp_path / "there").stdout == "begins\n"


def test_a_log_among_the_others_needs_no_note(logs_of):
    """It stands in the user's folder."""
    log = log_of("a/b")
    noted("a/b", log)
    log.write_text("begins\n")

    assert (logs_of(log).stdout, list(log.parent.iterdir())) == ("begins\n", [log])


def test_what_leads_out_of_the_folder_is_no_log(tmp_path):
    """Neither by `..`, nor by a link that is no note; a pipe would never end."""
    folder = log_of("x").parent
    folder.mkdir(parents=True)
    (tmp_path / "key").write_text("secret")
    (folder / "link.log").symlink_to(tmp_path / "key")
    (folder / "loop.at").symlink_to(folder / "loop.at")
    os.mkfifo(folder / "pipe.log")

    assert not any(map(is_log, (folder / ".." / ".." / ".." / "key", folder / "link.log", folder / "pipe.log", folder)))
    assert is_log(folder / "gone.log")


def test_a_log_is_private(tmp_path):
    """The output of a script may be meant for nobody else, whatever the mask says."""
    log = log_of("x")
    mask = os.umask(0)
    try:
        noted("x", log)
        with _appending(log) as file:
            file.write(b"password")
    finally:
        os.umask(mask)

    assert [path.stat().st_mode & 0o777 for path in (log, log.parent)] == [0o600, 0o700]
