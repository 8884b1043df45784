"""Mistakes in what a context is made of; tests/session has those that need a machine without Java."""

from __future__ import annotations

import os

import dstream as ds
from dstream.errors import ConfigurationError, EngineError, SetupError
from tests.mistakes.in_files import nobody
from tests.mistakes.mistake import LOCAL, mistake


def configured(desk, text):
    """Write a `dstream.toml`, and connect where it is found."""
    (desk.folder / "dstream.toml").write_text(text)
    before = os.getcwd()
    os.chdir(desk.folder)
    try:
        ds.connect(engine="local")
    finally:
        os.chdir(before)


@mistake(ConfigurationError, r"dstream\.toml.*enginee|enginee.*dstream\.toml", r"did you mean engine", engines=LOCAL)
def a_setting_that_does_not_exist(desk):
    """A key of the file is misspelt."""
    configured(desk, 'enginee = "local"\n')  # here


@mistake(ConfigurationError, r"dstream\.toml", r"line 1", engines=LOCAL)
def a_file_of_settings_that_is_no_toml(desk):
    """A quote is missing."""
    configured(desk, 'engine = "local\n')  # here


@mistake(ConfigurationError, r"dstream\.toml.*worker_memory|worker_memory.*dstream\.toml", r"'512m'", engines=LOCAL)
def a_setting_of_another_type(desk):
    """A value of the file is not of its type."""
    configured(desk, "worker_memory = true\n")  # here


@mistake(SetupError, r"taken is a file", r"storage is a folder", engines=LOCAL)
def a_storage_that_is_a_file(desk):
    """The folder of the storage is a file."""
    (desk.folder / "taken").write_text("no folder")
    with ds.connect(engine="local", storage=desk.folder / "taken") as ctx:
        ctx.get_map("ages")["Ada"] = 36  # here


@mistake(SetupError, r"may not look into the storage \S+locked", r"connect\(storage=...\)", engines=LOCAL)
def a_storage_that_cannot_be_written(desk):
    """The storage belongs to someone else."""
    desk.ctx.get_map("ages")  # what this loads, nobody could load
    (desk.folder / "locked").mkdir(mode=0o500)
    with ds.connect(engine="local", storage=desk.folder / "locked") as ctx, nobody():
        ctx.get_map("ages")  # here


@mistake(EngineError, r"Redis at redis://127\.0\.0\.1:1/0 does not answer", r"check that it runs", engines=LOCAL)
def a_server_that_is_not_there(desk):
    """No Redis answers."""
    with ds.connect(engine="local", storage="redis://127.0.0.1:1/0") as ctx:
        ctx.get_map("ages")  # here
