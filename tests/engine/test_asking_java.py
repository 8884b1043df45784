"""How often a small job asks Java: each time costs some 0.1 ms, which is much of a job of 20."""

from __future__ import annotations

import pytest
from py4j.clientserver import ClientServerConnection


@pytest.fixture
def asked(monkeypatch):
    """What Java was asked for; not that it forgets something, which is asked when Python's collector runs."""
    commands, send = [], ClientServerConnection.send_command

    def counted(connection, command, *rest, **options):
        if not command.startswith("m\nd\n"):
            commands.append(command)
        return send(connection, command, *rest, **options)

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    return commands


def test_a_job_without_a_shuffle_makes_no_plan(spark_context, asked):
    """It was 50 while it made one, and 62 while PySpark looked up settings and the schema for each result."""
    numbers = spark_context.stream(range(9), partitions=2).map(str)
    numbers.to_list()
    asked.clear()
    numbers.to_list()

    assert len(asked) <= 22


def test_a_shuffle_makes_its_columns_once(spark_context, asked):
    """It was 190 while PySpark made five columns for each shuffle, and looked up six."""
    counts = spark_context.stream(range(9), partitions=2).key_by(abs).count_by_key()
    counts.to_list()
    asked.clear()
    counts.to_list()

    assert len(asked) <= 95
