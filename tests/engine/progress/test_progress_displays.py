"""How the line is drawn in a terminal, in a notebook and in a log."""

from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace

import pytest

from dstream.engine.display import Notebook, Plain, Terminal, chosen, is_terminal

DRAWN = "\x1bD\x1b[A\x1b7\r\n{}\x1b[K\x1b8"


class Tty(io.StringIO):
    def isatty(self):
        super().isatty()  # It raises if the stream is closed, as that of a file does.
        return True


@pytest.fixture
def install(monkeypatch):
    """Replace stdout and stderr by one terminal, from the call on; pytest sets them anew before a test."""

    def now():
        stream = Tty()
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.delitem(sys.modules, "IPython", raising=False)
        return stream

    return now


def test_a_terminal_shows_the_line_below_the_cursor(install):
    """The cursor stays, and the line is erased from there on."""
    tty = install()
    terminal = Terminal(tty)
    terminal.draw("0:01", 1)
    terminal.draw("0:02", 2)
    terminal.erase()
    terminal.erase()

    assert tty.getvalue() == DRAWN.format("0:01") + DRAWN.format("0:02") + "\x1b[J"
    assert (sys.stdout, sys.stderr) == (tty, tty)


def test_what_is_printed_takes_the_place_of_the_line(install):
    """Also from another thread, and to either stream."""
    tty = install()
    Terminal(tty).draw("0:01", 1)
    print("hello")
    print("world", file=sys.stderr)

    assert tty.getvalue() == DRAWN.format("0:01") + "\x1b[Jhello\nworld\n"


def test_output_that_goes_elsewhere_is_left_alone(install, monkeypatch):
    """A file, or somebody's `redirect_stdout`, gets what is printed and no codes."""
    tty = install()
    file = io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    terminal = Terminal(tty)
    terminal.draw("0:01", 1)

    assert sys.stdout is file
    terminal.erase()
    assert (file.getvalue(), sys.stdout) == ("", file)


def test_a_stream_that_was_replaced_meanwhile_stays(install, monkeypatch):
    """Whoever kept the stand-in has a stream that forwards."""
    tty = install()
    terminal = Terminal(tty)
    terminal.draw("0:01", 1)
    kept, file = sys.stdout, io.StringIO()
    sys.stdout = file
    terminal.erase()
    kept.writelines(["a", "b"])

    assert sys.stdout is file
    assert tty.getvalue().endswith("\x1b[Jab")
    assert kept.isatty()


def test_a_terminal_that_is_gone_has_a_width(install):
    """It is asked on each draw."""
    tty = install()
    assert Terminal(tty).width() == 79


@pytest.mark.parametrize(("asked", "kind"), [(None, Terminal), (True, Terminal), (False, type(None))])
def test_a_terminal_is_chosen_where_there_is_one(install, asked, kind):
    """Unless it is switched off; the same one each time, which knows what is drawn."""
    install()
    assert type(chosen(asked)) is kind
    assert chosen(asked) is chosen(asked)


def test_the_terminal_is_the_same_while_its_line_is_drawn(install):
    """The stand-in is no terminal of its own."""
    install()
    terminal = chosen(None)
    terminal.draw("0:01", 1)

    assert chosen(None) is terminal


@pytest.mark.parametrize(("asked", "kind"), [(None, type(None)), (True, Plain), (False, type(None))])
def test_a_log_is_written_only_when_it_was_asked_for(install, monkeypatch, asked, kind):
    """A pipe shows nothing by itself."""
    install()
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    assert type(chosen(asked)) is kind


def test_a_stderr_that_cannot_be_used_is_no_terminal(install, monkeypatch):
    """Closed, missing, dumb, or somebody's own object."""
    tty = install()
    closed = Tty()
    closed.close()
    assert [is_terminal(stream) for stream in (closed, None, object())] == [False] * 3
    monkeypatch.setenv("TERM", "dumb")
    assert not is_terminal(tty)
    monkeypatch.setattr(sys, "stderr", None)
    assert chosen(True) is None


def test_a_log_gets_a_line_every_ten_seconds(install):
    """Whole lines, no codes."""
    tty = install()
    plain = Plain(tty)
    for second in range(1, 25):
        plain.draw(f"0:{second:02}", second)
        plain.erase()

    assert tty.getvalue() == "0:01\n0:11\n0:21\n"


class Kernel:
    kernel, execution_count = object(), 1


@pytest.fixture
def shell(monkeypatch):
    """A notebook kernel; what it displays is kept."""
    shown = []

    def display(content, raw, display_id):
        shown.append([content["text/plain"]])
        return SimpleNamespace(update=lambda content, raw, here=shown[-1]: here.append(content["text/plain"]))

    kernel, module = Kernel(), ModuleType("IPython")
    kernel.shown, module.get_ipython = shown, lambda: kernel
    module.display = ModuleType("IPython.display")
    module.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", module.display)
    return kernel


def test_a_notebook_changes_one_output_of_a_cell(shell):
    """Each cell has one of its own, which is empty at the end."""
    notebook = chosen(None)
    assert (type(notebook), notebook.width(), chosen(False)) == (Notebook, None, None)
    notebook.erase()
    for line in ("0:01", "0:02"):
        notebook.draw(line, 0)
    notebook.erase()
    shell.execution_count = 2
    chosen(None).draw("0:05", 0)

    assert shell.shown == [["0:01", "0:02", ""], ["0:05"]]
