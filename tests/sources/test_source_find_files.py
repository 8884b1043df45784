"""Which files a path, a glob, a directory or a URL means."""

from __future__ import annotations

import errno
import glob
import os
import pathlib

import fsspec
import pytest
from fsspec.registry import known_implementations

from dstream.errors import SetupError, SourceError
from dstream.filesystem.discovery import find_files, path_list
from sources import avro_records, csv_rows, json_lines, parquet_rows, text_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that is also the current one."""
    for name in ("b.txt", "a.txt", "c.log", ".hidden", "_SUCCESS", "sub/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*paths):
    """Find files and name them as seen from the current folder."""
    return [os.path.relpath(file.name) for file in find_files(path_list(paths))]


def test_find_files_takes_paths_of_any_kind(folder):
    """A str, a `Path` and several of them; all become absolute."""
    assert find_files(path_list("a.txt"))[0].name == str(folder / "a.txt")
    assert path_list(pathlib.Path("a.txt")) == ("a.txt",)
    assert path_list(iter(["a.txt", pathlib.Path("b.txt")])) == ("a.txt", "b.txt")


def test_find_files_sorts_and_reads_each_file_once(folder):
    """However often and in whatever order a file is named."""
    assert names("c.log", "b.txt", "./b.txt", "*.txt", folder / "a.txt") == ["a.txt", "b.txt", "c.log"]


def test_find_files_expands_globs(folder):
    """`**` goes down; directories that match are left out."""
    assert names("*.txt") == ["a.txt", "b.txt"]
    assert names("**/*.txt") == ["a.txt", "b.txt", "sub/d.txt"]
    assert names("*") == ["a.txt", "b.txt", "c.log"]


def test_a_glob_passes_over_markers_unless_it_asks_for_them(folder):
    """As a directory does; also over those in folders of markers. A path that is no glob is what it says."""
    (folder / "_temporary").mkdir()
    (folder / "_temporary/e.txt").write_text("")

    assert names("**/*.txt") == ["a.txt", "b.txt", "sub/d.txt"]
    assert names("_*", "_SUCCESS", "_temp*/*") == ["_SUCCESS", "_temporary/e.txt"]
    with pytest.raises(SourceError, match=r"no file matches .*\*CESS \(a glob matches .* no names that begin with"):
        names("*CESS")


def test_a_glob_of_a_url_passes_over_markers(folder):
    """As one of this machine does."""
    memory = fsspec.filesystem("memory")
    for name in ("part", "_SUCCESS", "_temporary/part"):
        memory.pipe(f"/markers/{name}", b"")

    found = [[file.name for file in find_files([f"memory://markers/{each}"])] for each in ("*", "**", "_*")]
    assert found == [["memory:///markers/part"], ["memory:///markers/part"], ["memory:///markers/_SUCCESS"]]


def test_find_files_lists_a_directory(folder):
    """The files directly inside, without hidden ones and markers."""
    assert names(folder) == ["a.txt", "b.txt", "c.log"]


def test_find_files_prefers_a_path_that_exists_to_a_glob(folder):
    """A file may have a bracket or a star in its name."""
    (folder / "[a].txt").write_text("")

    assert names("[a].txt") == ["[a].txt"]
    assert names("[b].txt") == ["b.txt"]


def test_find_files_expands_the_home_directory(folder, monkeypatch):
    """As a shell would have done."""
    monkeypatch.setenv("HOME", str(folder))

    assert names("~/a.txt") == ["a.txt"]


def test_find_files_knows_the_sizes(folder):
    """A pipe has none, so that it is read whole."""
    os.mkfifo(folder / "pipe")

    assert [file.size for file in find_files(["a.txt", "pipe"])] == [5, None]


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("nowhere://a.txt", ValueError, "fsspec knows no URLs of nowhere://"),
        ("zip://a.txt::nowhere://b.zip", ValueError, "fsspec knows no URLs of nowhere://"),
        ("lacking://a.txt", SetupError, "nothing here reads lacking://: Install what is lacking"),
    ],
)
def test_urls_that_nothing_reads_are_refused_at_the_call(monkeypatch, path, kind, words):
    """As those that nothing writes are: not when the stream runs, on a machine far away."""
    lacking = {"class": "no_such_package.Files", "err": "Install what is lacking"}
    monkeypatch.setitem(known_implementations, "lacking", lacking)
    for make in (text_files, csv_rows, json_lines, parquet_rows, avro_records):
        with pytest.raises(kind, match=words):
            make(path)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("none.txt", "cannot read .*none.txt: there is no such file or directory"),
        ("*.none", r"no file matches .*/\*.none"),
        ("s*b", "a glob matches no directories"),
        ("empty", "the directory .*empty holds no files"),
        ("nowhere://a.txt", "cannot read nowhere://a.txt: ValueError: Protocol not known"),
        ("memory://none/a.txt", "cannot read memory://none/a.txt: there is no such file"),
        ("memory://none/*", r"no file matches memory://none/\*"),
    ],
)
def test_find_files_names_what_is_missing(folder, path, words):
    """A `SourceError` that comes from the original error."""
    (folder / "empty").mkdir()

    with pytest.raises(SourceError, match=words) as caught:
        find_files([path])
    assert caught.value.__cause__ is not None


def test_a_directory_that_was_written_without_an_item_has_no_files(folder):
    """Its list says so. One that lists files which are not there keeps its error, and so does the mark of Spark."""
    done = folder / "done"
    (done / ".dstream").mkdir(parents=True)
    (done / "_SUCCESS").write_text('{"files": []}')
    memory = fsspec.filesystem("memory")
    memory.pipe("/ended/_SUCCESS", b'{"files": []}')

    assert find_files([str(done), f"file://{done}", "memory://ended"]) == []
    memory.rm("/ended", recursive=True)
    for content in ('{"files": ["part-000001-00000.txt"]}', "", "[]", "{"):
        (done / "_SUCCESS").write_text(content)
        with pytest.raises(SourceError, match="done holds no files"):
            find_files([str(done)])


def test_find_files_reports_a_link_that_leads_nowhere(folder):
    """A file that a directory lists but that cannot be read is never left out in silence."""
    os.symlink("nothing", folder / "link")

    with pytest.raises(SourceError, match=r"cannot read .*link: there is no such file"):
        find_files([str(folder)])


def test_find_files_reports_a_directory_it_may_not_list(folder, monkeypatch):
    """No permission is said as such."""

    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.scandir", refuse)

    with pytest.raises(SourceError, match=r"cannot read .*: this process may not read it"):
        find_files([str(folder)])


def test_path_list_refuses_bad_paths_at_the_call():
    """Nothing, empty names, and what is no path."""
    with pytest.raises(ValueError, match="paths is empty"):
        text_files([])
    with pytest.raises(ValueError, match="a path is empty"):
        text_files(["a", ""])
    for wrong in (5, [5], b"a"):
        with pytest.raises(TypeError, match=r"a path must be a str or an os\.PathLike"):
            text_files(wrong)


def test_paths_are_looked_up_at_splits(tmp_path, read):
    """A file that appears after the source was made is read (late binding)."""
    source = text_files(tmp_path / "*.txt")
    (tmp_path / "late.txt").write_text("here")

    assert read(source) == ["here"]


@pytest.fixture
def memory():
    """A folder in fsspec's file system in memory, removed afterwards."""
    import fsspec

    fs = fsspec.filesystem("memory")
    for name, text in {"/dir/b.txt": "3\n4", "/dir/a.txt": "1\n2\n", "/dir/_x": "no", "/dir/sub/c.txt": "5"}.items():
        fs.pipe(name, text.encode())
    yield fs
    fs.rm("/dir", recursive=True)


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("memory://dir/a.txt", ["1", "2"]),
        ("memory://dir", ["1", "2", "3", "4"]),
        ("memory://dir/*.txt", ["1", "2", "3", "4"]),
        ("memory://dir/**/*.txt", ["1", "2", "3", "4", "5"]),
    ],
)
def test_urls_work_as_local_paths_do(memory, read, tiny_splits, path, lines):
    """Files, directories and globs, cut by bytes."""
    assert read(text_files(path), parallelism=4) == lines


def test_urls_name_their_files(memory, read):
    """The name of a remote file is its URL."""
    assert read(text_files("memory://dir/a.txt", with_path=True))[0] == ("memory:///dir/a.txt", "1")


def test_urls_are_listed_afresh(memory, monkeypatch):
    """File systems such as S3 remember listings; a file that came since the last run must be seen."""
    forgotten = []
    monkeypatch.setattr(type(memory), "invalidate_cache", lambda fs: forgotten.append(fs))

    find_files(["memory://dir"])

    assert forgotten == [memory]


def test_urls_of_local_files_are_local_paths(folder, read):
    """`file://` names the same file as its path does."""
    assert read(text_files([f"file://{folder}/a.txt", "a.txt"])) == ["a.txt"]


def test_urls_may_be_chained(tmp_path, read):
    """A member of a zip archive has a name that says both."""
    import zipfile

    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.txt", "1\n2")
    source = text_files(f"zip://*.txt::file://{tmp_path}/x.zip", with_path=True)

    assert read(source) == [(f"zip://a.txt::file://{tmp_path}/x.zip", line) for line in ("1", "2")]


@pytest.mark.parametrize("pattern", ["*/x.txt", "**/x.txt", "**", "[ab]/*"])
def test_find_files_passes_over_no_folder_of_a_glob(tmp_path, monkeypatch, pattern):
    """One that cannot be listed may hold a file that matches."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text("x")
    scandir, lstat = os.scandir, os.lstat

    def failing(path, call):
        if str(path).endswith(("/b", "/b/x.txt")):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return call(path)

    monkeypatch.setattr(os, "scandir", lambda path=".": failing(path, scandir))
    monkeypatch.setattr(os, "lstat", lambda path: failing(path, lstat))
    with pytest.raises(SourceError, match="Input/output error"):
        names(str(tmp_path / pattern))


MAKERS = [text_files, csv_rows, json_lines, parquet_rows]


@pytest.mark.parametrize("maker", MAKERS)
def test_several_paths_need_no_list(maker, tmp_path):
    """One after another, lists among them, as a list of all of them."""
    paths = [tmp_path / name for name in "abc"]

    assert maker(*paths) == maker(paths) == maker(paths[0], paths[1:])
    with pytest.raises(ValueError, match="paths is empty"):
        maker()


@pytest.mark.parametrize("maker", MAKERS)
def test_an_encoding_is_no_path(maker, tmp_path, monkeypatch):
    """A second argument that names an encoding is refused, unless a file has that name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match="write encoding='utf-8-sig'"):
        maker("a", "utf-8-sig")
    (tmp_path / "latin-1").touch()
    assert maker("a", "latin-1").paths == ("a", "latin-1")


@pytest.fixture
def linked(tmp_path, monkeypatch):
    """A folder with links: to the folder above, to a sibling, to itself, to a file, and a hard link."""
    (tmp_path / "d/in").mkdir(parents=True)
    (tmp_path / "d/a.txt").write_text("a\n")
    (tmp_path / "d/in/b.txt").write_text("b\n")
    for link, target in [("d/up", ".."), ("e", "d"), ("d/self", "."), ("d/a2.txt", "a.txt"), ("d/z.txt", "in/b.txt")]:
        os.symlink(target, tmp_path / link)
    os.link(tmp_path / "d/a.txt", tmp_path / "d/in/hard.txt")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["**/*.txt"], ["d/a.txt", "d/in/b.txt"]),
        (["**"], ["d/a.txt", "d/in/b.txt"]),
        (["d/**/up/**/b.txt"], ["d/up/d/in/b.txt"]),
        (["e/**/*.txt"], ["e/a.txt", "e/in/b.txt"]),
        (["*/*.txt"], ["d/a.txt", "d/z.txt"]),
        (["*/*/*.txt"], ["d/in/b.txt", "d/in/hard.txt"]),
        (["d"], ["d/a.txt", "d/z.txt"]),
        (["e/a2.txt", "d/**/a*.txt", "d/in/hard.txt"], ["d/a.txt"]),
    ],
)
def test_links_give_no_file_twice(linked, patterns, found):
    """`**` goes through no link to a folder; a file has its name without links, if that was found."""
    assert names(*patterns) == found


@pytest.mark.parametrize(
    "pattern", ["*", "**", "**/*", "*/*", "s*/[!x]*", "**/sub/*", "sub/**", "**/**/*.txt", "./*.[ct]*"]
)
def test_a_glob_without_links_matches_what_the_standard_library_matches(folder, pattern):
    """Except for folders and markers."""
    (folder / "sub/deep/er").mkdir(parents=True)
    for name in ("sub/e.txt", "sub/deep/er/f.txt", "sub/.g.txt"):
        (folder / name).write_text(name)
    expected = [name for name in glob.glob(pattern, recursive=True) if os.path.isfile(name)]

    assert names(pattern) == sorted({os.path.normpath(name) for name in expected} - {"_SUCCESS"})
