"""`make soak` finds every soak of its folder."""

from __future__ import annotations

import pytest

from tests.soak import __main__ as soak


def test_every_soak_says_what_it_takes(capsys):
    """Each is a module with a `main()` that reads the command line, and has a line in the documentation."""
    assert {"contention", "hostile", "memory", "mutations", "stderr"} <= set(soak.names())
    assert soak.run("mutations", ["--runs", "1"]) is True
    assert "mutations: well" in capsys.readouterr().out


def test_every_soak_has_a_short_size(capsys):
    """So that all of them can be run within minutes, as one command."""
    assert set(soak._QUICK) == set(soak.names())
    assert soak.main(["--quick", "mutations"]) == 0
    assert "10 mutations" in capsys.readouterr().out


def test_a_soak_that_fails_is_told(capsys):
    """The exit code of one decides about the whole."""
    assert soak.run("mutations", ["--wrong"]) is False
    with pytest.raises(SystemExit, match="2"):
        soak.main(["unknown"])
    assert "FAILED" in capsys.readouterr().out
