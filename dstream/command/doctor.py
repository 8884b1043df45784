"""`dstream doctor`: the health of this machine's installation, and advice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from dstream.command import checks
from dstream.command.probe import Finding, Probe
from dstream.command.program import SAYING
from dstream.errors import ConfigurationError
from dstream.session.configuration import configured

__all__ = ["doctor"]


_COLORS = {"ok": "green", "not ok": "red", "not checked": "yellow"}


@click.command(context_settings=SAYING)
@click.option(
    "--limit", default=60.0, show_default=True, metavar="SECONDS", help="How long Spark or a storage may take."
)
def doctor(limit: float) -> None:
    """Check the environment of dstream.

    Java, Python, packages, settings, the storage, Spark and its workers: each line says whether it works, what was
    seen, and what to do. The exit code is 1 if something that is needed does not work.
    """
    works = True
    for finding in _findings(limit):
        works = works and finding.state != "not ok"
        click.echo(f"{click.style(f'{finding.state:<13}', fg=_COLORS[finding.state])}{finding.name:<16}{finding.seen}")
        if finding.advice:
            click.echo(f"{'':<29}-> {finding.advice}")
    if not works:
        raise SystemExit(1)


def _findings(limit: float) -> Iterator[Finding]:
    try:
        chosen = configured({})
    except ConfigurationError as error:
        yield from _packages()
        yield Finding("dstream.toml", "not ok", str(error))
        yield from (Finding(name, "not checked", "the settings are broken") for name in ("Java", "storage", "Spark"))
        return
    # What takes time runs meanwhile, all at once.
    with _probes("storage") as (storage,), _probes(*["spark"] * (chosen["engine"] != "local")) as spark:
        yield from _packages()
        yield from checks.settings(chosen)
        java = checks.java(chosen["engine"])
        yield java
        if chosen["engine"] != "local":
            yield checks.class_archive(chosen)
        yield from storage.findings(limit)
        yield from _on_spark(spark, java, limit)


def _packages() -> Iterator[Finding]:
    yield checks.python()
    yield checks.neighbours()
    yield from checks.packages()
    yield from checks.extras()


@contextmanager
def _probes(*names: str) -> Iterator[list[Probe]]:
    """Run slow checks beside this process; end them, whatever happens."""
    probes = [Probe(name) for name in names]
    try:
        yield probes
    finally:
        for probe in probes:
            probe.end()


def _on_spark(probes: list[Probe], java: Finding, limit: float) -> Iterator[Finding]:
    if java.state == "ok":
        for probe in probes:
            yield from probe.findings(limit)
        return
    why = java.seen if not probes else "it needs Java"
    yield from (Finding(name, "not checked", why) for name in ("Spark", "workers"))
