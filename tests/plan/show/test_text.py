"""The stages as text."""

from __future__ import annotations

from dstream.explain.text import as_text


def test_text_names_every_stage_with_its_calls_and_exchanges(chain):
    """The whole first, then each stage: where its items come from, its calls with their places; the end last."""
    assert as_text(chain(2)) == (
        "to_list() on Spark: 1 job, 1 shuffle\n"
        "\n"
        "stage 1: 1 task, in order\n"
        "  .first()\n"
        "\n"
        "stage 2: 1 task, in order\n"
        "  <- stage 1, shuffle: why 1\n"
        "  .call(1)  /x/words.py:1\n"
        "\n"
        "to_list(): all items come"
    )


def test_text_says_what_happens_only_with_several_partitions(wicked):
    """An exchange that one partition does without says so; several jobs are listed and named at their stages."""
    text = as_text(wicked)

    assert "<- stage 1, shuffle (if there is more than one partition): " in text
    assert "stage 2: 3 tasks, in order, job 2" in text
    assert "  job 2: last" in text


def test_text_of_a_large_plan_is_bounded(chain, fan):
    """20,000 stages, or parts, or calls, are some hundred lines at most."""
    assert len(as_text(chain(20_000)).splitlines()) < 250
    assert len(as_text(fan(20_000)).splitlines()) < 250
    assert len(as_text(chain(2, calls=20_000)).splitlines()) < 50
