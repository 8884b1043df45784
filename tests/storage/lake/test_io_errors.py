"""A disk or a network drive that fails: only "not found" means that nothing is there."""

from __future__ import annotations

import errno
import os

import pytest

from dstream.errors import DStreamError, EngineError, SetupError
from dstream.filesystem.local import LocalFolder
from dstream.storage import Settings, open_storage

CODES = [errno.EIO, errno.ESTALE, errno.EACCES]


@pytest.fixture(params=CODES, ids=errno.errorcode.get)
def failing(request, monkeypatch):
    """Fail calls of the system on paths with some part: `failing(part)`; `failing(None)` ends it."""
    wanted = []

    def tampered(call):
        def instead(path=".", *arguments, **named):
            if wanted and wanted[-1] and wanted[-1] in str(path):
                raise OSError(request.param, os.strerror(request.param), path)
            return call(path, *arguments, **named)

        return instead

    for name in ("stat", "lstat", "scandir", "listdir"):
        monkeypatch.setattr(os, name, tampered(getattr(os, name)))
    monkeypatch.setattr("builtins.open", tampered(open))
    return wanted.append


def test_log_that_cannot_be_looked_at_is_no_log_without_news(lake, failing):
    """A handle does not give a value that was overwritten since."""
    store = lake.map()
    lake.put(store, a=1)
    lake.put(lake.map(), a=2)
    failing(f"{1:020d}.json")

    with pytest.raises(EngineError, match=r"map 'm': looking for .*0001\.json failed: .*; \w+"):
        store.get_many(["a"])
    failing(None)
    assert store.get_many(["a"]) == [2]


@pytest.mark.parametrize("part", ["/names", "/names/map", "/names/map/n"])
def test_names_that_cannot_be_listed_are_an_error(lake, failing, part):
    """Neither a part of the names nor, for ever, none."""
    lake.map(name="m"), lake.map(name="n")
    storage = lake.storage()
    failing(part)

    for ask in (storage.names, lambda: lake.map(name="n")):
        with pytest.raises(EngineError, match=r"the storage .*: listing .* failed: .*; \w+"):
            ask()


def test_name_that_is_made_and_not_listed_is_read_all_the_same(lake, monkeypatch):
    """A network drive may list a new file late; then the file itself says what is there."""
    lake.put(lake.map(), a=1)
    (lake.path / "names/map/m/_last_created").unlink()
    monkeypatch.setattr("dstream.storage.lake.catalog._complete", lambda *_: [])

    assert lake.content(lake.map()) == {"a": 1}


@pytest.mark.parametrize("ask", [lambda lake: lake.content(lake.map()), lambda lake: lake.map().vacuum(0)])
def test_collection_that_cannot_be_opened_or_listed_is_an_error(lake, failing, ask):
    """Whatever reads below its folder says which collection it was."""
    lake.put(lake.map(), a=1)
    failing("/data/")

    with pytest.raises(EngineError, match=r"map 'm': \w+ .* failed: "):
        ask(lake)


def test_data_file_that_cannot_be_read_is_not_called_damaged(lake, failing):
    """What a drive refuses may be whole."""
    store = lake.map()
    lake.put(store, a=1)
    failing(".parquet")

    with pytest.raises(EngineError, match=r"map 'm': reading .*parquet failed"):
        lake.map().get_many(["a"])


def test_folder_that_cannot_be_looked_at_is_not_made_anew(tmp_path, failing):
    """Making the folders of a new file stops at one that cannot be looked at."""
    failing("lake")
    with pytest.raises(OSError, match="lake"):
        LocalFolder(str(tmp_path / "lake"))._make_folder(str(tmp_path / "lake/names"))


def test_storage_that_cannot_be_looked_at_is_an_error(tmp_path, failing):
    """Opening says what it cannot look at."""
    failing("lake")
    with pytest.raises(DStreamError, match=r"storage .*lake"):
        open_storage(str(tmp_path / "lake"), Settings())


def test_storage_below_a_file_is_refused(tmp_path):
    """A part of the path that is a file is no folder that is yet to be made."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(SetupError, match=r"a folder, and .*file/lake"):
        open_storage(str(tmp_path / "file/lake"), Settings())
