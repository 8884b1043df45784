"""The prompt at a terminal: completion, functions on workers, interrupts, the end."""

from __future__ import annotations

import builtins

from dstream.command.shell import names

SHELL = ("-m", "dstream", "shell")


def test_the_prompt_of_python_runs_lambdas_on_spark(terminal):
    """A lambda that is typed, and a function over several lines, run on the workers."""
    shell = terminal(*SHELL, "--plain")
    banner = shell.expect(">>> ")
    assert banner.count("\n") == 1
    assert banner.endswith("engine spark: ctx is the context, Ctrl-D leaves\n")

    shell.type("step = 10\ndef more(n):\n    return n + step\n\n")
    shell.type("ctx.stream([1, 2], 2).map(more).map(lambda n: n * step).to_list()\n")
    shell.expect("[110, 120]\n")
    shell.type("ctx.stream('abca').collect(grouping_by(str, counting()))['a']\n")
    shell.expect("2\n")
    shell.expect(">>> ")  # before the prompt reads, Ctrl-D would be a byte of a line
    shell.type("\x04")
    assert shell.end() == 0
    assert shell.rest.strip(" >\n") == ""


def test_names_are_completed_and_lines_remembered(terminal, tmp_path):
    """Tab completes names of dstream and methods; the lines of a session are there in the next."""
    shell = terminal(*SHELL, "--plain", "--engine", "local", TERM="xterm", XDG_STATE_HOME=str(tmp_path / "state"))
    shell.expect(">>> ")
    shell.type("ctx.str\t'abc').collect(top_\t2))\n")
    shell.expect("ctx.stream('abc').collect(top_n(2))\n")
    shell.expect("['c', 'b']\n")
    shell.expect(">>> ")
    shell.type("\x04")
    assert shell.end() == 0

    assert "ctx.stream('abc').collect(top_n(2))" in (tmp_path / "state" / "dstream" / "history").read_text()


def test_an_interrupt_gives_the_prompt_back(terminal):
    """Ctrl-C ends a line or what runs, and nothing else; a mistake is shown as always."""
    shell = terminal(*SHELL, "--plain", "--engine", "local")
    shell.expect(">>> ")
    shell.type("1 +")
    shell.expect("1 +")  # What is typed before the prompt reads may be thrown away, Ctrl-C with it.
    shell.interrupt()
    shell.expect("KeyboardInterrupt\n>>> ")
    shell.type("print('on' + 'going'); Stream.iterate(0, lambda n: n + 1).count()\n")
    shell.expect("ongoing\n")
    shell.type("\x03")
    shell.expect("KeyboardInterrupt")
    shell.expect(">>> ")
    shell.type("1 / 0\n")
    shell.expect("ZeroDivisionError: division by zero\n>>> ")
    shell.type("exit(3)\n")
    assert shell.end() == 3


def test_ipython_is_used_if_it_is_there(terminal, tmp_path, java):
    """A lambda that is typed there runs on the workers too, and Ctrl-D leaves without a question."""
    shell = terminal(*SHELL, TERM="xterm", IPYTHONDIR=str(tmp_path / "ipython"), **java())
    shell.expect("engine spark: ctx is the context, Ctrl-D leaves")
    shell.expect("In [1]:")
    shell.type("step = 10\n")
    shell.expect("In [2]:")
    shell.type("ctx.stream([1, 2], 2).map(lambda n: n + step).to_list()\n")
    shell.expect("[11, 12]")
    shell.expect("In [3]:")
    shell.type("\x04")
    assert shell.end() == 0


def test_the_prompt_reads_a_pipe(process, tmp_path):
    """Without a terminal it is Python's own prompt, which reads the lines."""
    ended = process(*SHELL, "--engine", "local", typed="ctx.stream('ab').to_list()\n")

    assert "['a', 'b']" in ended.stdout
    assert ended.returncode == 0


def test_no_name_hides_a_builtin(storage):
    """`sum` and `map` mean at the prompt what they mean in Python."""
    assert {name for name in names(storage) if hasattr(builtins, name)} == set()
    assert names(storage)["ctx"] is storage
