"""Modules on their way to workers."""

from __future__ import annotations

import importlib
import sys
import threading
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from dstream.engine.spark.port import code as shipped_code
from dstream.engine.spark.port.code import Code


def test_nobody_runs_ahead_of_modules_that_another_thread_sends():
    """A job that starts before they have arrived would not find them."""
    sending, may_arrive, done = threading.Event(), threading.Event(), threading.Event()
    code = Code(lambda file: (sending.set(), may_arrive.wait(10)))
    first = threading.Thread(target=code.ship)
    second = threading.Thread(target=lambda: (code.ship(), done.set()))
    first.start()
    assert sending.wait(10)
    second.start()

    assert not done.wait(0.1)
    may_arrive.set()
    assert done.wait(10)
    first.join()


def test_what_was_not_sent_is_sent_again():
    """A server that could not be reached has none of the modules."""
    sent = []

    def refuse_once(file):
        sent.append(file)
        if len(sent) == 1:
            raise ConnectionError("gone")

    code = Code(refuse_once)
    with pytest.raises(ConnectionError, match="gone"):
        code.ship()
    code.ship()
    code.ship()

    assert len(sent) == 2


def test_of_a_package_in_two_folders_workers_get_the_files_that_are_imported(tmp_path, monkeypatch):
    """A package without an `__init__.py` has a file of each name: that of the first folder."""
    for folder, text in (("first", "1"), ("second", "2")):
        package = tmp_path / folder / "in_two_folders"
        package.mkdir(parents=True)
        (package / "both.py").write_text(f"FOLDER = {text}")
        (package / f"in_{folder}.py").touch()
        monkeypatch.syspath_prepend(tmp_path / folder)
    monkeypatch.setattr(sys, "path", [*sys.path[1:2], *sys.path[:1], *sys.path[2:]])
    imported = importlib.import_module("in_two_folders.both")
    monkeypatch.delitem(sys.modules, "in_two_folders.both")
    found: dict[str, bytes] = {}

    def keep(file):
        with zipfile.ZipFile(file) as archive:
            ours = [each for each in archive.namelist() if each.startswith("in_two_folders")]
            assert sorted(ours) == [f"in_two_folders/{each}.py" for each in ("both", "in_first", "in_second")]
            found.update({each: archive.read(each) for each in ours})

    Code(keep).ship()
    monkeypatch.delitem(sys.modules, "in_two_folders")

    assert (imported.FOLDER, found["in_two_folders/both.py"]) == (1, b"FOLDER = 1")


def test_workers_get_no_pages(tmp_path, monkeypatch):
    """An installed dstream has its documentation inside of the package, which is larger than the code of a program."""
    for name in ("__init__.py", "docs/index.md", "keys/docs/table.md"):
        (tmp_path / "dstream" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "dstream" / name).touch()
    monkeypatch.setattr(shipped_code, "_HOME", tmp_path)
    sent = shipped_code._files_by_name([tmp_path / "dstream"])

    assert sorted(map(str, sent)) == ["dstream/__init__.py", "dstream/keys/docs/table.md"]


def test_packages_travel_from_a_wheel(tmp_path, monkeypatch):
    """Imported from a wheel, as with `spark-submit --py-files`, they are in no folder; workers get the same."""
    wheel = tmp_path / "dstream_spark.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("dstream/a.py", "dstream/docs/page.md", "sources/b.py", "other/c.py", "x.dist-info/METADATA"):
            archive.writestr(name, "")
    monkeypatch.setattr(shipped_code, "_HOME", wheel)
    for name in ("dstream", "sources"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(__file__=str(wheel / name / "__init__.py")))
    places = [place for name in ("dstream", "sources") for place in shipped_code._places(name)]

    assert {str(name) for name in shipped_code._files_by_name(places)} == {"dstream/a.py", "sources/b.py"}


def test_a_file_of_the_user_that_has_a_short_name_travels_in_its_place(tmp_path, monkeypatch):
    """Whether it is loaded before the first stage or after: workers import what the driver imports."""
    (tmp_path / "reducers.py").write_text("")
    sources = ModuleType("sources")
    sources.__file__ = str(tmp_path / "sources.py")
    Path(sources.__file__).touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "sources", sources)
    monkeypatch.delitem(sys.modules, "reducers", raising=False)
    sent: list[str] = []

    def keep(file):
        with zipfile.ZipFile(file) as archive:
            sent.extend(name for name in archive.namelist() if name.startswith(("sources", "reducers", "collectors")))

    code = Code(keep)
    code.ship()
    assert set(sent) == {"sources.py", "collectors/__init__.py", "collectors/py.typed"}

    importlib.import_module("reducers")
    code.ship()
    monkeypatch.delitem(sys.modules, "reducers")
    assert sent[3:] == ["reducers.py"]


def test_links_that_lead_nowhere_or_in_circles_stay_here(tmp_path, monkeypatch):
    """A package may have links to data that is not there, and one to a folder that it lies in."""
    package = tmp_path / "linked_here"
    (package / "inside").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (tmp_path / "elsewhere.py").write_text("")
    (package / "linked.py").symlink_to(tmp_path / "elsewhere.py")
    (package / "data").symlink_to(tmp_path / "not there")
    (package / "gone.py").symlink_to(tmp_path / "not there.py")
    (package / "inside" / "circle").symlink_to(package)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("linked_here")
    sent = []
    Code(lambda path: sent.extend(zipfile.ZipFile(path).namelist())).ship()
    del sys.modules["linked_here"]

    assert [name for name in sent if name.startswith("linked_here")] == [
        "linked_here/__init__.py",
        "linked_here/linked.py",
    ]
